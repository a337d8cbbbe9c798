"""What a logged name stands for: "train/loss", "train_loss_step" and "loss" are all the loss.

Names are taken apart at `/`, `_`, `-`, `.`, blanks and capitals; a role is decided by these words, never by a part of a
word ("closset" is no loss). Whatever is in no list has no role. Counter-example: a weight decay that somebody logs as
"lr2" has none either; a loss that is called "objective" is not found.
"""

from __future__ import annotations

import re
from typing import Literal

Role = Literal[
    "", "loss", "validation loss", "learning rate", "gradient norm", "epoch", "tokens", "step", "time", "accuracy",
    "validation accuracy", "perplexity",
]  # fmt: skip

HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev", "heldout"})
"""Words for data that is not trained on."""
FILLER = frozenset({
    "train", "training", "trainer", "step", "steps", "epoch", "avg", "average", "mean", "running", "total", "global",
    "metrics", "metric", "log", "batch", "current", "iter", "smoothed", "raw", "logs", "main", "model", "0",
})  # fmt: skip
"""Words that do not change what a name stands for, beside one that does."""
LOSSES = frozenset({"loss", "nll", "xent", "ce", "crossentropy", "bce", "mse"})
KINDS_OF_LOSS = LOSSES | {"cross", "entropy", "lm", "language", "modeling", "objective"}
"""Words beside "loss" that say which one."""
RATES = frozenset({"lr", "lrate", "learningrate"})
OPTIMIZERS = frozenset({
    "adam", "adamw", "sgd", "rmsprop", "adagrad", "adafactor", "adamax", "nadam", "radam", "lion", "muon", "lamb", "pg",
    "group", "param", "params", "optimizer", "opt", "scheduler", "schedule", "pg0", "pg1", "pg2", "pg3",
    "group0", "group1",
})  # fmt: skip
STEPS = frozenset({
    "step", "steps", "globalstep", "iteration", "iterations", "iter", "iters", "update", "updates", "numupdates",
    "globaliter", "trainerglobalstep", "trainstep", "optimizerstep", "itr", "nstep", "batchidx",
})  # fmt: skip
EPOCHS = frozenset({"epoch", "epochs", "trainepoch", "trainerepoch", "currentepoch", "globalepoch"})
TIMES = frozenset({"timestamp", "walltime", "unixtime", "epochtime"})
TOKENS = frozenset({
    "tokens", "numtokens", "ntokens", "tokensseen", "totaltokens", "numinputtokensseen", "traintokens",
    "tokensprocessed", "consumedtokens", "inputtokensseen", "numtokensseen",
})  # fmt: skip
NORMS = ("gradnorm", "gradientnorm", "gradl2norm", "gnorm", "totalnorm", "gradnormtotal", "normgrad", "gradnorml2",
         "grad20normtotal", "grad2normtotal", "globalgradnorm", "totalgradnorm")  # fmt: skip

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_APART = re.compile(r"[^a-z0-9]+")
LONGEST = 300
"""Characters of a name that are looked at."""


def role_of(name: str) -> Role:
    """The role of a logged name; "" where it has none."""
    words = words_of(name)
    joined, bare = "".join(words), tuple(word for word in words if word not in FILLER)
    for role, names in _WHOLE:
        if joined in names or joined.removeprefix("train") in names:
            return role
    core = "".join(word for word in bare if word not in HELD_OUT)
    held_out = any(word in HELD_OUT for word in words)
    if core in NORMS or joined.removeprefix("train") in NORMS:
        return "" if held_out else "gradient norm"
    if core in LOSSES or ("loss" in bare and set(bare) <= KINDS_OF_LOSS | HELD_OUT):
        return "validation loss" if held_out else "loss"
    if core in ("acc", "accuracy", "top1", "acc1"):
        return "validation accuracy" if held_out else "accuracy"
    if core in ("ppl", "perplexity"):
        return "perplexity"
    rest = [word for word in bare if word not in OPTIMIZERS and not word.isdecimal()]
    return "learning rate" if "".join(rest) in RATES else ""


_WHOLE: tuple[tuple[Role, frozenset[str]], ...] = (
    ("step", STEPS), ("epoch", EPOCHS), ("time", TIMES), ("tokens", TOKENS),
)  # fmt: skip


def words_of(name: str) -> list[str]:
    """The lower-case words of a name."""
    return [word for word in _APART.split(_CAMEL.sub(" ", name[:LONGEST]).lower()) if word]
