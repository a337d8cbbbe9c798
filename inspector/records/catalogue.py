"""What a worker offers: every entry of its registries, with all that the entry declares."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.records.options import Option

EQUIVALENT_MAP = "equivalent map"
"""The title of a map that a scan, and no softmax over scores, stands for."""
RECURRENCE, ATTENTION, LOSS, PICTURE = "recurrence", "attention", "loss", "picture"
NEEDS = {
    RECURRENCE: "No recurrence was found in this model, so there is nothing of this kind to compute.",
    ATTENTION: "No attention was found in this model, so there is nothing of this kind to compute.",
    LOSS: "This model came without a loss, so there are no gradients to compute.",
    PICTURE: "No input of this model is a picture, so there is nothing of this kind to compute.",
}
"""What a quantity may need of a model, and the message where the model has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a registry.

    Attributes:
        key, title, summary: the key, a short title for a menu, and one sentence.
        order: its position among the others, small first; quantities are computed in this order.
        default, needs, cost: for a quantity: whether it is computed by default, what it needs of a model (keys of
            NEEDS), and its cost as a short text.
        cheap: for a quantity: whether it costs no more than a few passes over what was recorded.
        options: its options.
        suffixes, magic: for a loader or an input: suffixes of its files, and their first bytes in hexadecimal.
        form: for an input: how its sequence is given: "line" (typed), "choice" (one of `choices`), "file", "example",
            "several" (a source of many sequences); for a loader: "model" where its files are models by themselves.
        reads: for an input: kinds of model that it is for; empty for all.
        prompt: for an input that is typed: what to type.
        choices: for an input: the sequences that it can make, by name.
        rules: for a cure: ids of the rules whose findings it may cure.
    """

    key: str
    title: str = ""
    summary: str = ""
    default: bool = False
    order: int = 50
    needs: tuple[str, ...] = ()
    cost: str = ""
    cheap: bool = False
    options: tuple[Option, ...] = ()
    suffixes: tuple[str, ...] = ()
    magic: tuple[str, ...] = ()
    form: str = ""
    reads: tuple[str, ...] = ()
    prompt: str = ""
    choices: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The worker's first message: the entries of its registries."""

    torch: str
    threads: int
    devices: tuple[str, ...]
    probes: tuple[Entry, ...] = ()
    quantities: tuple[Entry, ...] = ()
    loaders: tuple[Entry, ...] = ()
    inputs: tuple[Entry, ...] = ()
    cells: tuple[Entry, ...] = ()
    cures: tuple[Entry, ...] = ()
    broken: tuple[str, ...] = ()
