"""The numbers of a watched training, against ones computed beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Capture
from inspector.capture.coordinates import numbers_along


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def table(capture: Capture, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Column name → values over the recorded iterations."""
    channel = capture.channels[name]
    names = capture.labels(channel.domain(channel.dims[1]))
    return {names[n]: values for n, values in enumerate(capture.array(name).T)}


def run(path: Path, loop: Any, model: nn.Module | None = None, **options: Any) -> Capture:
    """Watch a loop(model, optimizer, watcher)."""
    model = small() if model is None else model
    make = options.pop("make", lambda parameters: torch.optim.Adam(parameters, 0.01))
    optimizer = make(model.parameters())
    with inspector.watch(model, optimizer, path / "run.inspect", every=options.pop("every", 1), **options) as watcher:
        loop(model, optimizer, watcher)
        assert watcher.error is None
    return inspector.open_capture(path / "run.inspect")


def loss(model: nn.Module) -> Tensor:
    found: Tensor = model(torch.randn(16, 4)).square().mean()
    return found


def test_loss_norms_updates_and_adam_are_those_of_the_step(tmp_path: Path) -> None:
    expected: dict[str, list[float]] = {name: [] for name in ("loss", "before", "after", "update", "v", "rms", "all")}

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        weight = next(model.parameters())
        for _ in range(5):
            found = loss(model)
            found.backward()
            expected["loss"].append(float(found.detach()))
            assert weight.grad is not None
            expected["before"].append(float(weight.grad.norm()))
            expected["all"].append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.05)))
            expected["after"].append(float(weight.grad.norm()))
            old = weight.detach().clone()
            optimizer.step()
            expected["update"].append(float((weight - old).detach().norm() / weight.detach().norm()))
            state = optimizer.state[weight]
            v = state["exp_avg_sq"] / (1 - 0.999 ** float(state["step"]))
            expected["v"].append(float(v.mean().sqrt()))
            expected["rms"].append(float((weight.grad.square() / v.clamp_min(1e-16)).mean().sqrt()))
            optimizer.zero_grad()

    with run(tmp_path, loop) as capture:
        assert capture.array("training:loss") == pytest.approx(expected["loss"])
        for name, key in (
            ("gradient/norm", "before"), ("gradient/norm_clipped", "after"), ("update/ratio", "update"),
            ("adam/root_v", "v"), ("adam/rms", "rms"),
        ):  # fmt: skip
            assert table(capture, f"parameters:{name}")["0.weight"] == pytest.approx(expected[key], rel=1e-4), name
        both = table(capture, "training:gradient_norm")
        assert both["before clipping"] == pytest.approx(expected["all"], rel=1e-5)
        assert both["after clipping"] == pytest.approx([min(0.05, one) for one in expected["all"]], rel=1e-3)
        assert table(capture, "training:optimizer")["group 0: lr"].tolist() == [0.01] * 5
        assert {capture.channels[n].kind for n in capture.channels if n.startswith("parameters")} == {"series"}
        assert numbers_along(capture, "iteration").tolist() == [1, 2, 3, 4, 5]  # type: ignore[union-attr]


def test_light_has_losses_settings_and_gradients_alone(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        loss(model).backward()
        optimizer.step()

    with run(tmp_path, loop, cost="light") as capture:
        assert {name.split(":")[1] for name in capture.channels} == {
            "iteration", "time", "loss", "backward_passes", "gradient/norm", "gradient/non_finite", "gradient_norm",
            "optimizer", "cost", "gradient_kept", "evaluation_mode", "graph/nodes", "iteration/graph", "time/graph",
        }  # fmt: skip


def test_accumulated_gradients_are_one_iteration_and_count_complete(tmp_path: Path) -> None:
    norms = []

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        for _ in range(3):
            for _ in range(4):
                (loss(model) / 4).backward()
            norms.append(
                float(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]).norm())
            )
            optimizer.step()
            optimizer.zero_grad()

    with run(tmp_path, loop) as capture:
        assert capture.array("training:iteration").tolist() == [1, 2, 3]
        assert capture.array("training:backward_passes").tolist() == [4, 4, 4]
        assert table(capture, "training:gradient_norm")["before clipping"] == pytest.approx(norms, rel=1e-5)


def test_a_gradient_scaler_is_taken_out(tmp_path: Path) -> None:
    losses = []

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(3):
            found = loss(model)
            losses.append(float(found.detach()))
            scaler.scale(found).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

    with run(tmp_path, loop) as capture:
        assert capture.array("training:loss") == pytest.approx(losses)
        both = table(capture, "training:gradient_norm")
        assert both["before clipping"] == pytest.approx(both["after clipping"], rel=1e-5)
        assert capture.array("training:gradient_scale").tolist() == [1024.0] * 3


def test_steps_that_a_scaler_skips_are_no_iterations(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, watcher: Any) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        for n in range(4):
            scaler.scale(loss(model) * (float("inf") if n == 1 else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        assert watcher.iteration == 3

    with run(tmp_path, loop) as capture:
        assert capture.array("training:iteration").tolist() == [1, 2, 3]
        assert np.isfinite(table(capture, "training:gradient_norm")["after clipping"]).all()


@pytest.mark.parametrize("late", [False, True], ids=["zero before the forward pass", "zero before the backward pass"])
@pytest.mark.parametrize("to_none", [True, False])
def test_a_pass_whose_gradients_are_dropped_is_of_no_iteration(to_none: bool, late: bool, tmp_path: Path) -> None:
    """Of a batch that is left out neither the loss nor anything else is told of the next iteration."""
    torch.manual_seed(1)
    inputs = torch.randn(9, 16, 4)
    losses, means = [], []

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        for n, x in enumerate(inputs):
            if not late:
                optimizer.zero_grad(to_none)
            output = model(x)
            found = output.square().mean() * (float("inf") if n == 4 else 1.0)
            if late:
                optimizer.zero_grad(to_none)
            found.backward()
            if n % 3 == 1:
                continue
            losses.append(float(found.detach()))
            means.append(float(output.detach().abs().mean()))
            optimizer.step()

    with run(tmp_path, loop, cost="full") as capture:
        assert capture.array("training:loss") == pytest.approx(losses)
        assert capture.array("training:backward_passes").tolist() == [1.0] * 6
        assert not [event for event in capture.events if event.kind == "non-finite"]
        if not late:  # else the next call has been made by the time that the gradients are dropped
            assert table(capture, "modules:activation/mean_abs")["2"] == pytest.approx(means, rel=1e-4)


def test_the_loss_of_an_iteration_whose_first_attempt_a_scaler_skipped(tmp_path: Path) -> None:
    losses = []

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        for n in range(5):
            found = loss(model) * (float("inf") if n == 1 else 1.0)
            scaler.scale(found).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            losses.extend([] if n == 1 else [float(found.detach())])

    with run(tmp_path, loop) as capture:
        assert capture.array("training:loss") == pytest.approx(losses)
        assert capture.array("training:backward_passes").tolist() == [1.0] * 4 and not list(capture.events)


def test_tiny_and_huge_gradients_keep_their_norm(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        for size in (1e-30, 1e25):
            (loss(model) * 0 + sum(one.sum() for one in model.parameters()) * size).backward()
            optimizer.step()
            optimizer.zero_grad()

    with run(tmp_path, loop, make=lambda p: torch.optim.SGD(p, 0.0)) as capture:
        found = table(capture, "parameters:gradient/norm")["0.weight"]
        assert found == pytest.approx([32**0.5 * 1e-30, 32**0.5 * 1e25], rel=1e-4)
        assert table(capture, "parameters:gradient/non_finite")["0.weight"].tolist() == [0, 0]


def test_entries_that_are_not_finite_are_counted(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        found = loss(model)
        next(model.parameters()).register_hook(
            lambda g: torch.where(torch.arange(g.numel()).view_as(g) < 3, torch.nan, g)
        )
        found.backward()
        optimizer.step()

    with run(tmp_path, loop) as capture:
        assert table(capture, "parameters:gradient/non_finite")["0.weight"].tolist() == [3]
        assert np.isnan(table(capture, "parameters:gradient/norm")["0.weight"]).all()
        assert capture.known("parameters:gradient/norm").all()  # NaN is a value that was recorded


def test_a_parameter_without_gradient_has_no_cell(tmp_path: Path) -> None:
    model = small()
    model[0].bias.requires_grad_(False)

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        for n in range(3):
            loss(model).backward()
            optimizer.step()
            if n == 1:
                model[2].bias.requires_grad_(False)  # type: ignore[index]
            optimizer.zero_grad()

    with run(tmp_path, loop, model) as capture:
        known = capture.known("parameters:gradient/norm")
        names = capture.labels("parameter")
        assert known[:, names.index("0.bias")].tolist() == [False] * 3
        assert known[:, names.index("2.bias")].tolist() == [True, True, False]


def test_updates_lost_in_half_precision(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        model(torch.randn(16, 4, dtype=torch.bfloat16)).square().mean().backward()
        optimizer.step()

    model = small().to(torch.bfloat16)
    with torch.no_grad():
        for one in model.parameters():
            one.fill_(1.0)
    with run(tmp_path, loop, model, make=lambda p: torch.optim.Adam(p, 1e-5)) as capture:
        assert table(capture, "parameters:update/lost")["0.weight"].tolist() == [1.0]


def test_what_a_user_logs_is_kept_at_its_iteration(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, watcher: Any) -> None:
        for n in range(6):
            found = loss(model)
            watcher.log(tokens=64 * n, early=found)
            found.backward()
            optimizer.step()
            watcher.log(loss=float(n), late=n)
        watcher.note("<b>the end</b>")

    with run(tmp_path, loop, every=3) as capture:
        assert capture.array("training:iteration").tolist() == [1, 3, 6]
        assert capture.array("training:loss").tolist() == [0.0, 2.0, 5.0]
        assert numbers_along(capture, "iteration/logged").tolist() == [1, 2, 3, 4, 5, 6]  # type: ignore[union-attr]
        assert table(capture, "training:logged")["late"].tolist() == [0, 1, 2, 3, 4, 5]
        assert capture.array("training:tokens/logged").tolist() == [0, 64, 128, 192, 256, 320]
        assert [(one.kind, one.iteration, one.text) for one in capture.events] == [("note", 6.0, "<b>the end</b>")]


def test_an_optimizer_that_was_not_given_is_found(tmp_path: Path) -> None:
    model, other = small(), small()
    with inspector.watch(model, path=tmp_path / "run.inspect", every=1) as watcher:
        optimizer, second = (torch.optim.SGD(one.parameters(), 0.1) for one in (model, other))
        for _ in range(3):
            for one, its in ((other, second), (model, optimizer)):
                loss(one).backward()
                its.step()
        assert watcher.iteration == 3
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.start.meta["training"]["optimizers"][0]["class"] == "torch.optim.sgd.SGD"
        assert capture.array("training:backward_passes").tolist() == [1, 1, 1]  # those of the other model are its own


def test_a_loop_without_an_optimizer_of_torch(tmp_path: Path) -> None:
    model = small()
    with inspector.watch(model, path=tmp_path / "run.inspect", every=1) as watcher:
        for n in range(3):
            loss(model).backward()
            watcher.step(loss=n, extra=2 * n)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("training:loss").tolist() == [0, 1, 2]
        assert table(capture, "parameters:gradient/norm")["0.weight"].shape == (3,)


def test_a_closure_computes_gradients_inside_the_step(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        def closure() -> Tensor:
            optimizer.zero_grad()
            found = loss(model)
            found.backward()
            return found

        for _ in range(2):
            optimizer.step(closure)  # type: ignore[arg-type]

    with run(tmp_path, loop, make=lambda p: torch.optim.SGD(p, 0.1)) as capture:
        both = table(capture, "training:gradient_norm")
        assert both["before clipping"].tolist() == both["after clipping"].tolist() and len(both["after clipping"]) == 2


def test_the_run_says_how_the_model_is_trained(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.head.weight = self.embedding.weight
            self.left = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.head(self.embedding(x))
            return found

    model = Tied()
    model.left.eval()
    groups = [{"params": [model.embedding.weight], "weight_decay": 0.5}]
    with inspector.watch(model, torch.optim.AdamW(groups, 0.25), tmp_path / "run.inspect"):
        pass
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        about = capture.start.meta["training"]
        assert about["ties"] == {"embedding.weight": ["head.weight"]}
        assert about["without_optimizer"] == ["left.weight", "left.bias"]
        (group,) = about["optimizers"][0]["groups"]
        assert group["parameters"] == ["embedding.weight"] and group["settings"]["weight_decay"] == 0.5
        assert about["in_evaluation_mode"] == ["left"] and about["training"] is True


def test_a_learning_rate_that_changes_after_long_is_an_event(tmp_path: Path) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 15, 0.1)
        for _ in range(20):
            loss(model).backward()
            optimizer.step()
            schedule.step()

    with run(tmp_path, loop) as capture:
        (event,) = capture.events
        assert event.kind == "learning rate" and event.iteration == 16 and "0.01 → 0.001" in event.text


def test_dead_units_states_gates_and_heads(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True)
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
            self.head, self.relu = nn.Linear(16, 3), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            h = self.rnn(x)[0]
            found: Tensor = self.relu(self.head(h + self.attention(h, h, h, need_weights=False)[0]))
            return found

    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.head.bias.fill_(-1e6)
        for one in ("l0", "l0_reverse", "l1", "l1_reverse"):
            getattr(model.rnn, f"bias_ih_{one}")[8:16] = 50.0  # forget gates open
    seen = []

    def loop(model: Any, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        x = torch.randn(5, 7, 4)
        model(x).sum().backward()
        seen.append([one.detach() for one in model.rnn(x)[1]])
        optimizer.step()

    with run(tmp_path, loop, model) as capture:
        assert table(capture, "modules:activation/zero")["relu"].tolist() == [1.0]
        assert table(capture, "modules:activation/mean_abs")["head"][0] == pytest.approx(1e6, rel=0.01)
        gates = table(capture, "modules:gate/saturated")
        assert gates["rnn.l1.reverse forget high"].tolist() == [1.0] and gates["rnn.l0 forget low"].tolist() == [0.0]
        states = table(capture, "modules:state/norm")
        h, c = seen[0]
        assert states["rnn.l0.reverse c"][0] == pytest.approx(float(c[1].norm(dim=-1).square().mean().sqrt()), rel=1e-5)
        assert states["rnn.l1 h"][0] == pytest.approx(float(h[2].norm(dim=-1).square().mean().sqrt()), rel=1e-5)
        entropy = table(capture, "modules:attention/entropy")
        assert list(entropy) == [f"attention head {n}" for n in range(4)]
        with torch.no_grad():
            hidden = model.rnn.eval()  # the weights have moved by one step of Adam: compare loosely
        assert hidden is model.rnn and all(0 < one[0] <= np.log(7) + 1e-6 for one in entropy.values())


def test_gates_are_those_of_the_module(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.GRU(3, 5, batch_first=True)
    x = torch.randn(2, 6, 3) * 8
    h = model(x)[0].detach()
    w, u, b, k = (one.detach() for one in model.parameters())
    before = torch.cat([torch.zeros(1, 5), h[0, :-1]])
    reset = torch.sigmoid((x[0] @ w.T + b + before @ u.T + k)[:, :5])

    def loop(model: Any, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        model(x)[0].sum().backward()
        optimizer.step()

    with run(tmp_path, loop, model) as capture:
        gates = table(capture, "modules:gate/saturated")
        assert gates["model.l0 reset low"][0] == pytest.approx(float((reset < 0.1).float().mean()))
        assert gates["model.l0 reset high"][0] == pytest.approx(float((reset > 0.9).float().mean()))


@pytest.mark.parametrize("causal", [False, True])
def test_entropy_and_logits_are_those_of_the_attention(causal: bool, tmp_path: Path) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = nn.Linear(4, 8), nn.Linear(4, 8)

        def forward(self, x: Tensor) -> Tensor:
            q, k = (part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (self.q, self.k))
            return nn.functional.scaled_dot_product_attention(q, k, k, is_causal=causal)

    torch.manual_seed(0)
    model = Attention()
    x = torch.randn(3, 6, 4)
    with torch.no_grad():
        q, k = (part(x[0]).unflatten(-1, (2, 4)).transpose(0, 1) for part in (model.q, model.k))
        scores = q @ k.transpose(1, 2) / 2
        hidden = torch.ones(6, 6).triu(1).bool() & causal
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)

    def loop(model: Any, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    with run(tmp_path, loop, model) as capture:
        for head in range(2):
            name = f"model head {head}"
            expected = float(-torch.xlogy(weights[head], weights[head]).sum(-1).mean())
            assert table(capture, "modules:attention/entropy")[name][0] == pytest.approx(expected, rel=1e-4)
            largest = float(scores[head].abs().masked_fill(hidden, 0).max())
            assert table(capture, "modules:attention/largest_logit")[name][0] == pytest.approx(largest, rel=1e-4)


def test_exponents_and_spectra(tmp_path: Path) -> None:
    model = nn.RNN(2, 4, batch_first=True)
    with torch.no_grad():
        model.weight_hh_l0.copy_(torch.diag(torch.tensor([3.0, 1.0, 0.0, -0.5])))

    def loop(model: Any, optimizer: torch.optim.Optimizer, _watcher: Any) -> None:
        model(torch.zeros(1, 3, 2))[0].sum().backward()
        optimizer.step()

    with run(tmp_path, loop, model, cost="full", make=lambda p: torch.optim.SGD(p, 0.0)) as capture:
        assert capture.array("modules:recurrent/singular")[0, 0] == pytest.approx(3)
        assert capture.array("modules:recurrent/orthogonality")[0, 0] == pytest.approx((64 + 0 + 1 + 0.5625) ** 0.5)
        channel = capture.channels["parameters:weight/exponents"]
        counts = capture.array(channel.name)[0, capture.labels("parameter").index("weight_hh_l0")]
        found = {name: int(n) for name, n in zip(channel.labels["exponent"], counts, strict=True) if n}
        assert channel.kind == "histogram" and found == {"0": 13, "2^1": 1, "2^0": 1, "2^-1": 1}
