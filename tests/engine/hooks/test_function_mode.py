"""Modes that share one place on torch's stack, that are put aside, and modules that are found without hooks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from inspector.engine.hooks.function_mode import SwitchedMode, unwatched
from inspector.engine.hooks.module_stack import CalledModules


class Waiting(SwitchedMode):
    """Waits for torch.tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []
        self.handlers = {id(torch.tanh): lambda _args, _kwargs, out: self.seen.append(out)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if id(func) in self.handlers:
            self.handlers[id(func)](args, kwargs or {}, out)
        return out


class Everything(SwitchedMode):
    """Sees every function, and calls the handlers of the mode below."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.count += 1
        if id(func) in self.also:
            self.also[id(func)](args, kwargs or {}, out)
        return out


class Users(TorchFunctionMode):
    """A mode of the user's."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Users.count += 1
        return func(*args, **(kwargs or {}))


def test_a_mode_above_calls_the_handlers_of_one_that_only_waits() -> None:
    x = torch.ones(2)
    guest, host = Waiting(), Everything()
    guest.on(True)
    try:
        host.carry()
        host.on(True)
        assert _get_current_function_mode_stack() == [host]
        torch.tanh(x)
        assert len(guest.seen) == 1
        guest.on(False)
        torch.tanh(x)
        assert len(guest.seen) == 1 and host.count == 2
        guest.on(True)
        host.on(False)
        assert _get_current_function_mode_stack() == [guest]
        torch.tanh(x)
        assert len(guest.seen) == 2 and host.count == 2
        host.on(True)
        torch.tanh(x)
        assert len(guest.seen) == 3 and host.count == 3
    finally:
        host.on(False)
        guest.on(False)
    assert not _get_current_function_mode_stack()


def test_our_modes_are_put_aside_and_the_users_stay() -> None:
    mode = Everything()
    mode.on(True)
    try:
        with Users():
            Users.count = 0
            with pytest.raises(ValueError, match="inside"), unwatched():
                torch.tanh(torch.zeros(1))
                raise ValueError("inside")
            assert mode.count == 0 and Users.count > 0
            torch.tanh(torch.zeros(1))
            assert mode.count > 0
    finally:
        mode.on(False)
    assert not _get_current_function_mode_stack()


def test_the_innermost_module_of_the_model_is_found_without_hooks() -> None:
    places: list[tuple[str, str]] = []

    class Inner(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            places.append(modules.place())
            return nn.Identity()(x)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Inner()
            self.other = nn.Sequential(Inner())

        def forward(self, x: Tensor) -> Tensor:
            places.append(modules.place())
            return self.other(self.part(x))

    model = Outer()
    modules = CalledModules(model)
    assert modules.place() == ("model", "")
    model(torch.zeros(1))
    assert places == [("model", "Outer"), ("part", "Inner"), ("other.0", "Inner")]
