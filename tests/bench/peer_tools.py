"""Tools that diagnose trainings, each put into a loop where its README has it; imported only where it is used."""

from __future__ import annotations

import csv
import io
import logging
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import nn

import inspector

STEPS = 60
Said = tuple[str, str]
"""A short name and everything else that is said, of one finding at warning or above."""


class Tool:
    """How a tool is put into a loop; each of its calls is where its README has it."""

    package = ""

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        """Before the loop."""

    def after_backward(self, step: int, loss: float, norm: float) -> None:
        """Before clipping; the norm of the gradient is that."""

    def after_step(self, step: int, loss: float) -> None:
        """After the optimizer's step."""

    def said(self) -> list[Said]:
        """Findings at warning or above."""
        raise NotImplementedError


class Torchmortem(Tool):
    package = "torchmortem"

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        from torchmortem import Autopsy

        logging.getLogger("torchmortem").setLevel(logging.ERROR)
        self.to, self.autopsy = folder / "report.json", Autopsy(model, optimizer=optimizer)
        self.autopsy.attach()

    def after_step(self, step: int, loss: float) -> None:
        self.autopsy.step(loss=loss)

    def said(self) -> list[Said]:
        self.autopsy.detach()
        found = self.autopsy.report(self.to).findings
        return [(one.title, f"{one.summary} {one.detail}") for one in found if one.severity.name != "INFO"]


class Gradsnitch(Tool):
    package = "gradsnitch"

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        import gradsnitch

        self.monitor = gradsnitch.watch(model, optimizer)

    def after_backward(self, step: int, loss: float, norm: float) -> None:
        self.monitor.log(step, loss)

    def said(self) -> list[Said]:
        with redirect_stdout(io.StringIO()):
            found = self.monitor.report()
        return [(f"{one.code} {one.name}", f"{one.evidence} {one.likely_cause}") for one in found]


class Trainspotter(Tool):
    package = "trainspotter"

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        self.path, self.rows, self.rate = folder / "log.csv", [], optimizer.param_groups[0]["lr"]

    def after_backward(self, step: int, loss: float, norm: float) -> None:
        self.rows.append((step, loss, norm, self.rate))

    def said(self) -> list[Said]:
        from trainspotter import load_run, run_all

        with self.path.open("w", newline="") as file:
            csv.writer(file).writerows([("step", "train/loss", "grad_norm", "lr"), *self.rows])
        return [(one.title, one.message) for one in run_all(load_run(self.path)) if one.severity != "info"]


class Traintools(Tool):
    package = "traintools"

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        from traintools import GradientHealthMonitor

        self.model, self.rate, self.found = model, optimizer.param_groups[0]["lr"], []
        self.monitor = GradientHealthMonitor(max_grad_norm=1.0)

    def after_backward(self, step: int, loss: float, norm: float) -> None:
        self.found += self.monitor.inspect(self.model, step=step, lr=self.rate).warnings

    def said(self) -> list[Said]:
        return [(re.sub(r"[-+0-9.e]+(?= |$)", "…", one), one) for one in self.found]


class TorchAudit(Tool):
    package = "torch-audit"

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        from torch_audit import autopatch

        self.auditor = autopatch(model, optimizer=optimizer, every_n_steps=10, reporters=[])

    def said(self) -> list[Said]:
        found = self.auditor.finish(report=False).findings
        self.auditor.unpatch()
        return [(one.rule_id, one.message) for one in found if one.severity.value != "INFO"]


class OneLine(Tool):
    """inspector as a user begins: one line, without a probe."""

    def begin(self, model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        self.path = folder / "run.inspect"
        self.watcher = inspector.watch(model, optimizer, self.path, **self.options())

    def options(self) -> dict[str, Any]:
        return {"every": 5}

    def said(self) -> list[Said]:
        self.watcher.close()
        found = inspector.diagnose(self.path).findings
        return [(f"{one.id} {one.rule}", one.message) for one in found if one.severity != "info"]


class WithProbe(OneLine):
    """With a sequence to look into, as the rules about time need."""

    def options(self) -> dict[str, Any]:
        probe = torch.randint(0, 8, (1, STEPS), generator=torch.Generator().manual_seed(9))
        return {"every": 5, "probe": probe, "probe_every": 200, "quantities": ("jacobian/lag",)}


TOOLS: dict[str, type[Tool]] = {
    "torchmortem": Torchmortem,
    "gradsnitch": Gradsnitch,
    "trainspotter": Trainspotter,
    "traintools": Traintools,
    "torch-audit": TorchAudit,
    "inspector, one line": OneLine,
    "inspector, with a probe": WithProbe,
}
GROUPS = (
    ("torchmortem",),
    ("torch-audit",),
    ("gradsnitch", "trainspotter", "traintools"),  # these only read
    ("inspector, one line",),
    ("inspector, with a probe",),
)
"""Those that may be in one loop together."""
