"""Divergences made on purpose are named right: the operation, its line, the parameter; and none where there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.attention
from commands import call, called
from diverging import diverged, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diverging")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    return run(folder, "plain")


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    return run(folder, "trained", training=True)


def test_the_same_run_twice_gave_the_same_bits(folder: Path, plain: Path, trained: Path) -> None:
    for name, path, training in (("again", plain, False), ("trained again", trained, True)):
        found = diverged(path, run(folder, name, training=training))
        assert found.operations is not None and found.operations.word == "identical", found.lines()
        assert not found.differs


def test_another_dropout_seed(folder: Path, trained: Path) -> None:
    found = diverged(trained, run(folder, "seed", training=True, seed=1))
    assert found.operations is not None and found.operations.word == "random", found.lines()
    assert "bernoulli_ in drop" in found.operations.sentence and "h = self.drop(h)" in found.operations.sentence


def test_another_initialisation_of_one_layer(folder: Path, plain: Path) -> None:
    def other(model: Any) -> None:
        torch.nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(5))

    found = diverged(plain, run(folder, "head", change=other))
    assert found.operations is not None and found.operations.word == "given", found.lines()
    assert found.operations.sentence.startswith("head.weight differs before anything has run")
    assert found.compared is not None and set(found.compared.given) == {"head.weight"}
    assert found.compared.results["gradient of embed.weight"] > 0.1, "it reaches all gradients"


CHANGES = {
    "argument": ("h = self.norm(h)", "h = self.norm(h) * 1.01", "h = self.norm(h) * 1.01", ("only in B",)),
    "function": (
        "torch.tanh(self.embed(x))",
        "torch.sigmoid(self.embed(x))",
        "torch.sigmoid(",
        ("replaced", "only in B"),
    ),
    "operand": ("(scores * scores)", "(scores * scores.detach().abs())", "scores.detach()", ("only in B", "operation")),
    "reads": ("scores = self.head(h)", "scores = self.head(h.roll(1, 1))", "h.roll(1, 1)", ("only in B",)),
    "slice": ("h, _ = self.rnn(x)", "h, _ = self.rnn(x.flip(1))", "x.flip(1)", ("only in B",)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_line_that_was_changed_is_named(folder: Path, plain: Path, name: str) -> None:
    old, new, line, words = CHANGES[name]
    found = diverged(plain, run(folder, f"line {name}", (old, new)))
    assert found.operations is not None and found.operations.word in words, found.lines()
    assert line in found.operations.sentence, found.lines()


def test_an_argument_that_is_no_tensor(folder: Path) -> None:
    scaled = ("h = self.norm(h)", "h = self.norm(h) * 2.0")
    a = run(folder, "two", scaled)
    b = run(folder, "two and a bit", (scaled[0], "h = self.norm(h) * 2.001"))
    found = diverged(a, b)
    assert found.operations is not None and found.operations.word == "arguments", found.lines()
    assert "(other=2.0) and (other=2.001)" in found.operations.sentence
    assert "model.py:18" in found.operations.sentence


def test_an_inserted_operation_that_changes_nothing_is_no_divergence(folder: Path, plain: Path) -> None:
    found = diverged(plain, run(folder, "no-op", ("h = self.norm(h)", "h = self.norm(h) * 1.0")))
    assert found.operations is not None and found.operations.word == "none" and not found.differs, found.lines()
    assert any("only in B, the first mul" in line for line in found.lines())


def test_another_order_of_a_sum_is_rounding(folder: Path, plain: Path) -> None:
    other = ("total = (scores * scores).sum(-1)", "total = (scores.flip(-1) * scores.flip(-1)).cumsum(-1)[..., -1]")
    found = diverged(plain, run(folder, "sum", other))
    assert found.operations is not None and found.operations.word == "none", found.lines()
    assert 0 < found.operations.numbers["largest"] < 1e-5


def test_threads_and_blocks_are_rounding(folder: Path, plain: Path) -> None:
    """Products of matrices in pieces add up in another order."""
    other = (
        "scores = self.head(h)",
        "w = self.head.weight; scores = h[..., :5] @ w[:, :5].T + h[..., 5:] @ w[:, 5:].T + self.head.bias",
    )
    found = diverged(plain, run(folder, "blocks", other))
    assert found.operations is not None and found.operations.word == "none", found.lines()


def test_half_precision_is_rounding_and_says_where_the_dtype_changes(folder: Path, plain: Path) -> None:
    found = diverged(plain, run(folder, "half", change=lambda model: model.bfloat16()))
    assert found.operations is not None and found.operations.word == "none", found.lines()
    assert 1e-4 < found.operations.numbers["largest"] < 0.5
    assert any("float32 in A, bfloat16 in B" in line for line in found.lines())


def test_a_divergence_is_found_in_half_precision_too(folder: Path, plain: Path) -> None:
    other = ("h = self.norm(h)", "h = self.norm(h) * 1.5")
    found = diverged(plain, run(folder, "half other", other, change=lambda model: model.bfloat16()))
    assert found.operations is not None and found.operations.word == "only in B", found.lines()
    assert "h = self.norm(h) * 1.5" in found.operations.sentence


def test_a_batch_in_another_order(folder: Path, plain: Path) -> None:
    given = torch.randn(4, 7, 3, generator=torch.Generator().manual_seed(3))
    found = diverged(plain, run(folder, "order", batch=given[[2, 0, 1, 3]]))
    assert found.operations is not None and found.operations.word == "given", found.lines()
    assert "the input input" in found.operations.sentence and "in another order" in found.operations.sentence


def test_an_operation_that_is_not_deterministic(folder: Path, plain: Path) -> None:
    """Rounding of the size that atomic additions make is explained; a wrong result of one operation is not."""

    def noisy(size: float) -> Any:
        def change(model: Any) -> None:
            kept = model.head.forward

            def forward(x: torch.Tensor) -> torch.Tensor:
                out = kept(x)
                with torch.utils._python_dispatch._disable_current_modes():
                    noise = torch.randn(out.shape, generator=torch.Generator().manual_seed(9)) * size
                    out.data.add_(noise * out.data)
                return out

            model.head.forward = forward

        return change

    small = diverged(plain, run(folder, "noise 1", change=noisy(1e-7)))
    assert small.operations is not None and small.operations.word == "none", small.lines()
    large = diverged(plain, run(folder, "noise 2", change=noisy(1e-3)))
    assert large.operations is not None and large.differs, large.lines()
    assert "total = (scores * scores)" in large.operations.sentence, "the first operation that reads it"


def test_rounding_that_a_recurrence_amplifies_is_no_new_cause(folder: Path) -> None:
    """A chaotic loop makes 1e-7 into 1: every step explains its own part."""
    chaos = ("scores = self.head(h)", "scores = self.head(self.chaos(h))")
    loop = (
        "    def forward(self, x):",
        "    def chaos(self, h):\n        for _ in range(40):\n            h = (h * 3.7).sin() * 1.9\n        return h\n\n"
        "    def forward(self, x):",
    )
    other = ("h = self.norm(h)", "h = (self.norm(h) * 3.0) / 3.0")
    a, b = run(folder, "chaos", chaos, loop), run(folder, "chaos 2", chaos, loop, other)
    found = diverged(a, b)
    assert found.operations is not None and found.operations.word == "none", found.lines()
    assert found.operations.numbers["largest"] > 1e-2, "and the size of what came of it is said"


def test_what_would_make_it_wrong_is_said(folder: Path, plain: Path) -> None:
    told = diverged(plain, run(folder, "doubt")).lines()
    assert any(line.startswith("This is wrong where") for line in told)


def test_the_command(folder: Path, plain: Path) -> None:
    other = run(folder, "command", ("h = self.norm(h)", "h = self.norm(h) * 1.25"))
    said = called("diverge", str(plain), str(other), "--check", cwd=folder)
    assert said.code == 1
    assert "B alone has mul" in said.stdout and "h = self.norm(h) * 1.25" in said.stdout
    found = json.loads(call("diverge", str(plain), str(other), "--json", cwd=folder).stdout)
    assert found["differs"] and found["operations"]["word"] == "only in B"
    assert found["operations"]["line"].startswith("model.py:18")
    assert call("diverge", str(plain), str(plain), "--check", cwd=folder).stdout.startswith("operations: all ")
    assert "bfloat17" in called("diverge", str(plain), str(plain), "--dtype", "bfloat17", cwd=folder).stderr


def test_nothing_to_compare_is_said(folder: Path, plain: Path) -> None:
    call("run", "char-gru", "--text", "Alice", "--only", "states", "--out", "states.inspect", cwd=folder)
    said = called("diverge", str(plain), "states.inspect", cwd=folder).stderr
    assert "record them with inspector run --with operations" in said


def test_operations_of_a_script_of_ones_own(tmp_path: Path) -> None:
    import inspector

    paths, kept = [], []
    for name, factor in (("a", 1.0), ("b", 1.5)):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
        x = torch.randn(5, 3)
        before = torch.get_rng_state()
        with inspector.record_operations(tmp_path / f"{name}.inspect", model, x=x) as seen:
            y = model(x)
            loss = (y * factor).square().sum()
            loss.backward()
            seen.result("loss", loss)
        assert torch.equal(before, torch.get_rng_state())
        kept.append(model[0].weight.grad)
        paths.append(tmp_path / f"{name}.inspect")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    model(torch.randn(5, 3)).mul(1.0).square().sum().backward()
    assert torch.equal(kept[0], model[0].weight.grad), "recorded or not, the numbers are the same"
    found = diverged(*paths)
    assert found.operations is not None and found.operations.word == "arguments", found.lines()
    assert "loss = (y * factor).square().sum()" in found.operations.sentence
    assert found.compared is not None and found.compared.results["gradient of 0.weight"] > 0.1


def test_a_recording_that_is_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inspector
    from inspector.engine.analyses.operations import recorder

    monkeypatch.setattr(recorder, "MOST", 20)
    path = run(tmp_path, "short")
    with inspector.open_capture(path) as capture:
        assert capture.extent("operations:name") == (20,)
        assert any("operations are recorded; the model makes more" in log.text for log in capture.logs)


def test_a_model_that_raises_has_its_operations_until_then(tmp_path: Path) -> None:
    import inspector

    fault = ("h = self.drop(h)", "h = self.drop(h); raise_ = self.calls; self.calls += 1; assert raise_ < 1, 'later'")
    count = ("super().__init__()", "super().__init__(); self.calls = 0")
    path = run(tmp_path, "raises", fault, count)
    with inspector.open_capture(path) as capture:
        assert any("later" in one.reason for one in capture.refusals)
        assert capture.extent("operations:name")[0] > 10


@pytest.mark.parametrize("training", [False, True])
def test_a_kernel_that_returns_memory_to_work_with(tmp_path: Path, training: bool) -> None:
    """oneDNN's LSTM returns bytes of which some are whatever was there."""
    lstm = ("nn.GRU(16, 16, batch_first=True)", "nn.LSTM(16, 16, batch_first=True)")
    paths = [run(tmp_path, name, lstm, training=training) for name in ("a", "b")]
    junk = [torch.randn(50_000) for _ in range(20)]  # other memory is free the next time
    del junk
    found = diverged(paths[0], run(tmp_path, "c", lstm, training=training))
    assert found.operations is not None and found.operations.word == "identical", found.lines()


def test_another_kernel_is_rounding(tmp_path: Path) -> None:
    """Attention by blocks or written out; an LSTM by oneDNN or step by step."""
    attention = (
        "h = self.norm(h)",
        "h = self.norm(torch.nn.functional.scaled_dot_product_attention(h[:, None], h[:, None], h[:, None])[:, 0])",
    )
    lstm = ("nn.GRU(16, 16, batch_first=True)", "nn.LSTM(16, 16, batch_first=True)")
    a = run(tmp_path, "a", attention, lstm)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = diverged(a, run(tmp_path, "b", attention, lstm))
    assert found.operations is not None and found.operations.word == "none", found.lines()
    assert found.operations.numbers["largest"] < 1e-4

    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        found = diverged(a, run(tmp_path, "c", attention, lstm))
    finally:
        torch._C._set_mkldnn_enabled(before)
    assert found.operations is not None and found.operations.word == "none", found.lines()


def test_lines_that_moved_and_other_names_of_files_are_no_difference(folder: Path, plain: Path) -> None:
    moved = ("    def forward(self, x):", "    # one more line\n\n    def forward(self, x):")
    found = diverged(plain, run(folder, "moved", moved))
    assert found.operations is not None and found.operations.word == "identical", found.lines()


def test_deterministic_algorithms_and_memory_that_was_not_set(tmp_path: Path) -> None:
    """With deterministic algorithms torch fills new memory with NaN; what is in it before it is written says nothing."""
    buffered = (
        "h, _ = self.rnn(x)",
        "out, _ = self.rnn(x); h = torch.empty(out.shape); h.copy_(out); h = h + torch.empty_like(out).zero_()",
    )
    a = run(tmp_path, "a", buffered)
    torch.use_deterministic_algorithms(True)
    try:
        found = diverged(a, run(tmp_path, "b", buffered))
    finally:
        torch.use_deterministic_algorithms(False)
    assert found.operations is not None and not found.differs, found.lines()


def test_a_damaged_recording_is_not_compared(tmp_path: Path, plain: Path) -> None:
    copy = tmp_path / "copy.inspect"
    shutil.copytree(plain, copy)
    (pages,) = copy.glob("pages-*.bin")
    data = bytearray(pages.read_bytes())
    for at in range(100, len(data), 700):
        data[at] ^= 0xFF
    pages.write_bytes(data)
    told = called("diverge", str(plain), str(copy), cwd=tmp_path)
    assert told.code == 2 and "has of operations is not whole, so it cannot be compared" in told.stderr
