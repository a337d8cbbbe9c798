"""What a worker can do: every entry of its registries, with all that the entry says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.records.options import Option

RECURRENCE, ATTENTION, LOSS = "recurrence", "attention", "loss"
NEEDS = {
    RECURRENCE: "No recurrence was found in this model, so there is nothing of this kind to compute.",
    ATTENTION: "No attention was found in this model, so there is nothing of this kind to compute.",
    LOSS: "This model came without a loss, so there are no gradients to compute.",
}
"""What a quantity may need of a model, and the sentence that is said where the model has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a registry.

    Attributes:
        key, title, summary: the key, a word or two for a menu, and one sentence.
        order: where it stands among the others, small first; of a quantity when it is computed.
        default, needs, cost: of a quantity: whether it is computed unasked, what it needs of
            a model (keys of NEEDS), and in a few words what it costs.
        options: what can be set.
        suffixes, magic: of a loader or an input: suffixes of its files, and their first bytes in hexadecimal.
        form: of an input: how its sequence is given: "line" (typed), "choice" (one of `choices`), "file", "example".
        reads: of an input: kinds of model that it is for; empty for all.
        prompt: of an input that is typed: what to type.
        choices: of an input: the sequences that it can make, by name.
    """

    key: str
    title: str = ""
    summary: str = ""
    default: bool = False
    order: int = 50
    needs: tuple[str, ...] = ()
    cost: str = ""
    options: tuple[Option, ...] = ()
    suffixes: tuple[str, ...] = ()
    magic: tuple[str, ...] = ()
    form: str = ""
    reads: tuple[str, ...] = ()
    prompt: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The worker's first word: what it can do."""

    torch: str
    threads: int
    devices: tuple[str, ...]
    probes: tuple[Entry, ...] = ()
    quantities: tuple[Entry, ...] = ()
    loaders: tuple[Entry, ...] = ()
    inputs: tuple[Entry, ...] = ()
    cells: tuple[Entry, ...] = ()
    broken: tuple[str, ...] = ()
