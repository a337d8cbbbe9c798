"""Pieces of HTML. Every text that goes in comes out escaped, with what cannot be seen written as its code."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from inspector.records.plain_text import plain_text


def text(words: str) -> str:
    """Plain text; of very long texts the beginning."""
    return html.escape(plain_text(words), quote=True)


def said(words: str) -> str:
    """What a rule advises, in which what stands between two ` is code; the rest, and a ` alone, is plain text.

    A name of a module may be in it: every part is escaped, so at worst it is set as code.
    """
    parts = plain_text(words).split("`")
    if len(parts) < 3:
        return text(words)
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]  # the last one has no other
    shown = (html.escape(part, quote=True) for part in parts)
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(shown))


def element(tag: str, content: str, **attributes: str) -> str:
    """An element; `content` is HTML already, attributes are plain text (`klass` is the class)."""
    told = "".join(f' {"class" if name == "klass" else name}="{text(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}>{content}</{tag}>"


def paragraphs(words: str) -> str:
    """Text of several lines, a paragraph each."""
    return "".join(element("p", text(line)) for line in words.splitlines() if line.strip())


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """A list of what, and its value, which is HTML; rows without a value are left out."""
    return element("dl", "".join(f"<div><dt>{text(what)}</dt><dd>{value}</dd></div>" for what, value in rows if value))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of plain texts that scrolls by itself where the page is narrow."""
    first = "".join(element("th", text(word), scope="col") for word in head)
    body = "".join(f"<tr>{''.join(element('td', text(cell)) for cell in row)}</tr>" for row in rows)
    above = element("caption", text(caption)) if caption else ""
    inner = f"<table>{above}<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption or "table")}">{inner}</div>'


def code(words: str) -> str:
    """A line of code or a command line."""
    return f"<pre><code>{text(words)}</code></pre>"


def link(target: str, words: str) -> str:
    """A link to a part of this page."""
    return element("a", text(words), href=f"#{target}")
