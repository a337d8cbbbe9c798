"""`inspector listen`: writes the captures of trainings that are watched on other machines."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from inspector.cli.fault import Fault
from inspector.transport.network.address import DEFAULT_PORT, Address, is_loopback, secret_in
from inspector.transport.network.listener import Limits, Listener
from inspector.transport.terminal import say

SECRET = "secret"


@click.command()
@click.option("--out", required=True, help="Folder that the captures are written to.")
@click.option(
    "--host", default="127.0.0.1", help="Address to listen at; others than this machine's own can be reached."
)
@click.option("--port", default=DEFAULT_PORT, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option(
    "--secret-file", default=None, help="The shared secret; made where it does not exist. Default: OUT/secret."
)
@click.option("--most-gb", default=50.0, type=click.FloatRange(0, min_open=True), help="Most that is written in all.")
def listen(out: str, host: str, port: int, secret_file: str | None, most_gb: float) -> None:
    """Write the captures of trainings on other machines: watch(model, optimizer, "tcp://HOST:PORT", secret=…)."""
    folder = Path(out)
    file = Path(secret_file) if secret_file is not None else folder / SECRET
    try:
        secret = secret_in(file)
        listener = Listener(folder, secret, host, port, limits=Limits(total=int(most_gb * (1 << 30))), say=say)
    except ValueError as problem:
        raise Fault(str(problem)) from None
    except OSError as problem:
        raise Fault(f"Cannot listen at {host}:{port} for {folder} ({problem.strerror or problem}).") from None
    with listener:
        say(f"Listening at {Address(host, listener.port)}; the secret is in {file}. Ctrl+C ends it.")
        if not is_loopback(host):
            say("Other machines can reach it. What they send is authenticated, and not encrypted: docs/watching.md.")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            say("Closed.")
