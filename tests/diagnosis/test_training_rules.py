"""Rules over a training, on series with known numbers: on both sides of each border, and on what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import inspector
from inspector.capture import Writer, open_any, open_capture
from inspector.diagnosis import RULES, Diagnosis, Settings, diagnose
from inspector.records import Channel, Finding, Frame, Labels, Page, RunStart, RunStop
from inspector.workspace.trainings import find_training

Floats = npt.NDArray[np.float64]
N = 400
RNG = np.random.default_rng(7)
NOISE = RNG.normal(size=N)


def falling(noise: float = 0.02) -> Floats:
    """A loss as a healthy training has it."""
    return 0.1 + 2.0 * np.exp(-np.arange(N) / 80) + noise * NOISE


def judged(
    path: Path,
    loss: Floats | None = None,
    tables: Mapping[str, Floats] | None = None,
    names: tuple[str, ...] = ("a.weight", "b.weight", "b.bias"),
    about: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> Diagnosis:
    """What the rules find in a capture of a training with these series, one column a name."""
    meta = {} if about is None else {"training": dict(about)}
    with Writer(path, RunStart(run="r", title="t", meta=meta)) as writer:
        if loss is not None:
            writer.write(series("training:loss", ("iteration",), "loss"))
            writer.write(Page("training:loss", 0, (0,), loss))
        for name, table in (tables or {}).items():
            dims = ("iteration",) if table.ndim == 1 else ("iteration", "parameter")
            writer.write(series(name, dims, name))
            writer.write(Page(name, 0, (0,) * table.ndim, table))
        writer.write(Labels("parameter", names))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, settings)
    assert not found.broken, found.broken
    return found


def series(name: str, dims: tuple[str, ...], title: str) -> Channel:
    return Channel(name=name, kind="series", dims=dims, shape=(None,) * len(dims), dtype="float64", title=title)


def of(found: Diagnosis, rule: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.rule == rule]


def one(found: Diagnosis, rule: str) -> Finding:
    (finding,) = of(found, rule)
    assert finding.id == RULES[rule].id and finding.frame == -1 and finding.reference and finding.remedy
    assert finding.sure and finding.unless
    return finding


def ones(*columns: float) -> Floats:
    return np.tile(np.array(columns, np.float64), (N, 1))


def test_a_healthy_training_is_left_alone_and_it_is_said_who_looked(tmp_path: Path) -> None:
    tables = {
        "parameters:gradient/norm": np.abs(1 + 0.1 * RNG.normal(size=(N, 3))),
        "parameters:gradient/non_finite": ones(0, 0, 0),
        "parameters:update/norm": ones(1e-3, 1e-3, 1e-3),
        "parameters:update/ratio": ones(1e-3, 1e-3, 0.5),
        "parameters:update/lost": ones(0.04, 0.04, 0.0),
        "parameters:adam/rms": 1 + 0.2 * RNG.normal(size=(N, 3)),
        "modules:activation/zero": ones(0.5, 0.6, 0.0),
        "modules:attention/entropy": ones(1.5, 1.0, 0.5),
        "training:gradient_norm": ones(1.0, 1.0),
        "training:batch_hash": RNG.permutation(N).astype(float),
    }
    about = {
        "training": True,
        "optimizers": [{"groups": [{"settings": {"weight_decay": 0}, "parameters": ["b.bias"]}]}],
    }
    found = judged(tmp_path / "a.inspect", falling(), tables, about=about)
    assert found.findings == ()
    training = {key for key, rule in RULES.items() if rule.scope == "training" and "series" in rule.reads}
    assert training <= set(found.asked) and not training & set(found.silent)


def test_without_series_no_rule_says_that_it_looked(tmp_path: Path) -> None:
    assert judged(tmp_path / "a.inspect").asked == ()


def test_what_is_too_short_to_be_judged_is_not_said_to_have_been(tmp_path: Path) -> None:
    tables = ("parameters:gradient/norm", "parameters:adam/rms", "parameters:update/norm")
    short = {name: ones(1, 1, 1)[:5] for name in tables}
    found = judged(tmp_path / "a.inspect", 3 + 0.01 * NOISE[:45], short)
    told = {"diverged (45 of 60 points)", "plateau (45 of 60 points)", "loss-spike (45 of 51 points)"}
    assert set(found.short) == told | {
        "no-gradient (5 of 10 points)",
        "unmoved (5 of 10 points)",
        "stale-second-moment (5 of 23 points)",
    }
    assert found.asked == ("nonfinite-training",) and not {"plateau", "no-gradient"} & set(found.silent)


# -- exact


def test_nan_with_its_first_iteration_and_parameter(tmp_path: Path) -> None:
    loss, counts = falling(), ones(0, 0, 0)
    counts[120:, 1] = 3
    counts[121:, 0] = 3
    loss[121:] = np.nan
    found = one(judged(tmp_path / "a.inspect", loss, {"parameters:gradient/non_finite": counts}), "nonfinite-training")
    assert found.iterations == (120,) and found.severity == "error" and found.place == "b.weight"
    assert found.message == (
        "the gradient of b.weight is not finite first at iteration 120; loss in 279 of 400 points from iteration 121 on"
    )


def test_infinity_in_the_loss_alone(tmp_path: Path) -> None:
    loss = falling()
    loss[399] = np.inf
    found = one(judged(tmp_path / "a.inspect", loss), "nonfinite-training")
    assert found.message == "the loss is not finite first at iteration 399 in 1 of 400 points"


@pytest.mark.parametrize(("value", "words"), [(np.nan, "no gradient"), (0.0, "a gradient of exactly 0")])
def test_a_parameter_that_the_loss_does_not_reach(tmp_path: Path, value: float, words: str) -> None:
    norms = ones(1.0, value, 1.0)
    found = one(judged(tmp_path / "a.inspect", tables={"parameters:gradient/norm": norms}), "no-gradient")
    assert found.place == "b.weight" and words in found.message and "1 of 3 parameters" in found.message
    norms[7, 1] = 1e-30
    assert not of(judged(tmp_path / "b.inspect", tables={"parameters:gradient/norm": norms}), "no-gradient")
    frozen = {"frozen": ["b.weight"]}
    norms[7, 1] = value
    assert not of(
        judged(tmp_path / "c.inspect", tables={"parameters:gradient/norm": norms}, about=frozen), "no-gradient"
    )


def test_parameters_that_never_had_a_number_have_no_column(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.inspect", tables={"parameters:gradient/norm": ones(1.0, 1.0)})
    assert one(found, "no-gradient").place == "b.bias"


def test_too_few_iterations_prove_nothing(tmp_path: Path) -> None:
    tables = {"parameters:gradient/norm": ones(1.0, np.nan, 1.0)[:9], "parameters:update/norm": ones(0.0, 0.0, 0.0)[:9]}
    found = judged(tmp_path / "a.inspect", falling()[:59] * 0 + 1, tables)
    assert found.findings == ()


def test_parameters_without_an_optimizer(tmp_path: Path) -> None:
    about = {"without_optimizer": ["a.weight", "b.bias"], "frozen": ["b.bias"]}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "not-in-optimizer")
    assert found.message == "no optimizer has a.weight, though it requires a gradient" and found.place == "a.weight"


def test_a_step_without_effect(tmp_path: Path) -> None:
    tables = {"parameters:gradient/norm": ones(1.0, 1.0, 0.0), "parameters:update/norm": ones(0.0, 1e-3, 0.0)}
    found = one(judged(tmp_path / "a.inspect", tables=tables), "unmoved")
    assert found.severity == "error" and found.place == "a.weight"
    tables["parameters:update/norm"][300, 0] = 1e-9
    assert not of(judged(tmp_path / "b.inspect", tables=tables), "unmoved")


def test_updates_lost_in_half_precision(tmp_path: Path) -> None:
    found = one(
        judged(tmp_path / "a.inspect", tables={"parameters:update/lost": ones(0.4, 0.97, 0.51)}), "updates-lost"
    )
    assert "2 of 3 parameters" in found.message and "b.weight 97 %" in found.message
    settings = Settings(limits={"updates-lost.share": 0.98})
    kept = {"parameters:update/lost": ones(0.4, 0.97, 0.51)}
    assert not of(judged(tmp_path / "b.inspect", tables=kept, settings=settings), "updates-lost")


def test_one_batch_again_and_again(tmp_path: Path) -> None:
    found = one(judged(tmp_path / "a.inspect", tables={"training:batch_hash": np.full(N, 5.0)}), "repeated-batch")
    assert found.severity == "warning" and "all 400" in found.message
    pairs = np.repeat(np.arange(N / 2), 2)
    found = one(judged(tmp_path / "b.inspect", tables={"training:batch_hash": pairs}), "repeated-batch")
    assert found.severity == "info" and "200 of 399" in found.message and found.iterations[0] == 1
    epochs = np.tile(np.arange(10.0), N // 10)  # no neighbours are equal, though each comes forty times
    assert not of(judged(tmp_path / "c.inspect", tables={"training:batch_hash": epochs}), "repeated-batch")


def test_modules_in_evaluation_mode(tmp_path: Path) -> None:
    about: dict[str, Any] = {"training": True, "classes": {"a": "Linear", "b": "Dropout", "c": "BatchNorm1d"}}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "evaluation-mode")
    assert found.severity == "info" and "2 modules" in found.message and "b, c" in found.message
    about = {"training": True, "classes": {"a": "Linear"}}
    assert not of(judged(tmp_path / "b.inspect", falling(), about=about), "evaluation-mode")
    found = one(judged(tmp_path / "c.inspect", falling(), about={"training": False}), "evaluation-mode")
    assert found.severity == "warning" and "the model was in evaluation mode" in found.message


def test_decay_on_biases_and_norms(tmp_path: Path) -> None:
    names = [
        "rnn.weight_hh_l0",
        "rnn.bias_hh_l0",
        "norm1.weight",
        "layers.0.ln.weight",
        "normal.weight",
        "embed.weight",
    ]
    about = {"optimizers": [{"groups": [{"settings": {"weight_decay": 0.1}, "parameters": names}]}]}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "decay-on-biases")
    assert found.message.endswith("3 biases and norms: rnn.bias_hh_l0, norm1.weight, layers.0.ln.weight")
    about["optimizers"][0]["groups"][0]["settings"]["weight_decay"] = 0.0
    assert not of(judged(tmp_path / "b.inspect", falling(), about=about), "decay-on-biases")


# -- statistical


def test_a_loss_that_rises_for_good_has_diverged(tmp_path: Path) -> None:
    rising = falling()
    rising[200:] += np.linspace(0, 3, N - 200)
    found = one(judged(tmp_path / "a.inspect", rising), "diverged")
    assert found.severity == "error" and 150 <= found.iterations[0] <= 260
    slight = falling()
    slight[200:] += np.linspace(0, 0.1, N - 200)
    assert not of(judged(tmp_path / "b.inspect", slight), "diverged")


def test_noise_and_a_spike_have_not_diverged(tmp_path: Path) -> None:
    loss = falling()
    loss[300:305] = 9.0
    found = judged(tmp_path / "a.inspect", loss)
    assert not of(found, "diverged") and one(found, "loss-spike").severity == "info"
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(1.0, 0.3, N)
        assert not of(judged(tmp_path / f"{seed}.inspect", noise), "diverged"), seed


def test_a_loss_that_stays_is_a_plateau_and_one_that_falls_slowly_is_none(tmp_path: Path) -> None:
    flat = 2.08 + 0.01 * NOISE
    found = one(judged(tmp_path / "a.inspect", flat), "plateau")
    assert "2.076 at the beginning" in found.message and "next to nothing" not in found.message
    tiny = {"parameters:update/ratio": ones(1e-8, 1e-8, 1e-8)}
    found = one(judged(tmp_path / "b.inspect", flat, tiny), "plateau")
    assert "1e-08" in found.message and found.evidence == ("training:loss", "parameters:update/ratio")
    one_large = {"parameters:update/ratio": ones(0.0, 0.38, 0.0)}  # the others get no gradient
    assert "next to nothing" not in one(judged(tmp_path / "e.inspect", flat, one_large), "plateau").message
    slow = flat - np.linspace(0, 0.2, N)
    assert not of(judged(tmp_path / "c.inspect", slow), "plateau")
    assert not of(judged(tmp_path / "d.inspect", falling()), "plateau")


def test_a_loss_that_rises_and_comes_back_to_where_it_began_has_gained_nothing(tmp_path: Path) -> None:
    after = np.maximum(np.arange(N) - 20, 0)
    hump = 3.32 + 0.02 * NOISE + 180 * np.exp(-after / 40)
    hump[:20] = 3.3
    found = one(judged(tmp_path / "a.inspect", hump), "plateau")
    assert "between them it rose to 1" in found.message and "too large a learning rate" in found.message
    hump[200:] -= 1.0
    assert not of(judged(tmp_path / "b.inspect", hump), "plateau")


def test_a_spike_that_lasts_is_a_warning(tmp_path: Path) -> None:
    loss = falling()
    loss[250:300] += 2.0
    found = one(judged(tmp_path / "a.inspect", loss), "loss-spike")
    assert found.severity == "warning" and found.iterations == (250,) and "50 points later" in found.message
    restless = falling(noise=0.005)
    restless[340:390] += 0.12  # less than a tenth of what was gained
    assert one(judged(tmp_path / "c.inspect", restless), "loss-spike").severity == "info"
    late = falling()
    late[395:] += 2.0
    found = one(judged(tmp_path / "d.inspect", late), "loss-spike")
    assert found.severity == "info" and "it was not back in the 4 points since" in found.message
    steady = falling(noise=0.0)
    assert not of(judged(tmp_path / "b.inspect", steady), "loss-spike")


def test_a_stale_second_moment(tmp_path: Path) -> None:
    rms = ones(1.0, 1.0, 1.0)
    rms[:20, 0] = 9.0  # young
    rms[[100, 200], 1] = 5.0  # rare
    tables = {"parameters:adam/rms": rms}
    assert not of(judged(tmp_path / "a.inspect", tables=tables), "stale-second-moment")
    rms[300, 1] = 2.4
    found = one(judged(tmp_path / "b.inspect", tables=tables), "stale-second-moment")
    assert found.place == "b.weight" and found.iterations == (100, 200, 300)
    assert found.message == "gradients are more than 2.3 times Adam's estimate in 3 of 380 recorded iterations; " \
        "no large jump of the loss within 8 iterations after several"  # fmt: skip


def test_a_stale_second_moment_is_a_warning_only_where_the_loss_jumps_soon_after(tmp_path: Path) -> None:
    rms, loss = ones(1.0, 1.0, 1.0), falling()
    for first in (96, 196, 296):
        rms[first : first + 4, 1] = 5.0
    loss[[95, 199, 308]] += 3.0  # before them, at the last of them (after three of eight), too late
    tables = {"parameters:adam/rms": rms}
    found = one(judged(tmp_path / "a.inspect", loss, tables), "stale-second-moment")
    assert found.severity == "info" and "no large jump of the loss" in found.message
    loss[204] += 3.0
    found = one(judged(tmp_path / "b.inspect", loss, tables), "stale-second-moment")
    assert found.severity == "warning" and "jumped within 8 iterations after several, at iteration 204" in found.message
    rms[196:199, 1] = 1.0  # one rare batch
    found = one(judged(tmp_path / "c.inspect", loss, tables), "stale-second-moment")
    assert found.severity == "info"


def test_a_stale_second_moment_is_no_warning_where_the_loss_jumped_by_little_of_what_was_gained(tmp_path: Path) -> None:
    rms, loss = ones(1.0, 1.0, 1.0), falling(0.001)
    rms[300:310, 1] = 5.0
    tables = {"parameters:adam/rms": rms}
    for height, severity in ((0.1, "info"), (0.3, "warning")):
        loss[310] = loss[309] + height
        found = one(judged(tmp_path / f"{severity}.inspect", loss, tables), "stale-second-moment")
        assert found.severity == severity


def test_a_loss_that_only_unlearns_a_random_beginning_does_not_fall(tmp_path: Path) -> None:
    """A first block that is 3 % above guessing, and one that is 10 % above it, which may be all that can be gained."""
    for above, told in ((1.03, 1), (1.1, 0)):
        loss = 2.08 + 0.002 * NOISE
        loss[: N // 20] *= above
        assert len(of(judged(tmp_path / f"{above}.inspect", loss), "plateau")) == told
    loss = 2.08 * np.exp(-0.04 * np.arange(N) / N) + 0.0005 * NOISE  # 4 % in all, but it falls to the end
    assert not of(judged(tmp_path / "slow.inspect", loss), "plateau")


def test_a_small_fall_counts_only_where_it_goes_on(tmp_path: Path) -> None:
    """Half a per cent in perfect order, down to guessing in the first half; and as little, steadily to the end."""
    at = np.arange(N) / N
    guessing = 2.08 + 0.012 * np.exp(-12 * at) + 0.001 * NOISE
    assert one(judged(tmp_path / "a.inspect", guessing), "plateau").severity == "warning"
    steady = 2.08 - 0.012 * at + 0.001 * NOISE
    assert not of(judged(tmp_path / "b.inspect", steady), "plateau")


# -- descriptive


def test_clipping_that_is_always_on(tmp_path: Path) -> None:
    norms = ones(4.0, 1.0)
    found = one(judged(tmp_path / "a.inspect", tables={"training:gradient_norm": norms}), "clipping-always")
    assert "100 % of 400" in found.message and "by 0.25" in found.message
    norms[: N // 5] = 0.5
    assert not of(judged(tmp_path / "b.inspect", tables={"training:gradient_norm": norms}), "clipping-always")


def test_a_gradient_that_no_optimizer_gets_is_not_taken_for_clipped(tmp_path: Path) -> None:
    """The third parameter is in no optimizer, so that its gradient grows and is in the norm before clipping alone."""
    before, after = ones(3.0, 4.0, 100.0), ones(3.0, 4.0, np.nan)
    tables = {
        "training:gradient_norm": ones(np.sqrt(25 + 1e4), 5.0),
        "parameters:gradient/norm": before,
        "parameters:gradient/norm_clipped": after,
    }
    assert not of(judged(tmp_path / "a.inspect", tables=tables), "clipping-always")
    tables["parameters:gradient/norm_clipped"] = ones(0.3, 0.4, np.nan)
    assert "by 0.1 in the middle" in one(judged(tmp_path / "b.inspect", tables=tables), "clipping-always").message
    tables["parameters:gradient/norm_clipped"] = ones(np.nan, np.nan, np.nan)
    assert not of(judged(tmp_path / "c.inspect", tables=tables), "clipping-always")


def test_outputs_that_are_zero(tmp_path: Path) -> None:
    zero = ones(0.5, 0.95, 0.2)
    found = one(judged(tmp_path / "a.inspect", tables={"modules:activation/zero": zero}), "dead-activations")
    assert found.place == "b.weight" and "95 %" in found.message
    zero[-15:, 1] = 0.5  # they came back
    assert not of(judged(tmp_path / "b.inspect", tables={"modules:activation/zero": zero}), "dead-activations")


def test_steps_too_small_or_too_large(tmp_path: Path) -> None:
    found = of(judged(tmp_path / "a.inspect", tables={"parameters:update/ratio": ones(1e-7, 0.3, 0.5)}), "step-size")
    assert [(f.place, f.severity) for f in found] == [("a.weight", "info"), ("b.weight", "info")]
    assert "less than 1e-05" in found[0].message and "more than 0.1" in found[1].message


RECORDED = {
    "training-vanishing": ["plateau warning", "reach-through-time warning"],
    "training-exploding": ["reach-through-time warning"],
    "training-dead-units": ["dead-activations warning", "step-size warning"],
    "training-spike": ["loss-spike info"],
    "training-healthy": [],
}


@pytest.mark.parametrize("name", RECORDED)
def test_each_recorded_training_is_named_for_what_it_has(name: str) -> None:
    """Real trainings: each illness is found, the twin that learns is left alone."""
    with open_capture(find_training(name).capture) as capture:
        found = diagnose(capture, capture.frames)
    assert sorted(f"{one.rule} {one.severity}" for one in found.findings) == RECORDED[name] and not found.broken


@pytest.mark.parametrize(
    ("products", "loss", "clipped", "said"),
    [
        ([1, 1e-1, 1e-2, 1e-4], "flat", False, "warning: the loss does not fall, and of a change of the state 0.0001"),
        ([1, 1e-1, 1e-2, 1e-4], "falls", False, ""),
        ([1, 0.9, 0.8, 0.7], "flat", False, ""),
        (
            [1, 10, 100, 2000],
            "falls",
            False,
            "warning: a change of the state is 2e+03 times as large after 3 steps, and no",
        ),
        (
            [1, 10, 100, 2000],
            "falls",
            True,
            "info: a change of the state is 2e+03 times as large after 3 steps; the grad",
        ),
        ([1, 10, 100, 500], "flat", False, ""),
        ([1, np.nan, np.nan, np.nan], "flat", False, ""),
        ([1, 10, 100, 2000], "flat", None, ""),
        ([1, 10, 100, 2000], "falls", None, ""),  # whether it is clipped is not known
    ],
)
def test_reach_through_time(tmp_path: Path, products: list[float], loss: str, clipped: bool | None, said: str) -> None:
    norms = ones(1.0, 0.5 if clipped else 1.0)
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="iteration 0"))
        writer.write(series("training:loss", ("iteration",), "loss"))
        writer.write(Page("training:loss", 0, (0,), falling() if loss == "falls" else 2.08 + 0.01 * NOISE))
        if clipped is not None:
            writer.write(series("training:gradient_norm", ("iteration", "statistic"), "gradient norm"))
            writer.write(Page("training:gradient_norm", 0, (0, 0), norms))
        name, statistics = "rnn.l0:jacobian/lag", ("p10", "median")
        writer.write(
            Channel(
                name=name, kind="lag", dims=("statistic", "lag"), shape=(2, 4), dtype="float64",
                labels={"statistic": statistics},
            )
        )  # fmt: skip
        writer.write(Page(name, 0, (0, 0), np.array([[0.0] * 4, products])))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        found = of(diagnose(capture, capture.frames), "reach-through-time")
    assert [f"{one.severity}: {one.message}".startswith(said) and one.place for one in found] == (
        ["rnn.l0"] if said else []
    )


def test_first_steps_that_replace_the_weights(tmp_path: Path) -> None:
    """A rate that is far too large: later the weights are large, and steps are small beside them."""
    names = ("a.weight", "b.weight", "c.weight", "c.bias")
    ratio = ones(1e-3, 1e-3, 1e-3, 1e-3)
    ratio[0] = (0.93, 0.3, 0.95, 1.0)
    tables = {"parameters:update/ratio": ratio}
    found = one(judged(tmp_path / "a.inspect", tables=tables, names=names), "step-size")
    assert found.severity == "warning" and found.iterations == (0,)
    assert "2 of 3 changed by more than 0.5 of their norm after it" in found.message and "a.weight" in found.message
    ratio[0] = (0.93, 0.3, 0.02, 1.0)  # one output layer and its bias that began at 0
    assert not of(judged(tmp_path / "b.inspect", tables=tables, names=names), "step-size")


def test_every_run_of_a_folder_is_judged_and_named(tmp_path: Path) -> None:
    flat, rises, jumps = 3 + 0.05 * NOISE, falling(), falling()
    rises[200:] += np.linspace(0, 6, 200)
    jumps[250:300] += 2.0
    for name, loss in {"flat": flat, "flat2": flat, "rises": rises, "jumps": jumps, "well": falling()}.items():
        lines = [f"{n},{value}" for n, value in enumerate(loss)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,train/loss", *lines]))
    with open_any(tmp_path) as log:
        found = diagnose(log, log.frames)
    assert [one.message.split(" is ")[0] for one in of(found, "plateau")] == ["flat: the loss", "flat2: the loss"]
    assert [one.message.split(" rose ")[0] for one in of(found, "diverged")] == ["rises: the loss"]
    assert "jumps: the loss jumped" in " ".join(one.message for one in of(found, "loss-spike"))


def test_no_sample_training_is_accused_of_anything() -> None:
    """Real trainings, most of which learn; those that are ill on purpose are ill by time step, which no history shows."""
    histories = sorted((Path(inspector.__file__).parents[1] / "sample_models" / "checkpoints").glob("*/history.json"))
    assert len(histories) > 30
    for path in histories:
        with open_any(path) as log:
            found = diagnose(log, log.frames)
        assert {"diverged", "plateau", "loss-spike", "nonfinite-training"} <= set(found.asked), path.parent.name
        assert not [one for one in found.findings if one.severity != "info"], (path.parent.name, found.findings)
