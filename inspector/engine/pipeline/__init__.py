"""One run, in parts that can be used apart.

    observe     probes around a call of a model, whoever makes it: no seed is set, no backward pass is made, nothing of
                the caller's is owned; gradients come by hooks, from the caller's own backward pass
    analyse     every quantity that was chosen, from the trace that observing left
    own_run     a run that the app makes itself: seeded, the model as it was afterwards, one backward pass
    options     what a run is asked for, as one frozen record

In: a subject, a batch, options and a sink. Out: channels in the sink, and the trace for later questions.

Begin reading with `own_run.py`.
"""

from inspector.engine.pipeline.analyse import analyse, chosen_quantities
from inspector.engine.pipeline.observe import Observation, observe
from inspector.engine.pipeline.options import DEFAULTS, RunOptions
from inspector.engine.pipeline.own_run import perform, set_threads

__all__ = ["DEFAULTS", "Observation", "RunOptions", "analyse", "chosen_quantities", "observe", "perform", "set_threads"]
