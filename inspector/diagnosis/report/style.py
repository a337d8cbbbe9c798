"""The style sheet of a report: fonts of the system, light and dark by the reader's setting, and for paper."""

from __future__ import annotations

LIGHT = """
  color-scheme: light; --ground: #ffffff; --raised: #f4f5f7; --line: #cfd5dc; --ink: #1c2128; --soft: #56616d;
  --link: #1a5f9a; --error: #b02525; --warning: #855900; --info: #1a5f9a;
"""
DARK = """
  color-scheme: dark; --ground: #0f1318; --raised: #15191f; --line: #39424e; --ink: #e2e7ee; --soft: #a3afbc;
  --link: #7db8f0; --error: #ff8b8b; --warning: #e5b567; --info: #7db8f0;
"""
RULES = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
h1, h2, h3, p, dd, td, th, li, code, figcaption { overflow-wrap: anywhere; unicode-bidi: isolate; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 0 0 .75rem; line-height: 1.35; }
a { color: var(--link); } a:focus-visible, .wide:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.soft, figcaption, caption, dt { color: var(--soft); }
nav ul { list-style: none; padding: 0; margin: .75rem 0; } nav li { margin: .25rem 0; }
article { border: 1px solid var(--line); border-left: .3rem solid var(--line); border-radius: .3rem;
  padding: 1rem; margin: 1rem 0; }
article.error { border-left-color: var(--error); } article.warning { border-left-color: var(--warning); }
article.info { border-left-color: var(--info); }
.badge { font-size: .8rem; font-weight: 600; margin-right: .5rem; }
.error > h3 .badge, a .badge.error { color: var(--error); } .warning > h3 .badge { color: var(--warning); }
.info > h3 .badge { color: var(--info); }
dl { margin: .5rem 0; }
dl div { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: .75rem; margin: .3rem 0; }
dt { font-size: .9rem; } dd { margin: 0; } dd p { margin: 0 0 .4rem; }
pre { margin: .25rem 0; padding: .5rem .6rem; background: var(--raised); border: 1px solid var(--line);
  border-radius: .25rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .85rem/1.45 ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace; }
.wide { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); }
th { white-space: nowrap; overflow-wrap: normal; } td { min-width: 4.5rem; } td:first-child { min-width: 10rem; }
figure { margin: 1rem 0; } figcaption { font-size: .9rem; margin-top: .25rem; }
figure svg, figure img { display: block; width: 100%; height: auto; border: 1px solid var(--line); }
figure svg { font-family: inherit; } figure svg image { image-rendering: pixelated; }
figure .wide > * { min-width: 40rem; }
blockquote { margin: .5rem 0; padding-left: .75rem; border-left: .2rem solid var(--line); }
@media (max-width: 40rem) {
  body { padding: 1rem .75rem 3rem; } dl div { grid-template-columns: minmax(0, 1fr); gap: 0; margin: .6rem 0; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; } a { color: inherit; }
  figure, tr, dl div { break-inside: avoid; } h2, h3, caption, thead { break-after: avoid; }
  .wide { overflow: visible; } figure .wide > * { min-width: 0; }
}
"""


def style(dark_figures: str) -> str:
    """The whole style sheet; `dark_figures`: colours of figures where the page is dark. Paper is always light."""
    dark = f":root {{{DARK}}}\n{dark_figures}"
    return f":root {{{LIGHT}}}\n{RULES}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
