"""Two trainings: the first iteration and parameter that differ, of divergences made on purpose; and none without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import call
from torch import nn

import inspector
from inspector.analysis.divergence import Divergence


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.drop, self.head = nn.GRU(3, 12, batch_first=True), nn.Dropout(0.1), nn.Linear(12, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.drop(self.rnn(x)[0]))
        return out


def train(
    path: Path, *, fingerprints: bool = True, steps: int = 12, seed: int = 0,
    make: Callable[[Any], Any] = lambda own: torch.optim.Adam(own, 1e-3),
    before: Callable[[nn.Module], None] = lambda _model: None,
    each: Callable[[int, nn.Module, torch.Tensor], torch.Tensor] = lambda _n, _model, x: x,
    gradient: Callable[[int, nn.Module], None] = lambda _n, _model: None, precise: bool = False, **options: Any,
) -> Path:  # fmt: skip
    torch.manual_seed(0)
    model = Model()
    before(model)
    torch.manual_seed(seed)
    data = torch.Generator().manual_seed(7)
    optimizer = make(model.parameters())
    with inspector.watch(model, optimizer, path, every=1, fingerprints=fingerprints, **options):
        for n in range(1, steps + 1):
            x = each(n, model, torch.randn(8, 5, 3, generator=data))
            loss = model(x).square().mean()
            loss.backward()
            gradient(n, model)
            optimizer.step()
            optimizer.zero_grad()
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("plain") / "a.inspect")


def parted(a: Path, b: Path) -> Divergence:
    found = inspector.first_divergence(a, b)
    assert found.training is not None and found.trainings is not None
    return found


def test_the_same_training_twice(plain: Path, tmp_path: Path) -> None:
    found = parted(plain, train(tmp_path / "b.inspect"))
    assert found.training is not None and found.training.word == "none" and not found.differs
    assert found.trainings is not None and found.trainings.iterations == 12 and found.trainings.largest[0] == 0
    assert found.trainings.by == "fingerprints"


@pytest.mark.parametrize("lost", ["the end", "everything"])
def test_what_is_damaged_is_not_called_equal(lost: str, plain: Path, tmp_path: Path) -> None:
    again = train(tmp_path / "b.inspect")
    pages = again / "pages-0000.bin"
    pages.write_bytes(pages.read_bytes()[:-400] if lost == "the end" else b"")
    found = inspector.first_divergence(plain, again)
    assert found.damage and "pages-0000.bin" in found.damage[0]
    assert any("since it is damaged" in line for line in found.lines())
    assert found.nothing == (lost == "everything") and not any("record them" in line for line in found.lines())
    call("diverge", str(plain), str(again), "--check", cwd=tmp_path, expect=2 if found.nothing else 1)
    if lost == "the end":
        assert "Curves may lack points" in call("list", again.name, "--curves", cwd=tmp_path).stderr


def test_fingerprints_change_nothing(plain: Path, tmp_path: Path) -> None:
    kept = []
    for fingerprints in (True, False):
        torch.manual_seed(1)
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        with inspector.watch(
            model, optimizer, tmp_path / f"{fingerprints}.inspect", every=1, fingerprints=fingerprints
        ):
            for _ in range(20):
                model(torch.randn(4, 6, 3)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        kept.append([one.detach().clone() for one in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*kept, strict=True))
    with inspector.open_capture(tmp_path / "False.inspect") as capture:
        assert not any("fingerprint" in name for name in capture.channels)


def test_another_initialisation(plain: Path, tmp_path: Path) -> None:
    def other(model: Any) -> None:
        with torch.no_grad():
            model.head.bias += 1e-3

    found = parted(plain, train(tmp_path / "b.inspect", before=other))
    assert found.training is not None and found.training.word == "start", found.lines()
    assert found.training.sentence.startswith("head.bias differs before the first step")


def test_another_batch(plain: Path, tmp_path: Path) -> None:
    def order(n: int, _model: Any, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0) if n == 5 else x

    found = parted(plain, train(tmp_path / "b.inspect", each=order))
    assert found.training is not None and found.training.word == "batch", found.lines()
    assert found.trainings is not None and found.trainings.parting is not None
    assert found.trainings.parting.iteration == 5


def test_another_dropout_seed(plain: Path, tmp_path: Path) -> None:
    found = parted(plain, train(tmp_path / "b.inspect", seed=3))
    assert found.training is not None and found.training.word == "loss", found.lines()
    assert found.training.numbers["iteration"] == 1


def test_another_weight_decay(tmp_path: Path) -> None:
    a = train(tmp_path / "a.inspect", make=lambda own: torch.optim.AdamW(own, 1e-3, weight_decay=0.01))
    b = train(tmp_path / "b.inspect", make=lambda own: torch.optim.AdamW(own, 1e-3, weight_decay=0.02))
    found = parted(a, b)
    assert found.training is not None and found.training.word == "settings", found.lines()
    assert "weight_decay is 0.01 in A and 0.02 in B" in found.training.sentence


def test_a_gradient_of_one_parameter(plain: Path, tmp_path: Path) -> None:
    def scaled(n: int, model: Any) -> None:
        if n == 4:
            model.rnn.weight_hh_l0.grad.mul_(1.5)

    found = parted(plain, train(tmp_path / "b.inspect", gradient=scaled))
    assert found.training is not None and found.training.word == "gradient", found.lines()
    assert "iteration 4: the gradient of rnn.weight_hh_l0 differs" in found.training.sentence


def test_a_weight_that_something_else_changes(plain: Path, tmp_path: Path) -> None:
    """In a hook of the optimizer's step, behind the gradients."""

    def make(own: Any) -> Any:
        optimizer = torch.optim.Adam(own, 1e-3)
        weights = optimizer.param_groups[0]["params"]
        count = []

        def clamp(*_given: Any) -> None:
            count.append(1)
            if len(count) == 6:
                weights[4].data.clamp_(-0.1, 0.1)

        optimizer.register_step_post_hook(clamp)
        return optimizer

    found = parted(plain, train(tmp_path / "b.inspect", make=make))
    assert found.training is not None and found.training.word == "weight", found.lines()
    assert "iteration 6: the weight head.weight differs after the step" in found.training.sentence


def test_rounding_and_its_growth_are_no_divergence(plain: Path, tmp_path: Path) -> None:
    """Gradients that were added up in another order at every iteration."""

    def rounded(_n: int, model: Any) -> None:
        for one in model.parameters():
            one.grad.copy_((one.grad * 3.0) / 3.0)

    found = parted(plain, train(tmp_path / "b.inspect", gradient=rounded))
    assert found.training is not None and found.training.word == "none", found.lines()
    assert found.trainings is not None and 1e-9 < found.trainings.largest[0] < 1e-4


def test_norms_do_where_there_are_no_fingerprints(tmp_path: Path) -> None:
    def scaled(n: int, model: Any) -> None:
        if n == 4:
            model.rnn.weight_hh_l0.grad.mul_(1.5)

    a, b = (
        train(tmp_path / f"{n}.inspect", fingerprints=False, gradient=one)
        for n, one in enumerate((lambda *_: None, scaled))
    )
    found = parted(a, b)
    assert found.training is not None and found.training.word == "gradient", found.lines()
    assert "rnn.weight_hh_l0" in found.training.sentence and found.training.numbers["iteration"] == 4
    assert any("norms only" in line for line in found.lines())


def test_curves_of_logs(tmp_path: Path) -> None:
    for name, factor in (("a", 1.0), ("b", 1.1)):
        rows = [f"{n},{(factor if n >= 7 else 1.0) / (n + 1)}" for n in range(20)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,loss", *rows]))
    found = parted(tmp_path / "a.csv", tmp_path / "b.csv")
    assert found.training is not None and found.training.word == "curve", found.lines()
    assert found.training.numbers["iteration"] == 7
