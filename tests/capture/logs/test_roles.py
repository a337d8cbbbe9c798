"""Usual names of logged numbers and what they stand for."""

from __future__ import annotations

import pytest

from inspector.capture import role_of

ROLES = {
    "loss": "loss train/loss train_loss train_loss_step train_loss_epoch Loss/train training.loss trainLoss loss_avg nll_loss"
    " train/nll cross_entropy_loss main/loss loss/total lm_loss",
    "validation loss": "val/loss val_loss eval_loss eval/loss valid_loss Loss/val test_loss validation/loss valLoss dev_loss",
    "learning rate": "lr learning_rate train/lr lr-AdamW lr-Adam lr-SGD/pg1 learning_rate_group0 optimizer/lr lr/group_1 train/learning_rate"
    " LearningRate lr-AdamW-1",
    "gradient norm": "grad_norm train/grad_norm gradient_norm gnorm grad-norm gradNorm grad_2.0_norm_total global_grad_norm total_norm"
    " grad_norm/total",
    "epoch": "epoch train/epoch trainer/epoch",
    "step": "step _step global_step trainer/global_step iteration iter num_updates train/step",
    "tokens": "tokens num_tokens tokens_seen train/num_tokens num_input_tokens_seen total_tokens",
    "time": "_timestamp timestamp wall_time",
    "accuracy": "acc accuracy train/acc train_accuracy top1",
    "validation accuracy": "val_acc eval/accuracy test_acc",
    "perplexity": "ppl train/ppl perplexity",
    "": "closset weight_decay momentum loss_scale grad_norm_clip flow slr epochs_left gradient norms per_layer/grad_norm/0.weight",
}  # fmt: skip


@pytest.mark.parametrize(("name", "role"), [(name, role) for role, names in ROLES.items() for name in names.split(" ")])
def test_usual_names(name: str, role: str) -> None:
    assert role_of(name) == role


def test_any_text_has_a_role_or_none() -> None:
    for text in ("", "/", "\x00" * 10, "loss" * 100_000, "ß/ﬀ", "😀 loss"):
        role_of(text)
    assert role_of("Wall time") == "time" and role_of("😀 loss") == "loss"
