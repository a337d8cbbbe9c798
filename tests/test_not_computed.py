"""Every command names what the run of a capture has not computed, and how it is computed; costs are told on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import call

from inspector.capture import open_capture
from inspector.engine.session.service import Service
from inspector.records import SECONDS, Load, Run

SAID = "Not computed: jacobian/spectral_norm, jacobian/lag. `inspector run adding-elman` computes all of a run."


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with p.inspect, of which two quantities are left."""
    folder = tmp_path_factory.mktemp("partly")
    service = Service(lambda _record: None)
    service.serve(Load(subject="adding-elman", trusted=True))
    only = ("states", "jacobian/frobenius_norm", "jacobian/spectral_norm", "jacobian/lag")
    service.serve(Run(path=str(folder / "p.inspect"), only=only, now=only[:2]))
    service.close()
    with open_capture(folder / "p.inspect") as capture:
        assert capture.stop is not None and capture.stop.left == only[2:]
    return folder


def test_list_names_it(partly: Path) -> None:
    assert "  not computed: jacobian/spectral_norm, jacobian/lag\n" in call("list", "p.inspect", cwd=partly).stdout
    assert json.loads(call("list", "p.inspect", "--json", cwd=partly).stdout)["left"] == [
        "jacobian/spectral_norm", "jacobian/lag",
    ]  # fmt: skip


def test_pack_and_diagnose_name_it(partly: Path) -> None:
    packed = call("pack", "p.inspect", "--overwrite", cwd=partly)
    assert packed.stderr.splitlines() == [str(Path("p.inspect.zip")), SAID]
    assert f"{SAID} No rule has judged that." in call("diagnose", "p.inspect", cwd=partly).stderr


def test_export_names_what_a_panel_or_a_channel_lacks(partly: Path) -> None:
    whole = call("export", "p.inspect", "--panel", "states", "--to", "s.png", cwd=partly)
    assert "Not computed" not in whole.stderr, "it lacks nothing"
    part = call("export", "p.inspect", "--panel", "jacobians", "--to", "j.png", cwd=partly)
    assert part.stderr.splitlines()[-1].startswith("Not computed: jacobian/spectral_norm.")
    nothing = call("export", "p.inspect", "--panel", "lags", "--to", "l.png", cwd=partly, expect=2)
    assert "has nothing to show" in nothing.stderr and "Not computed: jacobian/lag." in nothing.stderr
    absent = call("export", "p.inspect", "--channel", "cell:jacobian/lag", "--to", "l.npy", cwd=partly, expect=2)
    assert SAID in absent.stderr


def test_run_computes_everything_and_tells_its_costs_on_request(tmp_path: Path) -> None:
    keys = ("--only", "states", "--only", "jacobian/spectral_norm")
    plain = call("run", "adding-elman", *keys, "--out", "a.inspect", cwd=tmp_path)
    assert len(plain.stderr.splitlines()) == 2 and "not computed" not in plain.stderr
    told = call("run", "adding-elman", *keys, "--costs", "--out", "b.inspect", cwd=tmp_path).stderr.splitlines()
    with open_capture(tmp_path / "b.inspect") as capture:
        seconds = {s.name.removeprefix(SECONDS): s.value for s in capture.scalars if s.name.startswith(SECONDS)}
    expected = sorted(seconds, key=lambda key: -seconds[key])
    assert len(expected) == 2 and [line.split()[-1] for line in told[-2:]] == expected
    assert all(line.split()[1] == "s" for line in told[-2:])
    assert "not computed" not in call("list", "b.inspect", cwd=tmp_path).stdout


def test_costs_of_many_sequences_are_told_by_part(tmp_path: Path) -> None:
    plain = call("run", "adding-elman", "--data", "examples", "--out", "a.inspect", cwd=tmp_path)
    told = call(
        "run", "adding-elman", "--data", "examples", "--costs", "--out", "b.inspect", cwd=tmp_path
    ).stderr.splitlines()[len(plain.stderr.splitlines()) :]
    parts = [line.partition(" s  ")[2] for line in told]
    assert {"sequences/calls of the model", "sequences/numbers", "sequences/writing"} <= set(parts)
    seconds = [float(line.split()[0]) for line in told]
    assert seconds == sorted(seconds, reverse=True) and max(seconds) > 0
    with open_capture(tmp_path / "b.inspect") as capture:
        assert capture.stop is not None and sum(seconds) <= capture.stop.seconds + 0.01
