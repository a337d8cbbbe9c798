"""Attention of one sample at a recorded iteration: entropy and largest logit of each head.

Calls of `F.scaled_dot_product_attention` are seen through a function in its place while the model's call lasts (a name
that was imported before is not seen), and `nn.MultiheadAttention` that is asked for its weights through its hook. A
torch function mode would see all, and would make torch.compile compile again what runs inside.

Index letters: a head, q query, k key, d feature.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.hooks.module_stack import CalledModules, in_backward
from inspector.engine.model.uncompiled import CALL, original
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.compiled_attention import CompiledAttention
from inspector.engine.watch.measures.hidden_keys import HiddenKeys
from inspector.engine.watch.parameters import Parameters, plain_name
from inspector.engine.watch.tables import About
from inspector.engine.watch.turns import Turns

ENTROPY = "modules:attention/entropy"
LOGIT = "modules:attention/largest_logit"
LEFT_OUT = (
    "Entropies and logits of attention are not recorded from here on: this process has compiled code that calls "
    "F.scaled_dot_product_attention, and torch.compile would compile it again if calls of that were read."
)
MOST_ROWS = 64
"""Queries that are looked at, evenly spaced."""
MOST_CALLS = 64
LEAST_EXPONENT = 200.0
"""exp(−200) is 0 in float32."""
_METHOD = f"of the first sample, and of at most {MOST_ROWS} evenly spaced queries"


class Attending(Measure):
    """Reads queries and keys where attention is computed."""

    tables = (
        About(
            name=ENTROPY, title="attention entropy", unit="nat", column=("head", "head"), method=_METHOD,
            formula="mean over queries of −Σ_k A_qk ln A_qk", source="Zhai et al. 2023, arXiv 2303.06296",
        ),
        About(
            name=LOGIT, title="largest attention logit", column=("head", "head"), method=_METHOD,
            formula="max over q and the keys that it may attend to of |q·k| · scale",
            source="Dehghani et al. 2023; clipped at 100 in MuonClip",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module, turns: Turns, hidden: HiddenKeys) -> None:
        super().__init__(parameters)
        self._hidden = hidden
        self._turns = turns
        self._names = {id(part): plain_name(name) or "model" for name, part in model.named_modules()}
        self._called = CalledModules(model)
        self._compiled = any(original(one) is not one or getattr(one, CALL, None) for one in model.modules())
        self._beside, self._said = CompiledAttention(), False
        self._moment: Moment | None = None
        self._calls: dict[str, int] = {}
        self._causal: tuple[Any, Tensor] | None = None
        self._original: Any = None
        self._own: Any = None

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """See attention from now on; where the model is compiled, or it would be compiled again, not."""
        self.over()
        if self._compiled or moment.extra.get(ENTROPY) or not self._turns.has(moment, self.deciding()):
            return
        if self._beside.would_compile_again():
            if not self._said and not torch.compiler.is_compiling():
                self._said = True
                self.say(LEFT_OUT)
            return
        moment.extra[ENTROPY] = True  # of accumulated passes the first
        torchs = self._original = F.scaled_dot_product_attention
        self._moment, self._calls = moment, {}

        def seen(*given: Any, **more: Any) -> Any:
            out = torchs(*given, **more)
            if torch.compiler.is_compiling():
                return out
            self.guard(self._seen, given, more)
            return out

        self._own = F.scaled_dot_product_attention = seen

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Put torch's own function back."""
        self.over()

    def over(self) -> None:
        """Put torch's own function back."""
        if self._original is not None and F.scaled_dot_product_attention is self._own:
            F.scaled_dot_product_attention = self._original
        self._original = self._own = self._moment = None

    def _seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if in_backward() or self._moment is None:
            return
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | kwargs
        query, key, mask = given["query"].detach(), given["key"].detach(), given.get("attn_mask")
        if query.dim() < 3 or query.is_nested or not isinstance(mask, (Tensor, type(None))):
            return
        first = (0,) * (query.dim() - 3)
        if mask is not None:
            if mask.dim() > 2 and len(mask) == len(query):
                self._hidden.masked(mask.detach())
            mask = mask.detach().expand(*query.shape[:-1], key.shape[-2])[first]
        place = self._called.place()[0]
        self._measure(place, query[first], key[first], mask, given.get("scale"), bool(given.get("is_causal")))

    def reads(self, module: nn.Module) -> bool:
        """Torch's own attention."""
        return isinstance(module, nn.MultiheadAttention)

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """nn.MultiheadAttention that computed its weights: the entropy is theirs; the logits cannot be known."""
        if not isinstance(module, nn.MultiheadAttention) or not isinstance(output, tuple) or self._moment is None:
            return
        weights = output[1] if len(output) > 1 else None
        if isinstance(weights, Tensor) and weights.dim() == 4:
            rows = _rows(weights.detach()[0].float())
            self._put(ENTROPY, self._numbered(place), -torch.xlogy(rows, rows).sum(-1).mean(-1))

    def _measure(
        self, place: str, query: Tensor, key: Tensor, mask: Tensor | None, scale: float | None, causal: bool
    ) -> None:
        """query (a, q, d), key (a or fewer groups, k, d), mask (a, q, k)."""
        place = self._numbered(place)
        step = -(-query.shape[1] // MOST_ROWS)
        keys = key if key.shape[0] == query.shape[0] else key.repeat_interleave(query.shape[0] // key.shape[0], 0)
        with torch.autocast(query.device.type, enabled=False):
            scores = torch.bmm(query[:, ::step].float(), keys.float().transpose(1, 2))
        scores *= 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        shift = None
        if causal:
            shift = self._later(query.shape[1], keys.shape[1], step, query.device)
        if mask is not None:
            part = mask[:, ::step]
            part = torch.zeros_like(scores).masked_fill_(~part, -math.inf) if part.dtype == torch.bool else part.float()
            shift = part if shift is None else shift + part
        self._put(LOGIT, place, largest_logits(scores, shift))
        self._put(ENTROPY, place, entropies(scores if shift is None else scores + shift))

    def _later(self, queries: int, keys: int, step: int, device: torch.device) -> Tensor:
        """(q, k) −∞ where a causal mask hides the key from the query, else 0."""
        shape = queries, keys, step, device
        if self._causal is None or self._causal[0] != shape:
            rows = torch.arange(0, queries, step, device=device)[:, None]
            hidden = rows < torch.arange(keys, device=device)
            self._causal = shape, torch.zeros(hidden.shape, device=device).masked_fill_(hidden, -math.inf)
        return self._causal[1]

    def _numbered(self, place: str) -> str:
        number = self._calls[place] = self._calls.get(place, 0) + 1
        return place if number == 1 else f"{place}#{number}"

    def _put(self, table: str, place: str, values: Tensor) -> None:
        if self._moment is not None and sum(self._calls.values()) <= MOST_CALLS:
            columns = [self.column("head", f"{place} head {n}") for n in range(len(values))]
            self._moment.pack.add(table, columns, values)


def largest_logits(scores: Tensor, shift: Tensor | None) -> Tensor:
    """(a,) max |q·k| · scale of `scores` (a, q, k) over the pairs that `shift`, a mask to be added, does not hide."""
    if shift is None:
        low, high = scores.amin((1, 2)), scores.amax((1, 2))
    else:
        hidden = shift == -math.inf
        seen = scores.masked_fill(hidden, 0.0)
        low, high = seen.amin((1, 2)), seen.amax((1, 2))
    return torch.maximum(low.neg(), high)


def entropies(scores: Tensor) -> Tensor:
    """(a,) mean over queries of the entropy of softmax(scores) over keys, scores (a, q, k), in nats.

    With s less the row's largest and Z = Σ exp(s) it is ln Z − Σ s·exp(s) / Z: one logarithm a row, not one an entry.
    """
    shifted = scores - scores.amax(-1, keepdim=True)
    weights = shifted.exp()
    total = weights.sum(-1)
    weights *= shifted.clamp_min_(-LEAST_EXPONENT)  # no weight is left there, and 0 · −∞ would be NaN
    return (total.log() - weights.sum(-1) / total).mean(-1)


def _rows(weights: Tensor) -> Tensor:
    return weights[:, :: -(-weights.shape[1] // MOST_ROWS)]
