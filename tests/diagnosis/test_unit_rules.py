"""Rules of units and gates, on generated captures at both sides of their limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.generated_run import Array, Measured, judged, of_rule, severities

UNITS = ("dead", "constant", "duplicate_of", "variance")
SIDES = ("left", "right", "graded")


def units(
    dead: int = 0, constant: int = 0, copies: int = 0, *, of: int = 10, sequences: int = 1, steps: int = 60
) -> Measured:
    """The table of a layer: dead units first, then constant ones, then the others, the last of which repeat one."""
    table = np.zeros((4, of))
    table[0, :dead] = 1
    table[1, dead : dead + constant] = 1
    table[2] = -1
    table[2, of - copies :] = dead + constant
    return about(table, UNITS, sequences, steps)


def about(table: Array, rows: tuple[str, ...], sequences: int, steps: int) -> Measured:
    said = f"exact; from {sequences} sequence{'s' * (sequences != 1)}, {steps:,} step{'s' * (steps != 1)}"
    return Measured("unit", ("statistic", "unit"), table, {"labels": {"statistic": rows}, "method": said})


@pytest.mark.parametrize(
    ("table", "rule", "found"),
    [
        (units(), "dead-units", []),
        (units(dead=1), "dead-units", ["info"]),
        (units(dead=9), "dead-units", ["info"]),  # of one sequence: others may turn them on
        (units(dead=4, sequences=8), "dead-units", ["info"]),
        (units(dead=5, sequences=8), "dead-units", ["warning"]),
        (units(dead=5, sequences=7), "dead-units", ["info"]),
        (units(dead=10), "dead-units", ["warning"]),
        (units(dead=10, steps=20), "dead-units", ["warning"]),
        (units(dead=10, steps=19), "dead-units", []),
        (units(dead=10, steps=1), "dead-units", []),
        (units(constant=9), "constant-units", ["info"]),
        (units(constant=10), "constant-units", ["warning"]),
        (units(constant=9, dead=1), "constant-units", ["warning"]),
        (units(dead=10), "constant-units", []),
        (units(constant=10, steps=20), "constant-units", ["warning"]),
        (units(constant=10, steps=19), "constant-units", []),
        (units(copies=1, of=11), "duplicate-units", []),
        (units(copies=1), "duplicate-units", ["info"]),
        (units(copies=8), "duplicate-units", ["info"]),
        (units(copies=9), "duplicate-units", ["warning"]),
        (units(copies=5, dead=4), "duplicate-units", ["warning"]),
        (units(copies=3, of=4), "duplicate-units", ["warning"]),
        (units(copies=2, of=3), "duplicate-units", ["info"]),
        (units(copies=4, constant=5), "duplicate-units", ["warning"]),
        (units(copies=4, constant=6, of=11), "duplicate-units", ["info"]),  # most stand still, which is another cause
        (units(copies=9, steps=20), "duplicate-units", ["warning"]),
        (units(copies=9, steps=19), "duplicate-units", []),
    ],
)
def test_units_that_do_nothing_or_repeat_another(tmp_path: Path, table: Measured, rule: str, found: list[str]) -> None:
    assert severities(judged(tmp_path / "a.inspect", [{"rnn.l0:h/units": table}]), rule) == found


def test_a_finding_says_of_how_many_sequences_it_is(tmp_path: Path) -> None:
    tables = {"rnn.l0:h/units": units(dead=3), "rnn.l1:h/units": units(dead=3, sequences=12, steps=3600)}
    one, many = of_rule(judged(tmp_path / "a.inspect", [tables]), "dead-units")
    assert one.sure == "counted over 60 steps of one sequence; this run saw only one"
    assert many.sure == "counted over 3,600 steps of 12 sequences"
    assert one.message == "3 of 10 units (30 %) are 0 at every step: 0, 1, 2" and one.place == "rnn.l0"


def test_rules_of_units_say_that_they_did_not_judge_what_is_too_short(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.inspect", [{"rnn.l0:h/units": units(dead=10, steps=1)}])
    assert not found.findings and "dead-units (1 of 20 points)" in found.short and "dead-units" not in found.asked


def test_numbers_that_are_not_known_are_no_finding(tmp_path: Path) -> None:
    empty = about(np.full((4, 5), np.nan), UNITS, 9, 90)
    sides = about(np.full((3, 5), np.nan), SIDES, 9, 90)
    gate = Measured("gate", ("step", "unit"), np.full((90, 5), np.nan, np.float32), {"limits": (0.0, 1.0)})
    times = Measured("unit", ("unit",), np.full(5, np.nan))
    tables = {
        "rnn.l0:h/units": empty, "rnn.l0:h/saturation": sides, "rnn.l0:gate/forget/saturation": sides,
        "rnn.l0:gate/forget": gate, "rnn.l0:gate/input": gate, "rnn.l0:gate/forget/timescale": times,
    }  # fmt: skip
    assert not judged(tmp_path / "a.inspect", [tables], {"rnn.l0:gate/forget/keeps": 1.0}).findings


def sides(left: float, right: float, steps: int = 60) -> Measured:
    return about(np.repeat([[left], [right], [1 - left - right]], 6, axis=1), SIDES, 1, steps)


def test_gates_of_one_layer_are_one_finding(tmp_path: Path) -> None:
    shut = {f"{place}:gate/{gate}/saturation": sides(0.6, 0.35) for place in ("a", "b") for gate in "io"}
    found = of_rule(
        judged(tmp_path / "a.inspect", [{**shut, "a:gate/u/saturation": sides(0.2, 0.2)}]), "saturated-gates"
    )
    assert [one.place for one in found] == ["a", "b"]
    assert found[0].evidence == ("a:gate/i/saturation", "a:gate/o/saturation")
    assert found[0].message.startswith("2 gates are nearly always open or shut: i is below 0.1 in 60 %")
    assert "o is below 0.1" in found[0].message and " u " not in found[0].message


@pytest.mark.parametrize(
    ("signal", "table", "found"),
    [
        ("gate/output/saturation", sides(0.3, 0.61), [("saturated-gates", "info")]),
        ("gate/output/saturation", sides(0.3, 0.59), []),
        ("gate/output/saturation", sides(0.3, 0.61, steps=20), [("saturated-gates", "info")]),
        ("gate/output/saturation", sides(0.3, 0.61, steps=19), []),
        ("gate/output/saturation", sides(0.09, 0.91), []),  # open, it passes the state as it is
        ("gate/output/saturation", sides(0.11, 0.89), [("saturated-gates", "info")]),
        ("gate/input/saturation", sides(0.0, 0.91), [("saturated-gates", "info")]),
        ("gate/forget/saturation", sides(0.0, 1.0), []),  # it keeps the state
        ("gate/forget/saturation", sides(0.91, 0.0), [("saturated-gates", "info")]),
        ("gate/keep/saturation", sides(0.0, 1.0), []),
        ("gate/keep/saturation", sides(0.91, 0.0), [("saturated-gates", "info")]),
        ("gate/replace/saturation", sides(0.0, 0.91), [("saturated-gates", "info")]),
        ("gate/replace/saturation", sides(1.0, 0.0), []),
        ("h/saturation", sides(0.3, 0.21), [("saturated-states", "info")]),
        ("h/saturation", sides(0.3, 0.19), []),
        ("h/saturation", sides(0.3, 0.21, steps=20), [("saturated-states", "info")]),
        ("h/saturation", sides(0.3, 0.21, steps=19), []),
        ("candidate/saturation", sides(0.5, 0.5), []),
    ],
)
def test_saturation_is_information(tmp_path: Path, signal: str, table: Measured, found: list[tuple[str, str]]) -> None:
    keeps = {"rnn.l0:gate/keep/keeps": 1.0, "rnn.l0:gate/replace/keeps": 0.0}
    said = judged(tmp_path / "a.inspect", [{f"rnn.l0:{signal}": table}], keeps).findings
    assert [(one.rule, one.severity) for one in said] == found


def test_a_candidate_that_is_named_by_its_variable_is_no_state(tmp_path: Path) -> None:
    """g of an LSTM that is written by hand, which its channel says is a gate."""
    channels = {"cell:g": Measured("gate", ("step", "unit"), np.ones((60, 10))), "cell:g/saturation": sides(0.5, 0.5)}
    assert not judged(tmp_path / "a.inspect", [channels], finished=False).findings


def gate(value: float, steps: int = 60, change: float = 0.2, rows: int | None = None) -> Measured:
    """Six units at `value`, one of them less by `change` at one step."""
    values = np.full((steps, 6), value)
    values[-1, 2] -= change
    return Measured("gate", ("step", "unit"), values, {"limits": (0.0, 1.0)}, rows)


KEPT = Measured("memory", ("step", "unit"), np.zeros((60, 6), np.uint8), {"title": "long-term memory (z > 0.9)"})


def scanned(largest: float) -> Measured:
    """The states of a scan, one unit of which rises from 0 to its largest value."""
    values = np.zeros((60, 6))
    values[:, 2] = np.linspace(0, largest, 60)
    return Measured("state", ("step", "unit"), values)


APART = Measured("memory", ("step", "unit"), KEPT.values, {"title": "long-term memory (keep > 0.9 and write < 0.1)"})


@pytest.mark.parametrize(
    ("gates", "keeps", "found"),
    [
        ({"gate/forget": gate(0.5), "gate/input": gate(0.0008, change=0)}, ("gate/forget", 1.0), ["warning"]),
        ({"gate/forget": gate(0.5), "gate/input": gate(0.0009, change=0)}, ("gate/forget", 1.0), []),
        ({"gate/forget": gate(0.5)}, ("gate/forget", 1.0), []),
        ({"gate/update": gate(0.9992, change=0), "gate/memory": KEPT}, ("gate/update", 1.0), ["warning"]),
        ({"gate/update": gate(0.0008, change=0), "gate/memory": KEPT}, ("gate/update", 1.0), []),
        ({"gate/update": gate(0.0008, change=0), "gate/memory": KEPT}, ("gate/update", 0.0), ["warning"]),
        ({"gate/keep": gate(0.9992, change=0), "gate/memory": APART}, ("gate/keep", 1.0), []),
        ({"gate/keep": gate(0.5), "gate/write": gate(0.0008, change=0)}, ("gate/keep", 1.0), ["warning"]),
        ({"gate/keep": gate(0.9992, change=0), "gate/write": gate(0.0009, change=0)}, ("gate/keep", 1.0), []),
        # a sum has a decay of 1 and writes all the same
        ({"gate/decay": gate(1.0, change=0), "gate/memory": KEPT, "h": scanned(3.0)}, ("gate/decay", 1.0), []),
        (
            {"gate/decay": gate(1.0, change=0), "gate/memory": KEPT, "h": scanned(1e-6)},
            ("gate/decay", 1.0),
            ["warning"],
        ),
        (
            {
                "gate/decay": gate(1.0, change=0),
                "gate/memory": KEPT,
                "h.real": scanned(0.0),
                "h.imaginary": scanned(3.0),
            },
            ("gate/decay", 1.0),
            [],
        ),
        ({"gate/forget": gate(0.5), "gate/input": gate(1e-9, steps=5)}, ("gate/forget", 1.0), ["warning"]),
        ({"gate/forget": gate(0.5), "gate/input": gate(1e-9, steps=4)}, ("gate/forget", 1.0), []),
        ({"gate/forget": gate(0.5), "gate/input": gate(1e-9, rows=30)}, ("gate/forget", 1.0), []),
    ],
)
def test_a_gate_that_lets_nothing_in(
    tmp_path: Path, gates: dict[str, Measured], keeps: tuple[str, float], found: list[str]
) -> None:
    named = {f"rnn.l0:{signal}": values for signal, values in {"gate/memory": APART, **gates}.items()}
    said = judged(tmp_path / "a.inspect", [named], {f"rnn.l0:{keeps[0]}/keeps": keeps[1]}, finished=False)
    assert severities(said, "nothing-written") == found


@pytest.mark.parametrize(
    ("signal", "values", "found"),
    [
        ("gate/input", gate(0.5, change=0.0009), ["info"]),
        ("gate/input", gate(0.5, change=0.0011), []),
        ("gate/input", gate(0.5, change=0, steps=20), ["info"]),
        ("gate/input", gate(0.5, change=0, steps=19), []),
        ("gate/input", gate(0.5, change=0, steps=1), []),
        ("gate/input", gate(0.5, change=0, rows=40), []),  # an unfinished run
        ("gate/decay", gate(0.5, change=0), []),  # of a linear recurrence that reads no input, by design
    ],
)
def test_gates_that_do_not_change(tmp_path: Path, signal: str, values: Measured, found: list[str]) -> None:
    said = judged(tmp_path / "a.inspect", [{f"rnn.l0:{signal}": values}], finished=False)
    assert severities(said, "frozen-gates") == found


@pytest.mark.parametrize(
    ("longest", "reach", "found"),
    [
        (1.44, None, "by its gate forget no unit keeps a thousandth of its state for more than 10 steps (longest τ 1.44);"
         " the sequence has 60; the gate is near ½, as with a bias of 0"),
        (0.4, 20.0, "by its gate forget no unit keeps a thousandth of its state for more than 3 steps (longest τ 0.4);"
         " the sequence has 60, the loss depends on inputs 20 steps back"),
        (0.4, 3.0, ""),
        (0.4, None, ""),  # trained to forget, for all that is known
        (1.44, 3.0, ""),
        (2.17, None, "by its gate forget no unit keeps a thousandth of its state for more than 15 steps (longest τ 2.17)"
         "; the sequence has 60; the gate is near ½, as with a bias of 0"),
        (2.18, None, ""),
        (np.inf, None, ""),
    ],
)  # fmt: skip
def test_gates_that_forget_within_a_few_steps(tmp_path: Path, longest: float, reach: float | None, found: str) -> None:
    times = np.full(6, min(longest, 1.5))
    times[3] = longest
    tables = {
        "rnn.l0:gate/forget": gate(0.5),
        "rnn.l0:gate/forget/timescale": Measured("unit", ("unit",), times),
    }
    scalars = {} if reach is None else {"input:influence/reach": reach}
    said = of_rule(judged(tmp_path / "a.inspect", [tables], scalars), "short-memory")
    assert [one.message for one in said] == ([found] if found else [])
    assert all(one.severity == "info" for one in said)


PAST = ("past_p", "loss_with_past", "loss_without_past")


@pytest.mark.parametrize(
    ("longest", "past", "found"),
    [
        (8.5, (0.5, 1.4, 1.4), True),  # 58.7 steps of 60; nothing was learned of the past
        (8.7, (0.5, 1.4, 1.4), False),
        (0.4, (0.01, 0.7, 1.4), False),  # what is needed was learned
        (0.4, (0.5, 1.0, 1.4), False),  # too few losses to tell
        (0.4, (np.nan, np.nan, np.nan), False),
    ],
)
def test_gates_that_forget_where_nothing_was_learned_of_the_past(
    tmp_path: Path, longest: float, past: tuple[float, float, float], found: bool
) -> None:
    tables = {
        "rnn.l0:gate/forget": gate(0.5),
        "rnn.l0:gate/forget/timescale": Measured("unit", ("unit",), np.full(6, longest)),
    }
    scalars = {f"input:influence/{name}": value for name, value in zip(PAST, past, strict=True)}
    said = of_rule(judged(tmp_path / "a.inspect", [tables], {**scalars, "input:influence/reach": 2.0}), "short-memory")
    assert [one.severity for one in said] == (["info"] if found else [])
    assert all(
        "is no better than without the past (1.4 with it, 1.4 with another, p = 0.5)" in one.message for one in said
    )


@pytest.mark.parametrize(("axis", "found"), [("step", ["warning"]), ("iteration of rnn", ["info"])])
def test_what_runs_by_itself_is_no_layer_of_alike_units(tmp_path: Path, axis: str, found: list[str]) -> None:
    """The covariance of a Kalman filter reads no input: its entries go to their limit as one."""
    states = Measured("state", ("step", "unit"), np.zeros((60, 10), np.float32), {"domains": {"step": axis}})
    frame = {"rnn:covariance": states, "rnn:covariance/units": units(copies=9)}
    assert severities(judged(tmp_path / "a.inspect", [frame]), "duplicate-units") == found


@pytest.mark.parametrize(("bend", "found"), [(0.0, []), (1e-3, ["warning"])])
def test_a_state_that_counts_its_steps_is_no_layer_of_alike_units(
    tmp_path: Path, bend: float, found: list[str]
) -> None:
    """Exponents n · Δ of a kernel grow by the same at each step: a recurrence by its numbers, and no layer."""
    n = np.arange(60, dtype=np.float32)[:, None]
    rows = n * np.linspace(-0.1, -0.2, 10, dtype=np.float32) * (1 + bend * n)
    frame = {"ssm:h.real": Measured("state", ("step", "unit"), rows), "ssm:h.real/units": units(copies=9)}
    assert severities(judged(tmp_path / "a.inspect", [frame]), "duplicate-units") == found
