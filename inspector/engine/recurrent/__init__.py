"""Recurrences: from calls that a probe recorded to states, gates and inputs at every step, checked.

In: calls of fused modules, of cells in a loop, or recorded operations of a hand-written loop. Out: `trace.Recurrence`
records: inputs and states in processing order, a cell that can compute gates and Jacobians, and a check of the
recomputed steps against what the model produced; where it fails, nothing derived from it is shown.

    fused/         nn.RNN, nn.GRU, nn.LSTM: layers, directions, chunks
    cell_calls     nn.RNNCell, nn.GRUCell, nn.LSTMCell in a loop of the user's
    traced/        loops written by hand: recorded operations, loops, carried state, a program to be run again
    verification   the error that rounding alone may cause in a recomputed step

Begin reading with `fused/layers.py`.
"""
