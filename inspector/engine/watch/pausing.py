"""The loop waits at the end of an optimizer's step: because somebody asked, or because a condition holds.

What waits is the thread that trains, inside the optimizer's hook: no tensor, no random state and no flag is touched.
Before it waits the iteration has been recorded, probed and written. It goes on when it is told to, when the window
that asked gives no sign of life, when nobody has answered for as long as was allowed, and when the capture cannot be
written.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from inspector.capture.control import GONE_SECONDS
from inspector.engine.watch.core import Core
from inspector.engine.watch.gradients import GLOBAL, NON_FINITE
from inspector.engine.watch.loss import LOSS
from inspector.engine.watch.measure import Found, Moment
from inspector.engine.watch.measures.activations import BAD
from inspector.engine.watch.orders import FROM_WINDOW, Orders, Test
from inspector.engine.watch.processes.ranks import longest_wait
from inspector.engine.wording import error_text, in_short
from inspector.records import BREAK_ON, CONTINUED, PAUSED, duration
from inspector.records.break_condition import NON_FINITE as NOT_FINITE
from inspector.records.break_condition import Clause

LOSS_NAME, NORM_NAME = "loss", "gradient norm"
POLL_SECONDS = 0.1
MOST_SAID = 160
"""Characters of what a function of the program raised."""


class Pausing:
    """Decides at the end of each iteration whether the loop waits, and waits.

    `patience`: seconds that it waits at most. `probe(iteration, text)` writes a frame and returns its number, -1 where
    there is none; `commit` returns when everything is on the disk.
    """

    def __init__(
        self, core: Core, orders: Orders, patience: float, probe: Callable[[int, str], int], commit: Callable[[], None]
    ) -> None:  # fmt: skip
        self.core, self.orders, self.patience = core, orders, patience
        self._probe, self._commit = probe, commit
        self._found: Found = {}
        self._kinds: list[str] = []
        self._held: dict[str, bool] = {}
        self._reason = ""
        self._by_window = False
        self._told = False
        core.after_row.append(self._look)
        core.at_end.append(self.iteration_ended)
        core.choose_next = self.choose_next
        core.at_once = lambda: orders.active

    # -- which iterations are recorded

    def choose_next(self, iteration: int, proposed: int) -> int:
        """The iteration that is recorded after this one: the next, where the loop is to wait or numbers decide."""
        orders = self.orders
        if not orders.active:
            return proposed
        deciding = orders.test is not None or (orders.condition is not None and orders.condition.of_numbers)
        if orders.wish.paused or (deciding and self.core.pace.every is None):
            return iteration + 1
        named = [] if orders.condition is None else [n for n in orders.condition.iterations() if n > iteration]
        return min([proposed, *named])

    # -- conditions

    def happened(self, kind: str) -> None:
        """A spike or a first non-finite number was found in the row that is looked at next."""
        self._kinds.append(kind)

    def _look(self, moment: Moment, found: Found) -> None:
        self._found = found
        condition, kinds = self.orders.condition, self._kinds
        self._kinds = []
        if condition is None and self.orders.test is None:
            return
        for clause in () if condition is None else condition.clauses:
            told = self._holds(clause, moment.iteration, found, kinds)
            self._turn(clause.text, told)
        if self.orders.test is not None:
            holds = self._asked(self.orders.test, self.numbers(moment.iteration, found))
            self._turn("the program's condition", "the program's condition" if holds else "")

    def _asked(self, test: Test, numbers: Mapping[str, float]) -> bool:
        """What the program's function says; one that raises is not asked again, and everything else goes on."""
        try:
            return bool(test(numbers))
        except Exception as fault:  # noqa: BLE001 - code of the program, in its training
            self.core.say(f"break_on failed, and is not asked any more: {in_short(error_text(fault), MOST_SAID)}.")
            self.orders.break_when(None)
            return False

    def _turn(self, name: str, told: str) -> None:
        """A condition breaks when it begins to hold, not at each iteration that it lasts."""
        before, self._held[name] = self._held.get(name, False), bool(told)
        if told and not before and not self._reason:
            self._reason, self._by_window = told, self.orders.condition_by_window

    def _holds(self, clause: Clause, iteration: int, found: Found, kinds: list[str]) -> str:
        """Why a clause holds; "" where it does not."""
        if clause.kind == "iteration":
            return clause.text if iteration == clause.limit else ""
        if clause.kind == NOT_FINITE:
            return _not_finite(found)
        if clause.kind != "limit":
            return clause.text if clause.kind in kinds else ""
        values = self._values(clause, found)
        reached = clause.exceeded_by(values.values())
        if reached is None:
            return ""
        which = next(name for name, one in values.items() if one == reached)
        return f"{clause.text}: {reached:.4g}{f' in {which}' if which and not clause.column else ''}"

    def _values(self, clause: Clause, found: Found) -> dict[str, float]:
        """Numbers that a clause is about, by the names of their columns."""
        if clause.name in (LOSS_NAME, NORM_NAME):
            one = self.numbers(0, found).get(clause.name)
            return {} if one is None else {"": one}
        table = self.table_of(clause.name)
        names = self.core.tables.names_of(table)
        cells = found.get(table, {})
        shown = {names[column] if column < len(names) else "": value for column, value in cells.items()}
        return {name: one for name, one in shown.items() if clause.column in ("", name)}

    def table_of(self, name: str) -> str:
        """The series that a name means: with its place, or without; "" where there is none."""
        known = self.core.tables.known
        return next((one for one in known if name in (one, one.partition(":")[2])), "")

    def knows(self, name: str, column: str) -> bool:
        """Whether something is recorded under a name, in a column of that name where its columns are known already."""
        if name in (LOSS_NAME, NORM_NAME):
            return True
        table = self.table_of(name)
        columns = self.core.tables.names_of(table)
        return bool(table) and (not column or not columns or column in columns)

    @staticmethod
    def numbers(iteration: int, found: Found) -> dict[str, float]:
        """What a function of the program is given: iteration, loss, and the norm of all gradients before clipping."""
        norms = found.get(GLOBAL, {})
        told = {"iteration": float(iteration), LOSS_NAME: found.get(LOSS, {}).get(0),
                NORM_NAME: norms.get(0, norms.get(1))}  # fmt: skip
        return {name: float(value) for name, value in told.items() if value is not None}

    # -- the end of an iteration

    def iteration_ended(self, recorded: bool) -> None:
        """Wait, if it is time; else see to it that the next iteration is recorded where the loop is to wait."""
        orders, core = self.orders, self.core
        if not orders.active:
            return
        self._tell_conditions()
        if not recorded:
            if not core.ranks.bound:  # others are told which iteration is next when one is recorded
                core.hasten(self.choose_next(core.iteration, core.next))
            return
        wish = orders.wish
        if self._reason:
            why, by_window = self._reason, self._by_window
            self._reason = ""
            orders.pause(why, by_window=by_window)
        wish.steps = 0  # this was the one
        if orders.wish.paused:
            self._wait()
        if orders.wish.paused and not core.ranks.bound:
            core.hasten(core.iteration + 1)
        orders.settle()

    def _tell_conditions(self) -> None:
        """Conditions that were set since, in the capture; names that mean nothing, in its log."""
        news, self.orders.news = self.orders.news, []
        for text in news:
            self._held.clear()
            self.core.event(BREAK_ON, text)
        condition = self.orders.condition
        unknown = condition.unknown(self.knows) if condition is not None and news else []
        if unknown:
            self.core.say(f"Nothing is recorded under {', '.join(unknown)}, so that condition never holds.")
        for passed in condition.iterations() if condition is not None and news else ():
            if passed < self.core.iteration:
                self.core.say(f"Iteration {passed:,} has passed, so that condition never holds.")

    def _wait(self) -> None:
        """Record, probe, write; then wait."""
        core, orders = self.core, self.orders
        wish = orders.wish
        longest = longest_wait()
        patience = self.patience if longest is None else min(self.patience, longest)
        if patience <= 0:
            orders.go_on()
            core.say("The training cannot wait: how long the other processes wait for this one is not known.")
            return
        frame = self._probe(core.iteration, wish.why)
        core.settle()
        least = f"; it goes on by itself after {duration(patience)}"
        core.event(PAUSED, f"{wish.why}{least}", frame)
        self._commit()
        self._tell_terminal(f"the training waits at iteration {core.iteration}: {wish.why}{least}, or as a window says")
        began = time.monotonic()
        why = self._until_told(began, patience)
        core.pace.waited(time.monotonic() - began)
        if why:
            core.event(CONTINUED, why)
            self._commit()
            if self._told:
                self._told = False
                _write(f"the training goes on: {why}")

    def _tell_terminal(self, text: str) -> None:
        """Once a pause that no window asked for: without a window a loop that waits looks like one that hangs."""
        if not self._told and not self.orders.wish.by_window:
            self._told = True
            _write(text)

    def _until_told(self, began: float, patience: float) -> str:
        """Wait; returns why it goes on, "" for one more iteration."""
        orders = self.orders
        while True:
            with orders.changed:
                orders.changed.wait(POLL_SECONDS)
                wish = orders.wish
            if orders.news:  # what a window asks for meanwhile is answered now, not when it goes on
                self._tell_conditions()
                self._commit()
            now = time.monotonic()
            if not wish.paused:
                return f"after {duration(now - began)}"
            if wish.steps:
                return ""
            if now - began > patience:
                orders.go_on(forget=True)
                return f"nobody answered within {duration(patience)}"
            attended = wish.by_window or orders.heard > began
            if attended and now - max(orders.heard, began) > GONE_SECONDS:
                orders.go_on(forget=True)
                return f"{FROM_WINDOW} is gone"


def _write(text: str) -> None:
    with suppress(Exception):  # a terminal that is gone is no reason to end anything
        sys.stderr.write(f"inspector: {text}.\n")


def _not_finite(found: Mapping[str, Mapping[int, float]]) -> str:
    """What is NaN or infinite in a row; "" where nothing is."""
    numbers = Pausing.numbers(0, dict(found))  # type: ignore[arg-type]
    bad = [name for name, value in numbers.items() if not math.isfinite(value)]
    if bad:
        return f"the {' and the '.join(bad)} became NaN or infinite"
    for table, what in ((NON_FINITE, "gradient entries"), (BAD, "activations")):
        if any(value > 0 for value in found.get(table, {}).values()):
            return f"{what} became NaN or infinite"
    return ""
