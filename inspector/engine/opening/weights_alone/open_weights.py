"""From a file of weights alone to a subject: recurrent layers are rebuilt and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.contracts import REBUILDING, State
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.opening.checkpoint_matching import not_finite
from inspector.engine.opening.hugging_face.heads import next_token_loss
from inspector.engine.opening.weights_alone.keras_cells import stacks_of
from inspector.engine.opening.weights_alone.plan import (
    ARGUMENTS,
    LETTERS,
    NONLINEARITIES,
    TASKS,
    Plan,
    make_plan,
    matrices,
)
from inspector.engine.opening.weights_alone.rebuilt_model import rebuilt
from inspector.engine.opening.weights_alone.stacks import Stack, find_stacks
from inspector.records import CheckpointReport, counted

MOST_OFFERED = 500
"""Layers and matrices that are offered in place of what was guessed."""
STEPS = 64
"""Of the example of random tokens."""
GUESSED = (
    "No model was given: this one is rebuilt from the names and shapes of {file}, as far as these tell. It runs {told}."
    "{unused} Guessed: that they follow one another like this, with nothing between{more}. Change it with the "
    "arguments {arguments}."
)


def open_weights(state: State, path: Path, arguments: Mapping[str, Any]) -> tuple[Subject, CheckpointReport]:
    """The subject of a file without a model, and the report of its weights.

    Raises InputError where it has no recurrent layers, or `arguments` ask for what is not there.
    """
    tensors = _of_one_type(state.tensors)
    hints = state.meta.get(REBUILDING, {})
    not_run = hints.get("not_run", {})
    usable = {name: one for name, one in tensors.items() if name.rpartition(".")[0] not in not_run}
    stacks, problems = find_stacks(usable)
    stacks = in_order([*stacks, *stacks_of(hints.get("cells", {}), usable)], usable)
    problems += hints.get("remarks", ())
    problems += [f"{why}; from there on nothing is run." for why in sorted({*not_run.values()})]
    if not stacks:
        why = f" {problems[0]}" if problems else ""
        raise InputError(
            f"{path.name} holds weights, not the model, and no recurrent layers of torch's by name (rnn.weight_ih_l0 "
            f"…), which could be rebuilt.{why} Name the model too, for example file.py:callable with --checkpoint "
            f"{path}."
        )
    if "nonlinearity" in hints:
        arguments = {"nonlinearity": hints["nonlinearity"], **arguments}
    plan = make_plan(usable, stacks, arguments)
    model = rebuilt(plan, tensors)
    missing = [name for name, one in model.named_parameters() if one.is_meta]
    if missing:
        raise InputError(f"{path.name} has no tensor {missing[0]}, which its shapes call for.")
    subject = _subject(model, plan, path.name)
    subject.rebuilt = _told(plan, tensors, path, problems, hints.get("guessed", ()))
    report = CheckpointReport(
        path=str(path), layout=state.layout, matched=len(tensors), total=len(tensors), fits=True, step=state.step,
        others=state.others, rebuilt=subject.rebuilt, guess=guess_of(plan, stacks, usable),
        mismatches=tuple(not_finite(tensors)),
    )  # fmt: skip
    return subject, report


def guess_of(plan: Plan, stacks: Sequence[Stack], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """What was guessed, in words (`told`) and as `arguments`, and what else could be asked for: `layers` as (name, in
    words), `matrices` as (name, rows, columns), `nonlinearities` where there is an RNN, and the letters of the gates of
    each kind."""
    kinds = {stack.kind for stack in stacks}
    return {
        "told": plan.told(),
        "arguments": plan.arguments,
        "layers": [[stack.place, stack.told()] for stack in stacks[:MOST_OFFERED]],
        "matrices": [[one.place, one.rows, one.columns] for one in matrices(tensors, stacks)[:MOST_OFFERED]],
        "nonlinearities": list(NONLINEARITIES) if "RNN" in kinds else [],
        "gates": {kind: letters for kind, letters in LETTERS.items() if kind in kinds},
        "tasks": list(TASKS),
    }  # fmt: skip


def _subject(model: nn.Module, plan: Plan, name: str) -> Subject:
    """What the model reads, with an example, and its loss where its task is known."""
    subject = Subject(model=model, name=name, next_token=plan.next_token)
    if plan.next_token:
        subject.loss, subject.logits = next_token_loss, _itself
    if plan.backward:
        subject.forward = _with_lengths
    if plan.embedding is not None:
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(plan.embedding.rows, (STEPS,), generator=generator)
        subject.kind, subject.examples = "tokens", {"random tokens": ids}
    else:
        subject.kind = "vectors"
        subject.width = plan.before.columns if plan.before is not None else plan.stacks[0].width
    return adopt(subject)


def in_order(stacks: Sequence[Stack], tensors: Mapping[str, Tensor]) -> list[Stack]:
    """Stacks as their first tensors lie in the file."""
    at = {name: number for number, name in enumerate(tensors)}
    return sorted(stacks, key=lambda stack: min(at[name] for name in stack.names))


def _with_lengths(model: nn.Module, inputs: Tensor, lengths: Tensor) -> Any:
    return model(inputs, lengths)


def _itself(output: Tensor) -> Tensor:
    return output


def _of_one_type(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of all tensors, floating ones of one type: double precision if one of them is, else single, in which
    torch's recurrent layers run on every processor."""
    double = any(tensor.dtype == torch.float64 for tensor in tensors.values())
    wide = torch.float64 if double else torch.float32
    return {
        name: tensor.detach().to(wide if tensor.is_floating_point() else tensor.dtype, copy=True)
        for name, tensor in tensors.items()
    }  # fmt: skip


def _told(
    plan: Plan, tensors: Mapping[str, Tensor], path: Path, problems: Sequence[str], guessed: Sequence[str]
) -> str:
    used = plan.modules
    unused = [
        name for name in tensors
        if name.rpartition(".")[0] not in used
    ]  # fmt: skip
    said = ""
    if unused:
        first = ", ".join(unused[:4]) + (" …" if len(unused) > 4 else "")
        said = f" Not run: {counted(len(unused), 'tensor')} ({first})."
    more = [f"{plan.nonlinearity} as the nonlinearity"] if any(one.kind == "RNN" for one in plan.stacks) else []
    more += guessed
    more += ["next tokens as the task"] if plan.next_token else []
    return " ".join([
        GUESSED.format(
            file=path.name, told=plan.told(), unused=said, more="".join(f", {one}" for one in more),
            arguments=", ".join(ARGUMENTS),
        ),
        *problems,
    ])  # fmt: skip
