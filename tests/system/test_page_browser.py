"""`report.html` in a real browser without a network: it renders, asks for nothing, runs nothing, fits its window."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

import p2pdp
from p2pdp.cli.main import main
from p2pdp.files.spec import parse_spec
from tests.support.browser import browser as browser  # noqa: PLC0414 - a fixture
from tests.support.browser import complaints
from tests.support.runs import ring

PROBE = """<script>parent.postMessage([innerWidth, document.documentElement.scrollWidth,
 getComputedStyle(document.querySelector('h1')).fontSize].join(' '), '*')</script></body>"""
# A window has a least width, a frame has none.
FRAME = """<!DOCTYPE html><title>waiting</title>
<script>onmessage = event => {{ document.title = event.data }}</script>
<iframe src="{0}" width="{1}" height="900" style="border:0"></iframe>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring without closing noise and with colluders has finite and infinite leaks."""
    place = tmp_path_factory.mktemp("page") / "run"
    p2pdp.simulate(parse_spec(ring(6, 2, "closing = false\n"), None), place)
    p2pdp.audit(place, colluders=[1, 4]).save(place)
    return place / "report.html"


def look(browser: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Opens a page as a person without a network would; what the browser complains of is on its error stream."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
        f"--user-data-dir={page.parent / 'profile'}", *options, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_the_page_of_a_sweep_is_read_without_complaint_too(browser: str, tmp_path: Path) -> None:
    base = parse_spec(ring(6, 2, "closing = false\n"), None)
    found = p2pdp.sweep({"base": base, "what": "plan", "grid": {"noise.sigma": [1.0, 2.0]}}, out=tmp_path)
    assert found.page is not None
    done = look(browser, Path(found.page), "--dump-dom")
    assert complaints(done) == []
    assert done.stdout.count("<circle") == Path(found.page).read_text().count("<circle") > 1


def changed(page: Path, name: str, old: str, new: str) -> Path:
    text = page.read_text(encoding="utf-8")
    assert text.count(old) == 1
    copy = page.with_name(name)
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


def test_the_browser_reads_the_page_as_it_was_written_and_complains_of_nothing(browser: str, page: Path) -> None:
    done = look(browser, page, "--dump-dom")
    assert complaints(done) == []
    for part in (
        'id="summary"',
        'id="claims"',
        "No protection: nothing limits",
        "colluding users: ",
        "ε = ∞",
        "</footer>\n</body></html>",
    ):
        assert part in done.stdout
    written = page.read_text(encoding="utf-8")
    assert done.stdout.count("<section") == written.count("<section")
    assert done.stdout.count("<rect") == written.count("<rect")


def test_the_policy_stops_what_does_not_belong_to_the_page(browser: str, page: Path) -> None:
    """The same browser does complain, and does not obey, where something was slipped in."""
    script = changed(page, "script.html", "</body>", "<script>document.title = 'taken'</script></body>")
    done = look(browser, script, "--dump-dom")
    assert "<title>taken" not in done.stdout
    assert complaints(done)
    image = changed(page, "image.html", "</body>", '<img src="pixel.png"></body>')
    assert complaints(look(browser, image, "--dump-dom"))
    style = changed(page, "style.html", "</style>", "body{color:red}</style>")
    assert complaints(look(browser, style, "--dump-dom"))


def ink(file: Path) -> float:
    """The share of bytes in a picture that do not follow from their neighbours: next to none on a blank page."""
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    pixels = zlib.decompress(packed)
    return 1.0 - pixels.count(0) / len(pixels)


def test_a_picture_of_the_page_is_not_blank(browser: str, page: Path) -> None:
    blank = page.with_name("blank.html")
    blank.write_text("<!DOCTYPE html><title>nothing</title>")
    shares = []
    for seen in (page, blank):
        picture = seen.with_suffix(".png")
        look(browser, seen, f"--screenshot={picture}", "--window-size=900,1200")
        shares.append(ink(picture))
    assert shares[0] > 0.02
    assert shares[1] < 0.002


@pytest.mark.parametrize("width", [340, 1000])
def test_the_page_fits_its_window_and_its_style_applies(browser: str, page: Path, width: int) -> None:
    """A copy without the policy may measure itself."""
    text = page.read_text(encoding="utf-8")
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text).replace("</body>", PROBE)
    page.with_name("probe.html").write_text(free, encoding="utf-8")
    frame = page.with_name(f"frame{width}.html")
    frame.write_text(FRAME.format("probe.html", width), encoding="utf-8")
    done = look(browser, frame, "--dump-dom", "--window-size=1100,950", "--virtual-time-budget=5000")
    measured = re.search(r"<title>([0-9]+) ([0-9]+) ([0-9.]+)px</title>", done.stdout)
    assert measured is not None
    assert (int(measured[1]), int(measured[2])) == (width, width)
    assert float(measured[3]) == pytest.approx(1.7 * 16, abs=0.1)


# Rules for paper hold on the screen too, as if the medium were print; then what a reader would see is measured.
ON_PAPER = """<script>
for (const rule of document.styleSheets[0].cssRules)
  if (rule.media && SWITCH) rule.media.mediaText = rule.media.mediaText === 'print' ? 'all' : 'not all';
const parts = [...document.querySelectorAll('details > :not(summary)')];
const high = parts.map(one => one.getBoundingClientRect().height > 0);  // Chromium asks the last layout what it skips
const seen = parts.every((one, at) => one.checkVisibility({contentVisibilityAuto: true}) && high[at]);
const scrolls = [...document.querySelectorAll('.wide, pre')].filter(
  one => getComputedStyle(one).overflowX !== 'visible').length;
const beyond = [...document.querySelectorAll('table, pre, svg.chart')].filter(
  one => one.getBoundingClientRect().right > innerWidth + 1).length;
const style = query => getComputedStyle(document.querySelector(query));
parent.postMessage([seen, scrolls, beyond, style('.running').display, style('nav').display,
  style('thead').display, style('h2').breakAfter].join(' '), '*')</script></body>"""
NARROW = """<script>
const many = document.querySelector('.many'), cell = many.querySelector('td');
const style = (one, part) => getComputedStyle(one, part);
const shadows = style(document.querySelector('.wide')).backgroundImage.split('linear-gradient').length - 1;
const beyond = many.getBoundingClientRect().right > innerWidth;
const label = style(cell, '::before').content;
parent.postMessage([style(cell).display, label, shadows, beyond].join(' '), '*')</script></body>"""


def measured(browser: str, page: Path, probe: str, width: int) -> list[str]:
    """What a copy without the policy tells of itself in a frame of this width."""
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    page.with_name("measured.html").write_text(free.replace("</body>", probe), encoding="utf-8")
    frame = page.with_name("around.html")
    frame.write_text(FRAME.format("measured.html", width), encoding="utf-8")
    done = look(browser, frame, "--dump-dom", "--window-size=1100,950", "--virtual-time-budget=5000")
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found is not None
    return found[1].split()


@pytest.fixture(scope="module")
def editions(page: Path) -> list[Path]:
    """The auditor's and the participants'."""
    assert main(["report", str(page.parent)]) == 0
    return [page, page.with_name("participants.html")]


PAPER = 680  # CSS pixels: 180 mm, between the margins of an A4 page


def test_on_paper_everything_is_open_and_nothing_is_cut(browser: str, editions: list[Path]) -> None:
    for page in editions:
        found = measured(browser, page, ON_PAPER.replace("SWITCH", "true"), PAPER)
        assert found == ["true", "0", "0", "table-header-group", "none", "table-header-group", "avoid"]
    screen = measured(browser, editions[0], ON_PAPER.replace("SWITCH", "false"), PAPER)
    assert screen[0] == "false", "on a screen details are closed"
    assert int(screen[1]) > 0
    assert screen[3:5] == ["none", "block"]


def test_in_a_narrow_window_wide_tables_are_lists_and_others_show_that_they_scroll(
    browser: str, editions: list[Path]
) -> None:
    for page in editions:
        assert measured(browser, page, NARROW, 400) == ["grid", '"protection"', "4", "false"]
        assert measured(browser, page, NARROW, 1000)[0] == "table-cell"


def test_a_pdf_has_all_pages_and_no_complaint(browser: str, editions: list[Path]) -> None:
    for page in editions:
        made = page.with_suffix(".pdf")
        done = look(browser, page, f"--print-to-pdf={made}")
        assert complaints(done) == []
        data = made.read_bytes()
        assert data.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 5
