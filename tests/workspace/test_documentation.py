"""The pages of the documentation: all of them are found, and every link between them leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.workspace import documentation
from inspector.workspace.documentation import FIRST, Page, linked, page_of, pages

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


def slugs(path: Path) -> set[str]:
    """What `#…` may be, by the rule of GitHub: written here anew, as the view has its own."""
    inside = False
    made = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        inside ^= line.startswith("```")
        if line.startswith("#") and not inside:
            words = line.lstrip("#").strip().lower().replace("`", "").replace("*", "")
            made.add("".join("-" if sign == " " else sign for sign in words if sign.isalnum() or sign in " -_"))
    return made


def test_every_page_is_there_readme_first() -> None:
    names = [page.name for page in pages()]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert names[0] == FIRST and set(names[1:]) == written and len(names) == len(set(names)) > 30
    assert all(page.title and page.text().strip() for page in pages())
    titles = {page.name: page.title for page in pages()}
    assert titles["watching.md"] == "Watching a training run" and titles["adding/rule.md"] == "A rule"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_link_leads_to_a_page_and_a_heading(page: Page) -> None:
    for target in LINK.findall(page.text()):
        name, _, heading = target.partition("#")
        path = linked(page, name) if name else page.path
        if path is None:  # a folder or a file of the checkout, which is no page
            assert (page.path.parent / name).exists(), target
        elif heading:
            assert heading in slugs(path), target


@pytest.mark.parametrize(
    ("said", "name"),
    [("watching", "watching.md"), ("docs/watching.md", "watching.md"), ("adding/rule", "adding/rule.md"),
     ("readme", "README.md"), (" Watching.md ".strip(), "watching.md"), ("examples/tagger.py", None), ("", None),
     ("../pyproject", None)],
)  # fmt: skip
def test_a_page_is_named_in_any_way(said: str, name: str | None) -> None:
    found = page_of(said)
    assert (found.name if found else None) == name


def test_nothing_outside_the_documentation_is_linked(tmp_path: Path) -> None:
    watching, readme = page_of("watching"), page_of("readme")
    assert watching is not None and readme is not None
    for target in (
        "../pyproject.toml",
        "/etc/passwd",
        "../inspector/version.py",
        "../tests/conftest.py",
        "nothing.md",
        "",
        ".",
    ):
        assert linked(watching, target) is None and linked(readme, target) is None
    assert linked(watching, "limits.md") == linked(readme, "docs/limits.md") == ROOT / "docs" / "limits.md"
    assert linked(watching, "../README.md") == ROOT / "README.md"
    assert linked(readme, "docs/examples/tagger.py") == ROOT / "docs" / "examples" / "tagger.py"


def test_in_an_installation_the_pages_lie_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "inspector"
    (package / "docs" / "adding").mkdir(parents=True)
    for name in ("README.md", "install.md", "adding/README.md"):
        (package / "docs" / name).write_text(
            f"# The {name}\n\n[a](docs/install.md)\n[b](../README.md)\n", encoding="utf-8"
        )
    monkeypatch.setattr(documentation, "PACKAGE", package)
    pages.cache_clear()
    try:
        assert [page.name for page in pages()] == ["README.md", "install.md", "adding/README.md"]
        first, install = pages()[:2]
        assert linked(first, "docs/install.md") == install.path
        assert linked(install, "../README.md") == linked(install, "README.md") == first.path
        monkeypatch.setattr(documentation, "PACKAGE", tmp_path / "nowhere" / "inspector")
        pages.cache_clear()
        assert pages() == () and page_of("install") is None and linked(first, "docs/install.md") is None
    finally:
        pages.cache_clear()
