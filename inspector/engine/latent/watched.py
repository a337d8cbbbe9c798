"""Notes every call of `torch.distributions` while a model runs, whoever makes the objects and in whatever form.

The methods of the classes are wrapped while the run lasts, so objects themselves stay as they are, those made before
the run are seen too, and so are the classes of other packages that derive from torch's. `kl_divergence` may have been
imported by its name anywhere; the table in which it looks up its formulas is what is replaced.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, kl

from inspector.engine.hooks.module_stack import CalledModules, in_backward
from inspector.engine.latent.calls import DistributionCalls, Divergence, Key, Seen, Site
from inspector.engine.recurrent.traced.record.source_names import assigned

METHODS = ("sample", "rsample", "log_prob")
TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).parents[2])
AS_TORCH = str(Path(TORCH) / "distributions" / "<watched>")
"""File of the wrappers: what searches the stack for the user's code passes over them as over torch's own."""
DEEPEST = 64
"""Calls that tell one line from the same line called from elsewhere. Counter-example: deeper recursion is one line."""
TABLE = "_KL_MEMOIZE"


class Formulas(dict[Any, Any]):
    """Torch's table of formulas for divergences, whose formulas tell of their results."""

    def __init__(self, own: dict[Any, Any], note: Callable[[Any, Any, Any], None], around: _Depth) -> None:
        super().__init__(own)
        self.own, self.note, self.around = own, note, around

    def __getitem__(self, pair: Any) -> Any:
        """The formula of a pair of classes, looked up as `kl_divergence` does where it is new."""
        if pair not in self.own:
            self.own[pair] = kl._dispatch_kl(*pair)
        formula = self.own[pair]
        if formula is NotImplemented:
            return formula
        return _divergence(formula, self.note, self.around)


class _Depth(threading.local):
    """How many of the wrapped calls are running: only the outermost is the user's."""

    value = 0


class DistributionWatch:
    """From `begin` to `end`, notes what the thread that made it does with distributions. Never raises into it."""

    def __init__(self, model: nn.Module, calls: DistributionCalls) -> None:
        self.calls, self.broken = calls, ""
        self._modules = CalledModules(model)
        self._thread = threading.get_ident()
        self._depth = _Depth()
        self._wrapped: list[tuple[type, str, Any]] = []
        self._examined: set[type] = set()
        self._formulas: dict[Any, Any] | None = None
        self._sites: dict[tuple[Key, str], Site] = {}

    def begin(self) -> None:
        """Wrap the methods of all classes that are known."""
        self._wrap(Distribution, "__init__", _made(Distribution.__init__, self._made))
        for kind in _derived(Distribution):
            self._wrap_methods(kind)
        self._formulas = getattr(kl, TABLE, None)
        if self._formulas is not None:
            setattr(kl, TABLE, Formulas(self._formulas, self._diverged, self._depth))

    def end(self) -> None:
        """Leave every class as it was. Idempotent."""
        while self._wrapped:
            kind, name, own = self._wrapped.pop()
            setattr(kind, name, own)
        if self._formulas is not None:
            setattr(kl, TABLE, self._formulas)
            self._formulas = None

    def _wrap_methods(self, kind: type) -> None:
        """Once for each class: objects are made at every step."""
        if kind in self._examined:
            return
        self._examined.add(kind)
        for name in METHODS:
            own = vars(kind).get(name)
            if isinstance(own, FunctionType) and not hasattr(own, "_watched"):
                self._wrap(kind, name, _called(own, functools.partial(self._used, name), self._depth))

    def _wrap(self, kind: type, name: str, wrapper: Any) -> None:
        self._wrapped.append((kind, name, vars(kind)[name]))
        setattr(kind, name, wrapper)

    def _listens(self) -> bool:
        return (
            not self.broken and not self.calls.full and threading.get_ident() == self._thread
            and not torch.compiler.is_compiling() and not in_backward()
        )  # fmt: skip

    def _safely(self, note: Callable[[], None]) -> None:
        """The model continues whatever happens here; after an error nothing more is noted."""
        if not self._listens():
            return
        try:
            note()
        except Exception as fault:  # noqa: BLE001 - reported instead of ending the user's run
            self.broken = f"{type(fault).__name__}: {fault}"

    def _made(self, distribution: Distribution) -> None:
        def note() -> None:
            for kind in type(distribution).__mro__:
                self._wrap_methods(kind)  # it may be one of which nothing was known when the run began
            frame = _maker(distribution)
            if frame is not None:
                self._known(distribution, frame)

        self._safely(note)

    def _used(self, name: str, distribution: Distribution, result: Any) -> None:
        def note() -> None:
            if isinstance(result, Tensor):
                wrapper = _wrapper()
                seen = self._known(distribution, wrapper)
                line = next(_own_frames(wrapper), None)
                if line is not None and name != "log_prob":
                    self.calls.lines.add((line.f_code, line.f_lasti))
                (seen.log_probs if name == "log_prob" else seen.samples).append(result.detach())
                self.calls.count += 1

        self._safely(note)

    def _diverged(self, first: Any, second: Any, value: Any) -> None:
        def note() -> None:
            frame = _wrapper()
            one, other = self._known(first, frame), self._known(second, frame)
            self.calls.divergences.append(Divergence(self._site(frame), one, other, value.detach()))
            self.calls.count += 1

        self._safely(note)

    def _known(self, distribution: Distribution, frame: FrameType) -> Seen:
        seen = self.calls.seen.get(id(distribution))
        if seen is None:
            made = frame.f_code.co_filename != AS_TORCH
            site = self._site(frame, None if made else _held_as(frame, distribution))
            seen = self.calls.seen[id(distribution)] = Seen(site, distribution)
            self.calls.count += 1
        return seen

    def _site(self, frame: FrameType, held: str | None = None) -> Site:
        """The line that a frame is at; `held`: the name of an object that was made before, else of what is assigned."""
        chain = tuple(reversed([(one, one.f_lasti) for one in _own_frames(frame)]))
        key: Key = tuple((one.f_code, at) for one, at in chain)
        place, module = self._modules.place()
        key = key if held is None else (*key, held)
        found = self._sites.get((key, place))
        if found is None:
            names, whole = assigned(chain, stored=False)
            name = names[0] if names and (whole or len(names) == 1) else ""
            name = name if held is None else held
            found = self._sites[key, place] = Site(key, place, module, name)
        return found


def _derived(kind: type) -> Iterator[type]:
    """A class and all that derive from it."""
    yield kind
    derived: list[type] = kind.__subclasses__()
    for one in derived:
        yield from _derived(one)


def _wrapper() -> FrameType:
    """The frame of the innermost wrapper that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != AS_TORCH:
        frame = frame.f_back
    assert frame is not None
    return frame


def _held_as(wrapper: FrameType, distribution: Any) -> str:
    """The variable, or the attribute of `self`, that holds an object where a method of it is called; "" for none."""
    frame = next(_own_frames(wrapper), None)
    found = dict(frame.f_locals) if frame is not None else {}
    attributes = getattr(found.get("self"), "__dict__", {})
    return next((name for name, one in (*found.items(), *attributes.items()) if one is distribution), "")


def _own_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the user's code from here outwards, up to this package's."""
    found = 0
    while frame is not None and found < DEEPEST:
        file = frame.f_code.co_filename
        if file.startswith(OURS):
            return
        if not file.startswith(TORCH):
            found += 1
            yield frame
        frame = frame.f_back


def _maker(distribution: Distribution) -> FrameType | None:
    """The frame that makes a distribution; None where torch itself does, as a part or an expanded form of another."""
    frame: FrameType | None = _wrapper()
    while frame is not None and frame.f_code.co_name == "__init__" and _first_local(frame) is distribution:
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename.startswith(TORCH) else frame


def _first_local(frame: FrameType) -> Any:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None


def _as_torch(function: Any) -> Any:
    function.__code__ = function.__code__.replace(co_filename=AS_TORCH)
    return function


def _made(own: Any, note: Callable[[Any], None]) -> Any:
    """`Distribution.__init__` that tells of the object."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        own(self, *args, **kwargs)
        note(self)

    return functools.wraps(own)(_as_torch(__init__))


def _called(own: Any, note: Callable[[Any, Any], None], depth: _Depth) -> Any:
    """A method that tells of its object and its result, where no other such method calls it."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        depth.value += 1
        try:
            result = own(self, *args, **kwargs)
        finally:
            depth.value -= 1
        if not depth.value:
            note(self, result)
        return result

    wrapper: Any = functools.wraps(own)(_as_torch(call))
    wrapper._watched = True
    return wrapper


def _divergence(own: Any, note: Callable[[Any, Any, Any], None], depth: _Depth) -> Any:
    """A formula that tells of its result, where no other formula calls it."""

    def formula(first: Any, second: Any) -> Any:
        depth.value += 1
        try:
            result = own(first, second)
        finally:
            depth.value -= 1
        if not depth.value:
            note(first, second, result)
        return result

    return _as_torch(formula)
