"""Training mode while the model is trained."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.model.training_mode import depends
from inspector.engine.registries import CURES
from inspector.records import counted


class TrainMode:
    """torch.nn.Module.train: dropout draws its masks, batch normalisation uses the statistics of the batch."""

    title = "Train in training mode"
    summary = "Every module is in training mode while the copy learns; it is judged in the mode that it has now."
    rules = ("IN116",)

    def apply(self, copy: Copy) -> str:
        """Set the mode of the loop."""
        subject = copy.trial.subject
        still = [
            name or "model" for name, one in subject.model.named_modules()
            if depends(one) and not one.training and name not in subject.set_to_eval
        ]  # fmt: skip
        if not still:
            raise Unsupported(
                "No dropout and no batch norm was in evaluation mode when the model was made, so copies are trained in "
                "training mode anyway."
            )
        copy.loop.train = True
        return f"{counted(len(still), 'module')} with dropout or batch norm in training mode"


CURES.register("train_mode")(TrainMode())
