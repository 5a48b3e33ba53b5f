"""The page's only style sheet, and the policy that lets a browser use it and fetch nothing at all.

Levels of the heat map differ in lightness from step to step; on a dark screen the order is turned round, so that
the strongest leak is always what stands out most from the ground. Series differ in colour and in dashes.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

_LEVELS: Final = ["#fbf3cf", "#d7e2bd", "#b4d1ac", "#92bda1", "#72a5a1", "#4c8ea0", "#367091", "#2a4f7b", "#1b2f66"]
_SERIES: Final = {  # light and dark
    0: ("#0b5fa5", "#6cb6ff"),
    1: ("#b3500b", "#ffab5e"),
    2: ("#11795a", "#5fd3a8"),
    3: ("#8a3a86", "#e29ade"),
    4: ("#6b6100", "#d9cd5a"),
    5: ("#5a5f66", "#b6bcc4"),
}


def _variables(place: int, levels: list[str]) -> str:
    named = [*(f"--h{level}:{colour}" for level, colour in enumerate(levels))]
    named += [f"--s{series}:{colours[place]}" for series, colours in _SERIES.items()]
    return ";".join(named)


_LIGHT: Final = (
    "--ground:#fdfdfb;--panel:#f3f4f1;--ink:#1d2630;--soft:#55606c;--line:#d4d8da;--link:#0b5fa5;"
    "--warn:#8f2d00;--warn-ground:#fdeee4;--alarm:#d5440a;--alarm-stripe:#fff1e8;--void:#c9cdd1;--void-stripe:#eef0f1;--shade:#0003;"
)
_DARK: Final = (
    "--ground:#14191f;--panel:#1d242c;--ink:#e6e9ec;--soft:#a9b3bd;--line:#39434d;--link:#6cb6ff;"
    "--warn:#ffb58a;--warn-ground:#3a2418;--alarm:#ff6a2b;--alarm-stripe:#3a1000;--void:#4b555f;--void-stripe:#2a323a;--shade:#fff4;"
)

STYLE: Final = (
    f":root{{color-scheme:light dark;{_LIGHT}{_variables(0, _LEVELS)}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}{_variables(1, _LEVELS[::-1])}}}}}"
    """
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink)}
body{font:1rem/1.55 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:54rem;margin:0 auto;padding:0 1.1rem}
header{padding-top:2rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .3rem}
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-top:1rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.6rem 0 .4rem}
p,ul,ol,dl{margin:.6rem 0}
a{color:var(--link)}
.soft,figcaption,footer{color:var(--soft);font-size:.9rem}
.any{overflow-wrap:anywhere}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.92rem}
.note{background:var(--warn-ground);border-left:4px solid var(--warn);padding:.6rem .9rem;margin:1rem 0}
.note strong{color:var(--warn)}
.verdict{border-left:5px solid var(--soft);background:var(--panel);padding:.6rem .9rem;margin:.8rem 0;font-weight:600}
.verdict.strong{border-color:var(--s2)}
.verdict.moderate{border-color:var(--s0)}
.verdict.weak{border-color:var(--s1)}
.verdict.none{border-color:var(--alarm)}
.badge{font-weight:650;white-space:nowrap}
.badge.strong{color:var(--s2)}
.badge.moderate{color:var(--s0)}
.badge.weak{color:var(--s1)}
.badge.none{color:var(--warn)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;margin:1.1rem 0}
.card{background:var(--panel);border-radius:.5rem;padding:.8rem 1rem}
.card h3{margin:0;font-size:.9rem;font-weight:600;color:var(--soft)}
.card .big{font-size:1.75rem;font-weight:650;line-height:1.3;margin:0}
.card p{margin:.2rem 0;font-size:.92rem}
.badge.refused{color:var(--soft)}
.running{display:none}
.wide{overflow-x:auto;margin:.8rem 0;background:
linear-gradient(90deg,var(--ground) 30%,transparent) 0 0/3rem 100% no-repeat local,
linear-gradient(270deg,var(--ground) 30%,transparent) 100% 0/3rem 100% no-repeat local,
linear-gradient(90deg,var(--shade),transparent) 0 0/.9rem 100% no-repeat scroll,
linear-gradient(270deg,var(--shade),transparent) 100% 0/.9rem 100% no-repeat scroll}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
.terms{columns:22rem 2;column-gap:2.5rem}
.terms div{break-inside:avoid}
.terms dt{margin-top:.2rem}
td code{font-size:.85em}
.sign th,.sign td{min-width:8rem;height:3rem}
th,td{text-align:left;vertical-align:top;padding:.35rem 1rem .35rem 0;border-bottom:1px solid var(--line)}
thead th{font-weight:600;border-bottom-width:2px;vertical-align:bottom}
td.n,th.n{text-align:right;white-space:nowrap}
tbody th{font-weight:600}
.small{display:block;color:var(--soft);font-size:.88em;font-weight:400}
details{margin:.8rem 0;border:1px solid var(--line);border-radius:.4rem;padding:0 .9rem}
summary{cursor:pointer;padding:.5rem 0;font-weight:600}
details[open]{padding-bottom:.6rem}
dt{font-weight:600;margin-top:.6rem}
dd{margin:0 0 .2rem}
pre{overflow-x:auto;font-size:.85rem;background:var(--panel);padding:.8rem;border-radius:.4rem}
figure{margin:1rem 0}
figure .wide{margin:0}
.chart{display:block;width:100%;max-width:40rem;height:auto;font-size:12px}
.chart text{fill:var(--ink);font-family:inherit}
.chart .tick,.chart .title{fill:var(--soft)}
.chart .label{font-size:13px}
.frame{fill:var(--ground);stroke:var(--line)}
.grid{stroke:var(--line)}
.axis{stroke:var(--soft)}
.here{stroke:var(--soft);stroke-dasharray:3 3}
.series{fill:none;stroke-width:2.2}
.dot{stroke:var(--ground);stroke-width:1}
.bar{opacity:.45}
.mean{stroke:var(--ink);stroke-width:2}
.point{fill:var(--ink);stroke:var(--ground);stroke-width:1.5}
.key{list-style:none;padding:0;margin:.5rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.88rem}
.key li{display:flex;align-items:center;gap:.45rem}
.mark{width:34px;height:12px;flex:none}
.swatch{width:18px;height:18px;flex:none;border:1px solid var(--line)}
.cells,.cells rect,.cells path{shape-rendering:crispEdges}
.run{fill:none;stroke-width:1.03}
.infinite-ground{fill:var(--alarm)}
.infinite-stripe{fill:var(--alarm-stripe)}
.refused-ground{fill:var(--void)}
.refused-stripe{fill:var(--void-stripe)}
.h9{fill:url(#infinite)}
.h10{fill:url(#refused)}
path.h9{fill:none;stroke:url(#infinite)}
path.h10{fill:none;stroke:url(#refused)}
footer{padding:2rem 1.1rem 3rem}
@media(max-width:30rem){.chart,.chart .label{font-size:16px}th,td{padding-right:.7rem}}
@media screen and (max-width:44rem){
.many thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.many,.many tbody,.many tr,.many th,.many td{display:block}
.many tr{border-bottom:2px solid var(--line);padding:.5rem 0}
.many tbody th,.many td,.many td.n{border:0;padding:.1rem 0;text-align:left}
.many td{display:grid;grid-template-columns:minmax(7rem,36%) 1fr;gap:.6rem;white-space:normal}
.many td:empty{display:none}
.many td::before{content:attr(data-label);color:var(--soft);font-size:.88em}
}
@page{size:A4;margin:18mm 15mm 16mm;
@bottom-right{content:"page " counter(page) " of " counter(pages);font:8pt sans-serif}}
@media print{
*{print-color-adjust:exact}
html{font-size:9.5pt}
body{background:none;display:table;width:100%}
.running{display:table-header-group;break-inside:avoid;font-size:8pt;color:var(--soft)}
header,main,footer{max-width:none;padding:0}
nav,.wide::-webkit-scrollbar{display:none}
.wide{overflow:visible;background:none}
table{font-size:.9rem;width:auto;max-width:100%}
th,td{padding-right:.6rem;overflow-wrap:break-word}
pre{white-space:pre-wrap;overflow-wrap:anywhere;overflow:visible}
details{border:0;padding:0}
details::details-content{content-visibility:visible;display:block;height:auto;overflow:visible}
summary{list-style:none;break-after:avoid}
h2,h3,p:has(+.cards),tbody tr:first-child{break-after:avoid}
h2{margin-top:1.6rem}
tr,.card,.note,.verdict,.key,figcaption,li,dd{break-inside:avoid}
figure{break-inside:avoid}
.chart{max-width:13.5cm}
thead{display:table-header-group}
p{orphans:3;widows:3}
a{color:inherit;text-decoration:none}
}
"""
    + "".join(
        f".h{level}{{fill:var(--h{level})}}path.h{level}{{fill:none;stroke:var(--h{level})}}" for level in range(9)
    )
    + "".join(
        f".series.s{series}{{stroke:var(--s{series})}}.dot.s{series},.bar.s{series}{{fill:var(--s{series})}}"
        for series in _SERIES
    )
)

POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
