"""`--memory GB`, of every command that runs a model: the most that its worker may take."""

from __future__ import annotations

import os

import click

from inspector.transport.memory import MEMORY

LEAST, MOST = 0.5, 1e6
"""GB: Python and torch alone take about 0.3."""


def _remembered(ctx: click.Context, _param: click.Parameter, most: float | None) -> None:
    """Workers that are started until the command ends find it in their environment."""
    if most is None:
        return
    before = os.environ.get(MEMORY)
    os.environ[MEMORY] = str(most)

    def put_back() -> None:
        if before is None:
            os.environ.pop(MEMORY, None)
        else:
            os.environ[MEMORY] = before

    ctx.call_on_close(put_back)


memory_option = click.option(
    "--memory", type=click.FloatRange(LEAST, MOST), metavar="GB", expose_value=False, callback=_remembered,
    help="Most memory that a model may take, on Linux (default: most of what is free).",
)  # fmt: skip
