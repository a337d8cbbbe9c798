"""Every tensor of a checkpoint as a capture, without running anything; or two checkpoints tensor by tensor.

- `parts.py` - what is listed: tensors, and their gates;
- `cells.py` - values as they are stored, and the cells of a picture of a large tensor;
- `run.py` - the capture, and the values that are asked for afterwards.
"""

from inspector.engine.session.weights.run import KeptWeights, WeightsRun, is_weights

__all__ = ["KeptWeights", "WeightsRun", "is_weights"]
