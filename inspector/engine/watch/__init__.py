"""Watching a training run that somebody else's loop makes, without changing it.

    watcher      what a user holds: watch(model, optimizer), log, note, close
    attachment   hooks on the model's call, on the optimizer's step, and where backward begins
    core         which moments belong to an iteration, what is measured then, what is written; guards everything
    measure      what a group of series is; gradients, updates, adam, … are such groups; presets lists them
    pack         the numbers of an iteration: stacked on the device, one copy to the host
    tables       rows of series as pages of the capture
    orders, pausing   what windows and the program ask for; the loop waits at the end of an iteration
    ring, spikes, call_form   what is kept of the last iterations, so that they can be run again
    pace         which iterations are recorded, by number or by a share of the time

Begin reading with `core.py`; docs/watching.md is for users.
"""

from inspector.engine.watch.watcher import Watcher, watch

__all__ = ["Watcher", "watch"]
