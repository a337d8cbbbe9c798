"""What a model changes of torch for every model: switched off behind its call, or reason for another process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from copies import Copies

PROGRAM = """
import json, math, threading, time, warnings
import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from inspector.engine import process_state
from inspector.engine.opening.user_code import UserCode

class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {{}}))
        return made * 2 if function is torch.tanh else made

class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {{}}))
        return made * 2 if operation is torch.ops.aten.tanh.default else made

def numbers():
    torch.manual_seed(0)
    with torch.enable_grad():
        layer = nn.Linear(3, 2)
        x = torch.full((1, 3), 0.3, requires_grad=True)
        (torch.tanh(layer(x)) ** 2).sum().backward()
    return [layer(x).double().tolist(), x.grad.tolist(), float(torch.tensor(1e-39) * 1)]

warnings.simplefilter("ignore")
process_state.keep()
is_installed = UserCode().is_installed
assert process_state.altered(is_installed) == ""
before = numbers()
with process_state.put_back({making}):
    {harm}
same = numbers() == before
print(json.dumps([same, process_state.altered(is_installed)]))
"""
STATES = {
    "hooks of all modules": [
        "nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 2)",
        "nn.modules.module.register_module_forward_pre_hook(lambda m, i: (i[0] * 2,))",
        "nn.modules.module.register_module_full_backward_hook(lambda m, i, o: tuple(g * 3 for g in i))",
    ],
    "modes of torch's functions": ["Functions().__enter__()"],
    "modes of torch's operations": ["Operations().__enter__()"],
    "hooks of kept tensors": ["torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2).__enter__()"],
    "precisions": ['torch.autocast("cpu", torch.bfloat16).__enter__()', "torch.set_flush_denormal(True)"],
}
NAMES = {
    "Linear.forward": "old = nn.Linear.forward; nn.Linear.forward = lambda self, x: old(self, x) * 2",
    "Module.__call__": "old = nn.Module.__call__; nn.Module.__call__ = lambda self, *a: old(self, *a) * 2",
    "torch.tanh": "old = torch.tanh; torch.tanh = lambda x: old(x) * 2",
    "torch.nn.functional.linear": "old = nn.functional.linear; nn.functional.linear = lambda *a: old(*a) * 2",
    "torch.linalg.svdvals": "torch.linalg.svdvals = None",
    "Tensor.mean": "torch.Tensor.mean = None",
    "numpy.mean": "np.mean = None",
    "_VF.rnn_tanh": "torch._VF.rnn_tanh = lambda *given: given[1]",
    "aten/tanh/CPU": "kept = torch.library.Library('aten', 'IMPL'); kept.impl('tanh', lambda x: x * 2, 'CPU')",
    "the thread lasting": "threading.Thread(target=lambda: time.sleep(60), name='lasting', daemon=True).start()",
    "math.gcd": "math.gcd = None",
}


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    """Processes that have imported torch; each program harms one of its own."""
    made = Copies("inspector.engine.process_state", "numpy", "torch")
    yield made
    made.close()


def told(copies: Copies, harm: str, making: str = "") -> tuple[str, str]:
    done = copies.run(PROGRAM.format(harm=harm, making=making))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize(("name", "harm"), [(name, harm) for name, harms in STATES.items() for harm in harms])
def test_what_a_call_leaves_on_is_off_behind_it(copies: Copies, name: str, harm: str) -> None:
    assert told(copies, harm) == ('[true, ""]', f"The model changed {name} of its process, which was put back.\n")


@pytest.mark.parametrize(("name", "harm"), [(name, harms[0]) for name, harms in STATES.items()])
def test_what_a_model_was_made_with_holds_for_it_and_asks_for_another_process(
    copies: Copies, name: str, harm: str
) -> None:
    assert told(copies, harm, "making=True") == (f'[false, "{name}"]', "")


@pytest.mark.parametrize(("name", "harm"), NAMES.items())
def test_a_name_that_stands_for_something_else_asks_for_another_process(copies: Copies, name: str, harm: str) -> None:
    said, _ = told(copies, harm, "making=True")
    assert said.endswith(f'{name}"]')


@pytest.mark.parametrize("harm", [
    "import torch._dynamo, torch.optim, torch.jit; torch.compile(nn.Linear(2, 2), backend='eager')(torch.ones(1, 2))",
    "torch.func.vmap(torch.outer)(torch.ones(2, 3), torch.ones(2, 3)); assert any('FuncTorchBatched' in one for one in "
    "torch.library._impls)",
    "import io, tqdm; list(tqdm.tqdm(range(3), file=io.StringIO())); assert threading.active_count() > 1",
    "from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(1); pool.submit(int).result()",
])  # fmt: skip
def test_what_libraries_do_while_a_model_runs_alters_nothing(copies: Copies, harm: str) -> None:
    assert told(copies, harm, "making=True")[0] == '[true, ""]'
