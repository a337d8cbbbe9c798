"""The weights that a model's own configuration says are one."""

from torch import Tensor, nn


def declared_tied(model: nn.Module) -> list[Tensor]:
    """The embeddings that a Hugging Face model's configuration ties; none of any other model."""
    if getattr(getattr(model, "config", None), "tie_word_embeddings", False) is not True:
        return []
    found = [getattr(model, f"get_{one}_embeddings", lambda: None)() for one in ("input", "output")]
    weights = [getattr(one, "weight", None) for one in found]
    return [one for one in weights if isinstance(one, Tensor)] if None not in weights else []
