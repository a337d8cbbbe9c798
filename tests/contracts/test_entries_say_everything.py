"""Every entry of every registry says of itself what window, command line and Python need; no list elsewhere does."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import inspector
from inspector.capture import CaptureError, open_log
from inspector.capture.logs import LOGS
from inspector.cli.catalogue import log_entry
from inspector.diagnosis import RULES
from inspector.engine.cells.family import FAMILIES
from inspector.engine.pipeline import RunOptions, chosen_quantities
from inspector.engine.registries import INPUTS, LOADERS, PROBES, QUANTITIES
from inspector.engine.session.catalogue import entries
from inspector.gui.panel.registry import PANELS, ordered
from inspector.records import NEEDS, Entry, Option, decode, encode
from inspector.records.options import EXPECTED
from inspector.registry import Registry
from inspector.workspace.samples import list_samples, samples_elsewhere

ROOT = Path(inspector.__file__).parent
ENGINE: tuple[Registry[Any], ...] = (PROBES, QUANTITIES, LOADERS, INPUTS, FAMILIES)
ENTRIES = [(registry.name, entry) for registry in ENGINE for entry in entries(registry)]
OPTIONS = [(entry.key, option) for _, entry in ENTRIES for option in entry.options]


def named(case: tuple[str, Entry]) -> str:
    return f"{case[0]}:{case[1].key}"


@pytest.mark.parametrize("registry", [*ENGINE, PANELS, RULES, LOGS], ids=lambda registry: registry.name)
def test_nothing_is_broken(registry: Registry[Any]) -> None:
    registry.load()
    assert not registry.broken and len(registry)


@pytest.mark.parametrize("case", ENTRIES, ids=named)
def test_an_entry_travels_whole_and_has_one_sentence(case: tuple[str, Entry]) -> None:
    _, entry = case
    assert decode(encode(entry)) == entry
    assert entry.title and entry.summary and "\n" not in entry.summary and len(entry.summary) < 140
    assert set(entry.needs) <= set(NEEDS)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in entry.suffixes)
    assert all(bytes.fromhex(magic) for magic in entry.magic)


@pytest.mark.parametrize(("key", "option"), OPTIONS, ids=[f"{key}@{option.name}" for key, option in OPTIONS])
def test_an_option_is_complete(key: str, option: Option) -> None:
    assert option.name.isidentifier() and option.type in EXPECTED
    assert option.help.endswith(".") and option.help[0].isupper()
    assert (option.type == "choice") == bool(option.choices)
    if option.default is not None:
        assert option.type == "texts" or option.value(option.written(option.value(option.default))) == option.value(
            option.default
        )


@pytest.mark.parametrize("key", list(QUANTITIES))
def test_a_quantity_takes_its_options_by_name(key: str) -> None:
    quantity = QUANTITIES[key]
    assert quantity.default or quantity.cost, "what is computed on request says what it costs"
    if quantity.function is not None:
        taken = inspect.signature(quantity.function).parameters
        for option in quantity.options:
            assert taken[option.name].default == option.default, "the function and the entry have one default"
    assert chosen_quantities(RunOptions(only=(key,))) == [key]


def test_suffixes_belong_to_one_entry() -> None:
    for registry in (LOADERS, INPUTS):
        owners: dict[str, str] = {}
        for entry in entries(registry):
            for suffix in entry.suffixes:
                assert owners.setdefault(suffix, entry.key) == entry.key, suffix
    assert not {s for e in entries(LOADERS) for s in e.suffixes} & {s for e in entries(INPUTS) for s in e.suffixes}


def test_inputs_can_be_offered() -> None:
    found = {entry.key: entry for entry in entries(INPUTS)}
    assert len({entry.title for entry in found.values()}) == len(found), "titles stand in one menu"
    for entry in found.values():
        assert entry.form in ("line", "choice", "file", "example", "several") or entry.suffixes, (
            f"{entry.key} cannot be reached"
        )
        assert (entry.form == "choice") == bool(entry.choices) and (entry.form == "line") == bool(entry.prompt)
        assert {value for option in entry.options for value in option.of_value} <= set(entry.choices)


def test_panels_say_where_they_stand() -> None:
    panels = ordered()
    assert len({panel.tab_order for _, panel in panels}) == len(panels) and len(
        {panel.title for _, panel in panels}
    ) == len(panels)
    for key, panel in panels:
        assert panel.key == key and panel.hint.endswith(".") and panel.tab_row in ("upper", "lower")
        assert all(not QUANTITIES[extra].default for extra in panel.extra)


@pytest.mark.parametrize("key", list(LOGS))
def test_a_log_reader_says_how_its_files_are_recognised(key: str, tmp_path: Path) -> None:
    reader = LOGS[key]
    entry = log_entry(key, reader)
    assert decode(encode(entry)) == entry
    assert entry.title and entry.summary.endswith(".") and "\n" not in entry.summary and len(entry.summary) < 140
    assert reader.names and all(isinstance(head, bytes) and head for head in reader.magic)
    root, path = tmp_path, tmp_path / "a" / reader.names[0].replace("*", "x")
    assert reader.run_of(path, root).startswith(("a", "x")) and reader.chosen([path]) == [path]
    assert isinstance(reader.run_of(path, path), str), "a file that is opened by itself has a run too"
    path.parent.mkdir()
    for content in (b"", b"\0" * 100, b"{", b"[" * 5000, b"a,b\n1,2\n", b"\xff\xfe" * 40):
        path.write_bytes(content)
        assert isinstance(reader.sniff(path, content[:4096]), bool)
        with suppress(CaptureError):
            open_log(path)


def test_rules_and_samples_describe_themselves() -> None:
    for key, rule in RULES.items():
        assert rule.title and rule.summary.endswith(".") and rule.reads, key
    assert not samples_elsewhere()[1]
    assert all(sample.title and sample.shows and sample.module for sample in list_samples())


@pytest.mark.parametrize("package", ["gui", "cli", "transport"])
def test_no_list_of_suffixes_stands_elsewhere(package: str) -> None:
    """Suffixes of sequences and checkpoints are asked of the entries. Files that are written have lists of their own."""
    read = {suffix for registry in (LOADERS, INPUTS) for entry in entries(registry) for suffix in entry.suffixes}
    written = {".npy", ".npz", ".csv", ".txt", ".png", ".gif", ".apng", ".webp"}
    for path in (ROOT / package).rglob("*.py"):
        found = set(re.findall(r'"\*?(\.\w+)"', path.read_text(encoding="utf-8")))
        assert not found & (read - written), path.name
