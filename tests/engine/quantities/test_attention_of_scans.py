"""Maps that a recurrence is equal to are no attention: nothing is named, multiplied or clipped there."""

from __future__ import annotations

import pytest
import torch
from listed import Listed
from torch import nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.quantities.attention import attention_head_types, attention_largest_logit
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.attention import Attention
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_reasons_say_what_the_map_is() -> None:
    none = torch.zeros(1, 1, 0, 1)
    weights = torch.randn(1, 1, 4, 4, generator=torch.Generator().manual_seed(0)).tril()
    one = Attention("scan", "Scan", none, none, 1.0, weights=weights, causal=True, kept=0, equivalent="C Π A B")
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, 4, 1), torch.tensor([4])))
    trace.attentions.append(one)
    sink = Listed()
    for key in ("attention/head_types", "attention/largest_logit", "attention/rollout"):
        QUANTITIES[key].run(trace, Emitter(sink))
    said = sink.refusals()
    assert said["scan:attention/head_types"] == attention_head_types.EQUIVALENT.format("scan")
    assert said["scan:attention/largest_logit"] == attention_largest_logit.NONE.format("scan")
    assert "no chain of layers" in said["layers:attention/rollout"] and not sink.names()
