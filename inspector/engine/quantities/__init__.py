"""The registry of quantities: one file each, registered with `QUANTITIES.register(key)` on a `Quantity`.

A quantity reads the trace of a run and writes channels. Most are a pure function of a block of steps under two
decorators of `trace/quantity.py`; the rest take a whole recurrence, rows of attention, or the whole trace. Files do not
import each other; what several share is in `analyses/`, `attention/` or `cells/`.

    values/      states, inputs, outputs, health (NaN and infinity), the training log
    gates/       gates, saturation, timescales, what opens a gate, memory runs, statistics of units
    jacobian/    norms, singular values and eigenvalues of step Jacobians, products by lag, direct paths
    gradient/    gradients by step, itemised and truncated BPTT, clipping, by layer and by parameter, influence
    dynamics/    Lyapunov exponents, fixed points, trajectory in principal components, spectra of the weights
    attention/   maps, entropy, distance, mass on the first key, largest weight

Begin reading with `jacobian/jacobian_spectral.py`.
"""
