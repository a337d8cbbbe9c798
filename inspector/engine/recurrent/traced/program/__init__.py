"""Programs: the operations that lead from one state to the next, cut out so that they can be run again.

In: the operations of one iteration and the variables that it carries. Out: programs by group of steps, the names of the
gates inside them, and the weights that they use.

    slicing             the operations between two states, as a program
    instructions        such a program: calls in order, with references instead of tensors
    step_groups         steps that ran the same program
    state_layout        parts of the state and where each lies in the state vector
    gates, precomputed_gates, inner_cells   gates of the step, of values made ahead of the loop, of torch's own cells
    parameter_use       how each step's use of a parameter affects the new state
    state_matrices      matrices that multiply the state
    cell_functions      torch's cells as functions that torch.func can batch
"""
