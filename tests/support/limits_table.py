"""The table of all limits in docs/diagnosis.md: `python -m tests.support.limits_table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from inspector.diagnosis import RULES

PAGE = Path(__file__).parents[2] / "docs" / "diagnosis.md"
BEGIN, END = "<!-- limits: begin -->", "<!-- limits: end -->"


def limits_table() -> str:
    """A row for each limit, by the number of its rule."""
    rows = ["| limit | of | value | range | what it is, and where it comes from |", "|---|---|---|---|---|"]
    for key, rule in sorted(RULES.items(), key=lambda item: item[1].id):
        for one in rule.limits if rule.id.startswith("IN") else ():
            value, source = f"{one.value:g} {one.unit}".strip(), one.source.replace("|", "\\|")
            rows.append(f"| `{key}.{one.name}` | {rule.id} | {value} | {one.range} | {source} |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table in the place of the one that it has."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    assert begin and end
    return f"{before}{BEGIN}\n{limits_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
