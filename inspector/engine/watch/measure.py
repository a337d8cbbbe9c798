"""What is measured at a recorded iteration: one class a group of series, each with a method a moment of the iteration.

    forward_begins, forward_ended   around a call of the model itself, in training mode
    backward_begins                 gradients are what the passes before have left
    backward_failed                 the pass raised: the iteration may never end
    backward_ended                  gradients are complete (before they are clipped), scaled where a GradScaler did it
    step_begins, step_ended         around the optimizer's step: gradients as it gets them; weights as it left them
    each                            when any iteration has ended, recorded or not
    ends                            when the first optimizer has made its step
    derive                          on the host, from the numbers of all groups

Every method may raise; the watcher then ends, and training goes on. None may draw random numbers or change a tensor
of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.pack import Finish, Pack
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import About

Found = dict[str, dict[int, float]]
"""Table → column → number."""


@dataclass(slots=True)
class Moment:
    """One iteration that is being recorded."""

    iteration: int
    pack: Pack = field(default_factory=Pack)
    cells: dict[str, dict[int, Any]] = field(default_factory=dict)
    passes: int = 0
    seconds: float = 0.0
    shared: bool = False
    """Whether sums over processes are complete."""
    stepped: set[int] = field(default_factory=set)
    """Optimizers (by id) whose step was measured."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What a group stores until the end of the iteration."""

    def put(self, table: str, column: int, value: Any) -> None:
        """A number that the host has already."""
        self.cells.setdefault(table, {})[column] = value


class Measure:
    """A group of series. Does nothing at moments that it does not override."""

    tables: tuple[About, ...] = ()
    summed: tuple[str, ...] = ()
    """Tables whose numbers are sums over a parameter's entries while they travel: shards add them up."""
    finishing: Mapping[str, Finish] = MappingProxyType({})
    """By table of `summed`, what turns sums into what is shown, on the host."""
    reads_gradients = False
    """Whether `step_begins` reads gradients: where the step gets a closure, it is called when the step has ended."""

    always = False
    """Whether `must_look` is asked where a backward pass begins of an iteration that is not recorded."""

    guard: Callable[..., None]
    """guard(function, *arguments) from within the user's program (see Core.guarded); set by the core."""
    say: Callable[[str], None]
    """A warning for the log of the run; set by the core."""
    column: Callable[[str, str], int]
    """column(label domain, name): the number of a column whose name is known only now; set by the core."""
    deciding: Callable[[], bool]
    """Whether numbers decide if the training waits, so that none may be missing; set by the core."""
    counted: Callable[[], list[int]]
    """Parameters whose gradients belong to this iteration (see Core.counted); set by the core."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """The model is about to be called."""

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """The model returned; `output` is None where it raised."""

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """A backward pass begins at `roots`; it need not be one that changes gradients of the model's."""

    def must_look(self, roots: Sequence[Tensor]) -> bool:
        """Whether a backward pass of an iteration that is not recorded is looked at all the same."""
        return False

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """A backward pass ended that changed gradients of the model's."""

    def backward_failed(self, moment: Moment, roots: Sequence[Tensor], fault: Exception) -> None:
        """A backward pass raised; only numbers over axes of their own are written of this moment."""

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """An optimizer is about to change the parameters in `columns`."""

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """It has changed them."""

    def each(self, iteration: int) -> None:
        """An iteration has ended, recorded or not: as good as nothing may be done here."""

    def ends(self, moment: Moment) -> None:
        """The iteration is complete; the last chance to add numbers."""

    def over(self) -> None:
        """Watching has ended: leave nothing behind."""

    def derive(self, moment: Moment, found: Found) -> None:
        """Add numbers that follow from others."""


def looked_apart(measures: Sequence[Measure], iteration: int, roots: Sequence[Tensor]) -> Moment:
    """What those found that look at backward passes of iterations that are not recorded."""
    moment = Moment(iteration)
    for measure in measures:
        if measure.always and measure.must_look(roots):
            measure.backward_begins(moment, roots)
    return moment
