"""The script of live pages, the style of what only they show, and the policy under which both are used.

The script replaces the parts of the page that the server sends as events, by their ids, and nothing else; it has no
other address than the page's own. Keyboard focus stays where it was, and what was opened stays open. Without a script
the page loads itself again; where events fail, the script does.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Final

from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.style import POLICY, STYLE

SCRIPT_PATH: Final = "/live.js"
RELOAD_S: Final = 10
RETRY_MS: Final = 2000
EVENTS: Final = "text/event-stream; charset=utf-8"
LINK: Final = "link"  # the part that tells that the server does not answer

SCRIPT: Final = """\
"use strict";
(() => {
  const address = document.currentScript.dataset.events;
  const lost = document.getElementById("link");
  const heading = document.querySelector("h1");
  const focusable = "a[href],summary,[tabindex]";
  const all = (place, what) => [...place.querySelectorAll(what)];

  const put = (id, html) => {
    const place = document.getElementById(id);
    if (!place) return;
    const focus = all(place, focusable).indexOf(document.activeElement);
    const open = all(place, "details").map(one => one.open);
    const made = new DOMParser().parseFromString(html, "text/html");
    place.replaceChildren(...made.body.childNodes);
    all(place, "details").forEach((one, at) => { one.open = open[at] || one.open; });
    const found = all(place, focusable)[focus];
    if (found) found.focus({preventScroll: true});
  };

  const reload = async () => {
    try {
      const answer = await fetch(location.pathname);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      heading.textContent = page.querySelector("h1").textContent;
      for (const one of all(page, "[data-part]")) put(one.id, one.innerHTML);
      lost.hidden = true;
    } catch { lost.hidden = false; }
  };

  const listen = () => {
    const source = new EventSource(address);
    source.onopen = () => { lost.hidden = true; };
    source.onmessage = said => {
      const parts = JSON.parse(said.data);
      for (const id of Object.keys(parts)) {
        if (id === "title") document.title = parts.title;
        else if (id === "heading") heading.textContent = parts.heading;
        else put(id, parts[id]);
      }
    };
    source.onerror = () => {
      lost.hidden = false;
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(() => { reload().then(listen); }, RELOAD_MS);
    };
  };
  listen();
})();
""".replace("RELOAD_MS", str(1000 * RELOAD_S))

LIVE_STYLE: Final = """
.now{font-size:1.15rem;margin:.9rem 0 .3rem}
.now strong{display:block}
.phases{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.35rem;font-size:.9rem}
.phases li{background:var(--panel);color:var(--soft);border-radius:1rem;padding:.15rem .8rem}
.phases .past{color:var(--ink)}
.phases [aria-current]{background:var(--link);color:var(--ground);font-weight:650}
.cards{grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr))}
.edges{fill:none;stroke:var(--line)}
.mark-enrolled{fill:var(--ground);stroke:var(--soft);stroke-width:2}
.mark-ready{fill:var(--s2);stroke:var(--ground);stroke-width:1}
.mark-silent{fill:var(--warn-ground);stroke:var(--s1);stroke-width:3;stroke-dasharray:4 3}
.mark-out{fill:none;stroke:var(--alarm);stroke-width:3}
:focus-visible{outline:3px solid var(--link);outline-offset:3px}
"""


def _hashed(style: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


LIVE_POLICY: Final = f"{POLICY} {_hashed(LIVE_STYLE)}; script-src 'self'; connect-src 'self'"
assert _hashed(STYLE) in LIVE_POLICY


def head(events: str, *, over: bool) -> Markup:
    """Return what a live page has in its head: the style, the script, and what does without the script."""
    again = tag("noscript", tag("meta", http_equiv="refresh", content=RELOAD_S))
    script = tag("script", src=SCRIPT_PATH, defer="", data_events=events)
    return join([tag("style", Markup(LIVE_STYLE)), script, "" if over else again])


def event(parts: Mapping[str, str]) -> bytes:
    """Return parts as one event of a stream."""
    return f"retry: {RETRY_MS}\ndata: {json.dumps(parts)}\n\n".encode()
