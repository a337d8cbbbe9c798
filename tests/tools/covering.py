"""Which tests run a line of the package: read from a coverage file with one context a test.

    python -m pytest --cov=inspector --cov-context=test --cov-report= …      writes .coverage

Tests that start the package in another process do not show there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

MOST = 24
"""Tests that are run for one fault: more would hardly see what these do not."""


class Covering:
    """Tests by line. Those that run the fewest lines in all come first: they are about what the line does."""

    def __init__(self, file: Path, root: Path) -> None:
        from coverage import CoverageData

        data = CoverageData(str(file))
        data.read()
        self.root = root
        self._lines: dict[str, dict[int, frozenset[str]]] = {}
        self.weight: Counter[str] = Counter()
        for path in data.measured_files():
            lines = {
                line: frozenset(context.partition("|")[0] for context in contexts if "::" in context)
                for line, contexts in data.contexts_by_lineno(path).items()
            }
            for tests in lines.values():
                self.weight.update(tests)
            self._lines[str(Path(path).relative_to(root))] = lines

    def tests(self, module: str, first: int, last: int) -> tuple[str, ...]:
        """Node ids of tests that run one of the lines; of any line of the module where that runs at import only."""
        lines = self._lines.get(module, {})
        found = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        if not found:
            found = {test for tests in lines.values() for test in tests}
        return tuple(spread(found, self.weight))


def spread(tests: Iterable[str], weight: Counter[str], most: int = MOST) -> list[str]:
    """At most so many: of every file in turn the one that runs the fewest lines."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (weight[test], test)):
        files[test.partition("::")[0]].append(test)
    queues = sorted(files.values(), key=lambda queue: weight[queue[0]])
    picked: list[str] = []
    while queues and len(picked) < most:
        for queue in queues:
            picked.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    return picked[:most]
