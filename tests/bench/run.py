"""All benchmarks: `python tests/bench/run.py [NAME …]`; each file in a process of its own, one table at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from inspector.transport.process import KEEP_MEMORY

HERE = Path(__file__).parent
ONE = (
    "import sys; sys.path.insert(0, {folder!r}); import {name} as bench, harness; print(harness.markdown(bench.rows()))"
)


def main() -> int:
    """Run the benchmarks named, or all."""
    names = [f"bench_{name}" for name in sys.argv[1:]] or sorted(path.stem for path in HERE.glob("bench_*.py"))
    table: list[str] = []
    failed = 0
    for name in names:
        code = ONE.format(folder=str(HERE), name=name)
        environment = {**os.environ, **KEEP_MEMORY}  # as the worker runs
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        table += lines if not table else lines[2:]
        failed += bool(done.returncode)
        sys.stderr.write(f"{name} {'failed' if done.returncode else 'done'}.\n")
    print("\n".join(table))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
