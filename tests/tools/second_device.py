"""An emulated device beside the CPU, for machines that have no other: its tensors say that they lie on `emulated:0`, and every operation obeys the rules that a CUDA device has.

A tensor of it has its values in main memory (`held`), out of reach of everything but `.to` and `.cpu()`. Under
`SecondDevice` these raise as they do on CUDA: an operation on tensors of two devices (numbers without an axis, and
indices that lie on the CPU, excepted), a generator of another device, and `.numpy()`. Its random numbers come from a
generator of its own, its LSTM and GRU cells are the fused operators that CUDA has, and what makes the processor wait
for the device is counted. It is torch's own hook for devices that are written in Python
(`torch.utils.backend_registration`) and it changes the whole process, so it is used in a process of its own.

It has no kernels: rounding, streams, memory limits and asynchronous copies are not emulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch
from fused_cells import FUSED
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "emulated"
DEVICES = 1
"""Autograd has a queue for each device of its own count, which is one for a device that is written in Python."""
CPU = torch.device("cpu")
COPIES = ("aten::_to_copy", "aten::copy_")
LENGTHS = "aten::_pack_padded_sequence."
"""Takes its lengths from the CPU."""
INDEXED = ("aten::index.", "aten::index_put", "aten::_unsafe_index", "aten::_index_put_impl_")
WAITING = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::is_nonzero")
NO_SCALARS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::cat", "aten::stack", "aten::index_select")


class _Module(_DummyBackendModule):
    """`torch.emulated`: its devices, and the generator of each."""

    def __init__(self) -> None:
        self.generators = [torch.Generator().manual_seed(0) for _ in range(DEVICES)]

    def device_count(self) -> int:
        return DEVICES

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        for generator in self.generators:
            generator.manual_seed(seed)

    def get_rng_state(self, device: Any = 0) -> Tensor:
        return self.generators[_index(device)].get_state()

    def set_rng_state(self, state: Tensor, device: Any = 0) -> None:
        self.generators[_index(device)].set_state(state)


def _index(device: Any) -> int:
    found = device if isinstance(device, int) else torch.device(device).index
    return found or 0


MODULE = _Module()


def register() -> None:
    """Make the device known to torch, once in a process."""
    if not hasattr(torch, NAME):
        _setup_privateuseone_for_python_backend(NAME, backend_module=MODULE)


class OnSecond(Tensor):
    """A tensor that lies on the second device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor, index: int) -> OnSecond:
        made: OnSecond = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=torch.device(NAME, index), requires_grad=False,
        )  # fmt: skip
        made.held = held
        return made

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.held.untyped_storage()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")
        return self.detach().cpu().numpy()

    __array__ = numpy  # type: ignore[assignment]

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"OnSecond({self.held!r})"

    def __format__(self, given: str) -> str:
        return format(self.item(), given) if self.dim() == 0 else repr(self)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} reached the second device outside of its emulation.")


OnSecond.__torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


class _Made(TorchFunctionMode):
    """`torch.tensor(numbers, device="emulated")` fills memory below the dispatcher: it is made on the CPU and moved."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func not in (torch.tensor, torch.as_tensor, torch.asarray) or named.get("device") is None:
            return func(*args, **named)
        made = func(*args, **{name: value for name, value in named.items() if name != "device"})
        return made.to(named["device"])


class SecondDevice(TorchDispatchMode):
    """While it is active the device works. `waits` counts what made the processor wait, by operation.

    `float64`: whether the device has it (Apple's has not).
    """

    def __init__(self, *, float64: bool = True) -> None:
        super().__init__()
        self.float64, self.waits = float64, Counter[str]()
        self._made = _Made()

    def __enter__(self) -> SecondDevice:
        register()
        self._made.__enter__()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        super().__exit__(kind, fault, where)
        self._made.__exit__(kind, fault, where)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = list(_tensors((*args, *kwargs.values())))
        wanted = kwargs.get("device")
        given = {one.device for one in tensors if isinstance(one, OnSecond)}
        if not given and (wanted is None or torch.device(wanted).type != NAME):
            return func(*args, **kwargs)
        device = torch.device(wanted) if wanted is not None else self._device(func, args, tensors, given)
        name = func._schema.name
        if name.startswith(WAITING) or (name in COPIES and CPU in (device, *(one.device for one in tensors))):
            self.waits[name] += 1
        generator = kwargs.get("generator")
        if generator is not None:
            raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{generator.device.type}'")
        return self._run(func, args, kwargs, device)

    def _device(self, func: Any, args: Any, tensors: list[Tensor], given: set[torch.device]) -> torch.device:
        """Where the result lies. Raises RuntimeError for tensors of several devices."""
        name = str(func._schema.name) + "."
        if name.startswith(COPIES):
            return args[0].device
        if name.startswith(LENGTHS):
            return args[0].device
        if name.startswith(INDEXED):
            return self._indexed(args)
        alone = name.startswith(NO_SCALARS)
        away = [one for one in tensors if one.device not in given and (one.dim() or alone)]
        if away or len(given) > 1:
            found = sorted({str(one.device) for one in tensors})
            raise RuntimeError(f"Expected all tensors to be on the same device, but found {', '.join(found)} ({func})")
        return next(iter(given))

    def _indexed(self, args: Any) -> torch.device:
        whole = args[0].device
        values = args[2] if len(args) > 2 and isinstance(args[2], Tensor) else None
        places = [one for one in args[1] if isinstance(one, Tensor)]
        if any(one.device not in (CPU, whole) for one in places):
            raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({whole})")
        if values is not None and values.dim() and values.device != whole:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found {whole}, {values.device}")
        if whole.type == NAME and any(one.dtype == torch.bool for one in places):
            self.waits["aten::nonzero"] += 1
        return whole

    def _run(self, func: Any, args: Any, kwargs: Any, device: torch.device) -> Any:
        plain, named = tree_map_only(OnSecond, lambda one: one.held, (args, kwargs))
        named = {name: CPU if name == "device" and value is not None else value for name, value in named.items()}
        call: Callable[..., Any] = FUSED.get(str(func._schema.name), func)
        with _random(device) if torch.Tag.nondeterministic_seeded in func.tags else _nothing():
            out = call(*plain, **named)
        if torch.Tag.inplace_view in func.tags:
            with no_dispatch():
                func(*args, **kwargs)
            return args[0]
        if func._schema.name.endswith("_") and func._schema.is_mutable:
            return args[0]
        if "out" in kwargs:
            return kwargs["out"]
        return out if device.type != NAME else tree_map_only(Tensor, lambda one: self._wrapped(one, device), out)

    def _wrapped(self, value: Tensor, device: torch.device) -> OnSecond:
        if value.dtype == torch.float64 and not self.float64:
            raise TypeError(f"Cannot convert a {NAME} Tensor to float64 dtype: the device does not support it.")
        return OnSecond(value, device.index or 0)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those among the arguments of an operator, which are tensors, lists of them, and no other containers."""
    for one in values:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from _tensors(one)


@contextmanager
def _random(device: torch.device) -> Iterator[None]:
    """Random numbers of the device come from its own generator."""
    if device.type != NAME:
        yield
        return
    before = torch.get_rng_state()
    torch.set_rng_state(MODULE.get_rng_state(device))
    try:
        yield
        MODULE.set_rng_state(torch.get_rng_state(), device)
    finally:
        torch.set_rng_state(before)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
