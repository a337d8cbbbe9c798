"""The pages of the documentation, as they lie beside the package or, in an installation, inside it.

In a checkout README stands beside the folder `docs`; the wheel carries both in `inspector/docs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
FIRST = "README.md"
EXAMPLES = "examples"
MARKDOWN = ".md"
READ = (MARKDOWN, ".py", ".png")
"""What a link of a page may lead to."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its name (`watching.md`, `adding/rule.md`), its file, and its first heading."""

    name: str
    path: Path
    title: str

    @property
    def short(self) -> str:
        """The name as one types it: `watching`, `adding/rule`."""
        return self.name.removesuffix(MARKDOWN)

    @property
    def markdown(self) -> bool:
        """Whether it is a page rather than the code of an example."""
        return self.path.suffix == MARKDOWN

    def text(self) -> str:
        """The page as Markdown. Raises OSError where its file is gone."""
        return self.path.read_text(encoding="utf-8")


def docs_folder() -> Path | None:
    """Where the pages are; None where they were not installed."""
    for folder in (PACKAGE / "docs", PACKAGE.parent / "docs"):
        if (folder / "install.md").is_file():
            return folder
    return None


@cache
def pages() -> tuple[Page, ...]:
    """All pages: README first, then by name, the folder of examples left out. Empty where none are installed."""
    folder = docs_folder()
    return () if folder is None else tuple(_pages(folder))


def _pages(folder: Path) -> Iterator[Page]:
    for readme in (folder / FIRST, folder.parent / FIRST):
        if readme.is_file():
            yield Page(FIRST, readme, "README")
            break
    found = (path for path in folder.rglob("*.md") if EXAMPLES not in path.parts and path != folder / FIRST)
    for path in sorted(found, key=lambda one: (len(one.parts), one.as_posix())):
        yield Page(path.relative_to(folder).as_posix(), path, _title(path))


def page_of(name: str) -> Page | None:
    """The page that somebody means: by its name, with or without `docs/` and `.md`; None where there is none."""
    wanted = name.strip().removeprefix("docs/").removesuffix(MARKDOWN).casefold()
    known = {one.short.casefold(): one for one in pages()}
    return known.get(wanted)


def linked(page: Page, target: str) -> Path | None:
    """The file to which a link of `page` leads (without its `#…`); None where it is no page, example or picture
    of the documentation, wherever else it may lie."""
    folder = docs_folder()
    if folder is None:
        return None
    inside = folder if page.name == FIRST else page.path.parent
    plain = target.removeprefix("docs/") if page.name == FIRST else target
    path = (inside / plain).resolve()
    if path.name == FIRST and path.parent in (folder.parent.resolve(), folder.resolve()):
        readme = page_of(FIRST)
        return None if readme is None else readme.path
    known = path.is_relative_to(folder.resolve()) and path.suffix in READ
    return path if known and path.is_file() else None


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                return line[2:].strip()
    return path.stem
