"""Computations that several quantities share and that are longer than a formula.

In: a `Recurrence` or the whole `Trace` of a run. Out: tensors that quantities write as channels.

    itemised_bptt, itemised_tiles   every contribution (loss step, source step) to every gradient, in one sweep
    path_products, carried_products products of step Jacobians by lag, along the direct path and along all, in one walk
    lag_budgets                     how many starts, lags and directions these may have
    directions                      the same for a few directions, where the state is too wide for full matrix products
    fixed_point_search              states that a step maps to themselves, at inputs from `constant_inputs`
    state_space                     principal components of the states
    spaced_steps                    every n-th step, where all would cost too much; n for spectra
    memory_gate                     which gate carries the state over, and at which value
    recurrent_weights               the square matrices through which a layer feeds its state back
    rerun                           the model called again on changed copies of the sequence
    aligned_inputs                  the model's inputs at the steps of one recurrence

Begin reading with `itemised_bptt.py`; its docstring has the derivation.
"""
