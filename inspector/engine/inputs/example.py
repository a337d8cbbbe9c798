"""The example sequences of a subject; the first is the default."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.engine.errors import InputError
from inspector.engine.model.batching import default_sequence
from inspector.engine.model.named_batches import defaults, of_example
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS
from inspector.engine.sources import OWN, items
from inspector.records import InputSpec, data_spec


class Example:
    """One of the subject's examples, by name."""

    title = "Example"
    summary = "An example sequence of the model, by name."
    form = "example"
    order = 0

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The example named `value` (a unique prefix is enough), or the first; without any, the first of its data, else
        a random one."""
        if not subject.examples:
            if spec.value:
                raise InputError(f"{subject.name} has no examples, so there is no {spec.value!r}; type a sequence.")
            return _of_data(subject, seed) or (
                defaults(subject, seed) if subject.declared else default_sequence(subject, seed)
            )
        name = spec.value or next(iter(subject.examples))
        alike = [known for known in subject.examples if known.lower().startswith(name.lower())]
        name = alike[0] if name not in subject.examples and len(alike) == 1 else name
        if name not in subject.examples:
            known = ", ".join(subject.examples)
            raise InputError(f"{subject.name} has no example {name!r}; there are: {known}.")
        return of_example(subject, subject.examples[name], name)


def _of_data(subject: Subject, seed: int) -> Batch | None:
    """The first sequence of the subject's own data; None where it has none, or it cannot be read (more than once)."""
    if subject.data is None or isinstance(subject.data, Iterator):
        return None
    found = next(items(subject, data_spec(OWN, most=1), seed), None)
    return None if found is None else found.batch


INPUTS.register("example")(Example())
