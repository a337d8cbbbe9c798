"""One recurrent step: its equations, its gates, and its derivatives in closed form.

In: inputs (t, b, i), states (t, b, s) and weights. Out: gates of all steps at once, the state after each step (for the
check against what the module returned), and products with the step Jacobian J = ∂s_t/∂s_{t-1} and its transpose,
which are never built where they need not be.

    base                           the protocol of a cell and of a block of steps
    rnn, gru, lstm                 the cells of torch, as torch computes them (not as textbooks write them)
    function_cell                  any pure function as a step, through torch.func: exact and slower
    gated_algebra, spread_block    sums of row-scaled weight matrices, which all gated Jacobians are
    spectral, lyapunov             the largest singular value of many Jacobians; Lyapunov exponents by QR
    bptt_sweep                     the backward pass through all steps
    linear, gate_products          the matrix products, by the fastest kernel there is, and their rounding

Begin reading with `base.py`, then `rnn.py`.
"""
