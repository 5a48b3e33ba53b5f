"""The live pages of real processes in a real browser: enrolment, a node that stops and is back, the end.

The page is loaded once. All that changes comes as events; the marker that a script left in the window stays.
"""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

from tests.support.across import Across
from tests.support.browser import browser as browser  # noqa: PLC0414 - a fixture
from tests.support.devtools import Tab
from tests.support.launched import complete

HTTP = ("--http", "127.0.0.1:0", "--http-stay")
NOW = "document.getElementById('now')?.innerText ?? ''"
WIDTH = "document.documentElement.scrollWidth"
UNDER_WAY = 50  # frames
GROUND = "getComputedStyle(document.body).backgroundColor"


def url_of(said: str) -> str:
    return str(re.findall(r"are at (https?://\S+/)", said)[-1])


def test_a_run_is_seen_from_enrolment_to_the_end_without_loading_the_page_again(tmp_path: Path, browser: str) -> None:
    async def look(run: Across) -> None:
        bootstrap = run.bootstrap(*HTTP)
        url = url_of(bootstrap.said)
        async with Tab(browser, tmp_path) as tab:
            await tab.goes_to(url)
            await tab.asks("window.marker = 7")
            nodes = [run.node(0)]
            await tab.until(NOW, lambda text: "1 of 3 nodes" in text)
            await tab.pictures(tmp_path / "enrolment.png")
            await tab.until("document.getElementById('costs-part').innerText", lambda text: "another user" in text)
            await tab.asks("document.querySelector('#terms-part [tabindex]').focus()")
            nodes += [run.node(1), run.node(2, stands=[UNDER_WAY])]
            await tab.until(NOW, lambda text: "protocol runs among 3" in text)
            await asyncio.to_thread(run.stands, 2)
            await tab.until(NOW, lambda text: "Silent" in text)
            await tab.until(
                "document.querySelectorAll('#users-part figure .mark-silent').length", lambda count: count == 1
            )
            await tab.pictures(tmp_path / "silent.png")
            nodes[2].go_on()
            now = await tab.until(NOW, lambda text: "Silent" not in text)
            later = "published", "ledgers are closed", "over"
            assert "answers again" in bootstrap.said or any(said in now for said in later)  # whichever comes first
            await tab.until(NOW, lambda text: "over" in text)
            assert await tab.asks("document.title.startsWith('done')")
            assert await tab.asks("document.querySelector('h1').innerText") == "walk.sum among 3 users"
            assert await tab.asks("!!document.activeElement.closest('#terms-part')"), "the focus stayed"
            estimate = "document.getElementById('result-part').innerText"
            assert "standard error" in await tab.until(estimate, lambda text: "standard error" in text)
            assert await tab.asks("window.marker") == 7
            await see_it_fits(tab, tmp_path)
            await tab.asks("document.querySelector('#result-part a').click()")
            await tab.until("location.pathname", lambda path: path == "/report.html")
            assert tab.complaints == []

    with Across(tmp_path, complete(3, 1000), 3) as run:
        asyncio.run(look(run))


async def see_it_fits(tab: Tab, place: Path) -> None:
    """In the dark, in a narrow window, and by keyboard."""
    light = await tab.asks(GROUND)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    await tab.send("Emulation.setEmulatedMedia", features=[dark])
    assert await tab.asks(GROUND) != light
    await tab.pictures(place / "dark.png")
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    await tab.send("Emulation.setDeviceMetricsOverride", **metrics)
    assert await tab.asks(WIDTH) == 400
    await tab.pictures(place / "narrow.png")
    await tab.send("Emulation.setEmulatedMedia", features=[])
    await tab.asks("document.activeElement.blur(); document.querySelector('nav a').focus()")
    seen = set()
    for _ in range(7):
        await tab.presses("Tab")
        seen.add(await tab.asks("document.activeElement.outerHTML.slice(0, 80)"))
        assert await tab.asks("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert len(seen) == 7


def test_a_node_shows_its_owner_limits_and_costs_and_a_page_without_scripts_loads_itself_again(
    tmp_path: Path, browser: str
) -> None:
    async def look(run: Across) -> None:
        bootstrap = run.bootstrap(*HTTP)
        node = run.node(0, *HTTP)
        await asyncio.to_thread(node.wait_until_said, "status and metrics are at http")
        async with Tab(browser, tmp_path) as tab:
            await tab.goes_to(url_of(node.said))
            text = "document.body.innerText"
            found = await tab.until(text, lambda text: "epsilon 900" in text)
            assert "all decrypted messages" in await tab.until(text, lambda text: "all decrypted messages" in text)
            assert "charged so far" in found
            others = [run.node(1), run.node(2)]
            await tab.until(text, lambda text: "After the run" in text)
            await tab.pictures(tmp_path / "node.png")
            estimates = [one.document()["estimate"] for one in others]
            await tab.until(
                "document.getElementById('result-part').innerText", lambda text: f"{estimates[0]:.4g}" in text
            )
            node.process.send_signal(signal.SIGTERM)
            assert node.document()["estimate"] == estimates[0]
            lost = "!document.getElementById('link').hidden"
            await tab.until(lost)
            await tab.send("Emulation.setScriptExecutionDisabled", value=True)
            bare = run.place / "bare"
            bare.mkdir()
            with Across(bare, complete(2, 20), 2) as other:
                boot = other.bootstrap(*HTTP)
                await tab.goes_to(url_of(boot.said))
                node = other.node(0)
                await tab.until(NOW, lambda text: "1 of 2 nodes" in text)
            assert bootstrap.running

    with Across(tmp_path, complete(3, 40), 3) as run:
        run.configure(0, more='[budget]\nepsilon = 900.0\nledger = "spent.json"\n')
        asyncio.run(look(run))
