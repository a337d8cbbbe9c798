"""Linear recurrences h_t = a_t ⊙ h_{t−1} + b_t that no loop over the steps computes: parallel scans, long convolutions.

They are recognised by their values. Where an operation mixes the steps (a running sum, a shift by 1, 2, 4 …, an inverse
Fourier transform, `associative_scan`), the tensors around it are tried as a, b and h; a recurrence of many steps and
units that holds to rounding is no coincidence, so the way in which it was written does not matter. In this order:

1. mixing: a recorded run → the stretches of its operations that mix steps, each with the number of steps
2. values: a stretch → the tensors in it that have an axis of so many steps
3. diagonal: these → a, b and h; convolution: → kernel, input and output, and the states behind a kernel Σ C aˡ B;
   decayed, chunked: → q, k, v and a of linear attention with decay; loops: a loop over the steps → the same
4. readout, factors: h → what reads it (y = Σ C h); b → what it is made of (B and x)
5. equivalent, mixed: these → the map from token to token that the whole stands for
6. step: a recurrence → the cell whose derivatives are closed forms

The probe of hand-written recurrences starts the search (`search`, before loops are looked for; `in_loops` for what it
found, and for loops over complex states); the probe of scans puts maps into the trace and says what was not recognised.
"""
