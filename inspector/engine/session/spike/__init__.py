"""An iteration that a watched training kept, run again with every probe (`PATH/spikes/0001.safetensors`).

    kept_step   what the file has: calls of the model, random state, gradient at the output, parameters
    replay      a subject and a batch that call a copy of the model as the training did, with the same gradient
    shares      which sample, and which step of the loss, made the gradient; whether it is the one that was recorded
    run         all of it as one frame of a capture

Begin reading with `replay.py`.
"""

from inspector.engine.session.spike.run import SPIKE, SpikeRun, is_spike

__all__ = ["SPIKE", "SpikeRun", "is_spike"]
