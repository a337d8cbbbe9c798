"""From Python, a notebook or a script on a cluster: run, read numbers, and save, without a window.

python docs/examples/in_python.py
"""

import numpy as np
import torch
from torch import nn

import inspector


def main():
    """Up to which lag does a gradient survive in an untrained GRU?"""
    torch.manual_seed(0)
    model = nn.GRU(8, 32, batch_first=True)
    with inspector.run(model, torch.randn(60, 8), out="gru.inspect", overwrite=True) as capture:
        for refusal in capture.refusals:
            print(f"not captured: {refusal.channel}: {refusal.reason}")
        norms = capture.array("gru.l0:jacobian/spectral_norm")  # (60,): of every step Jacobian
        update = capture.array("gru.l0:gate/update")  # (60, 32)
        print(f"step Jacobians: {np.nanmean(norms):.2f} on average, {np.nanmax(norms):.2f} at most")
        print(f"the update gate keeps the state with a factor of {update.mean():.2f} on average")
    return norms, update


if __name__ == "__main__":
    main()
