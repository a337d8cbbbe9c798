"""A variational autoencoder that nobody here wrote: molgen's, which draws z = μ + σ ε itself and uses no distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Refusal


@pytest.mark.parametrize("training", [False, True])
def test_its_hidden_variable_is_shown(training: bool) -> None:
    vae = pytest.importorskip("molgen.vae", reason="pip install --no-deps molgen==0.2.0", exc_type=ImportError)
    torch.manual_seed(0)
    model = vae.BetaTCVAE(12, 16, 32, 5, 2, 1, 0, "cpu").train(training)
    returned: list[torch.Tensor] = []
    model.register_forward_hook(lambda _model, _given, output: returned.extend(one.detach()[1] for one in output[1:]))
    sink, ids = Kept(), torch.randint(1, 12, (3, 9))
    subject = Subject(model=model, kind="tokens", loss=lambda out, _batch: out[0].square().sum(-1))
    batch = Batch(ids, torch.tensor([9, 5, 7]), look_at=1)
    perform(subject, batch, sink, RunOptions(only=("latent/distributions",)))
    mu, log_variance, z = (one.double().numpy() for one in returned[:3])
    np.testing.assert_allclose(sink.array("model:latent/z/z"), np.stack((mu, np.exp(log_variance / 2)), -1), rtol=1e-5)
    np.testing.assert_allclose(sink.array("model:latent/z/sample"), z, rtol=1e-6)
    wanted = (mu**2 + np.exp(log_variance) - 1 - log_variance) / 2
    np.testing.assert_allclose(sink.array("model:latent/z/kl"), wanted, rtol=1e-4, atol=1e-6)
    assert not [one for one in sink.of(Refusal) if ":latent" in one.channel]
