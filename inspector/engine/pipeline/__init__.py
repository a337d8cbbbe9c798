"""One run, in three parts that can be used separately.

    observe     probes around a call of a model, whoever makes it: no seed is set, no backward pass is made, nothing of
                the caller's is owned; gradients come by hooks, from the caller's own backward pass
    analyse     every quantity that was chosen, from the trace of an observed call, then or later
    recording   a capture with frames: how the run began, what was analysed, how it ended; open between frames

Made of these:

    own_run       a run that the app makes itself: seeded, one backward pass, the model unchanged afterwards
    watched_call  a call that a user's own loop makes, as one frame
    batches       from the input of a request to the batch that is run
    options       the options of a run, as one frozen record
    frames, results, starting   the records at the beginning of a frame; outputs and losses; the beginning of a run
    kept_trace    a trace stored for later analysis, and how much memory it may take

In: a subject, a batch, options and a sink. Out: channels in the sink, and the trace for later analysis.

Begin reading with `own_run.py`; docs/recording.md has examples.
"""

from inspector.engine.pipeline.analyse import analyse, analyse_later, chosen_quantities
from inspector.engine.pipeline.kept_trace import MOST_BYTES, KeptTrace, reasons_for_a_run, tensor_bytes
from inspector.engine.pipeline.observe import Observation, observe
from inspector.engine.pipeline.options import DEFAULTS, RunOptions
from inspector.engine.pipeline.own_run import perform, set_threads
from inspector.engine.pipeline.recording import Recording, record
from inspector.engine.pipeline.starting import run_start

__all__ = [
    "DEFAULTS", "MOST_BYTES", "KeptTrace", "Observation", "Recording", "RunOptions", "analyse", "analyse_later",
    "chosen_quantities", "observe", "perform", "reasons_for_a_run", "record", "run_start", "set_threads",
    "tensor_bytes",
]  # fmt: skip
