"""What a picture has to do with each word that is said of it: gradients at its pixels, and words without a patch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from inspector.engine.analyses.picture_words import Words, pictures
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import INPUT
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN, place_name
from inspector.records.catalogue import PICTURE

NAME = "picture/words"
KIND = "picture_words"
LOG_P = Describe(
    kind=KIND, unit="nat", title="ln p of the word", formula="ln p(w_t | w_<t, picture)",
)  # fmt: skip
GRADIENT = Describe(
    kind=KIND, unit="nat", title="gradient of the word",
    formula="‖∂ ln p(w_t | w_<t, picture) / ∂ pixel‖₂ over channels",
    source="Simonyan, Vedaldi & Zisserman 2014, Deep inside convolutional networks",
)  # fmt: skip
BLANKED = Describe(
    kind=KIND, unit="nat", title="what blanking a patch changes", scale="diverging",
    formula="ln p(w_t | w_<t, picture) − ln p(w_t | w_<t, the picture with the patch filled with its mean)",
    source="Zeiler & Fergus 2014, Visualizing and understanding convolutional networks (occlusion)",
)  # fmt: skip


@QUANTITIES.register(NAME)
@per_run(
    summary="each word said of a picture: its gradient at the pixels, and which patch changes it when blanked",
    order=93, default=False, needs=(PICTURE,),
    cost="one backward pass for each word, and one run of the model for each patch",
    work=lambda run: run.call * 64.0,
)  # fmt: skip
def picture_words(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:words/log_p` (step,), `…/gradient` (step, row, column) of pixels, `…/blanked` (step, patch_row,
    patch_column), of every picture that the model reads: for the selected sequence, over the steps of the answer."""
    for name, _ in pictures(trace):
        base = f"{INPUT if name == trace.batch.primary else place_name(f'{INPUT}.{name}')}:words"
        try:
            words = Words.of(trace, name)
        except Unsupported as reason:
            emit.refuse(base, str(reason))
            continue
        _write(emit, LOG_P, f"{base}/log_p", ("step",), words, words.plain)
        gradient = lambda words=words: words.gradients(emit)  # noqa: E731
        _write(emit, GRADIENT, f"{base}/gradient", ("step", "row", "column"), words, gradient)
        blanked = lambda words=words: words.blanked(emit)  # noqa: E731
        _write(emit, BLANKED, f"{base}/blanked", ("step", "patch_row", "patch_column"), words, blanked)


def _write(
    emit: Emitter, about: Describe, name: str, dims: tuple[str, ...], words: Words, compute: Callable[[], Tensor]
) -> None:
    """One channel, or why there is none."""
    try:
        values = compute()
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    dtype = str(values.dtype).removeprefix("torch.")
    channel = about.channel(
        name, dims, tuple(values.shape), dtype, domains={"step": ANSWER_DOMAIN}, method=words.method
    )  # fmt: skip
    emit.array(channel, values)
