"""A user's own recurrence, reconstructed from its operations: its state, its gates, and one step of it.

In: a forward pass of an unchanged model. Out: `Recurrence`s whose step can be run again from other states.
The probe (engine/probes/handwritten.py, `_search`) calls these passes in this order; begin reading there.

1. record/recorder: every call of a torch function → a list of calls: function, arguments, result, place in the code
   and the module that was called (`owners`)
2. record/op_table: the calls → columns: the inputs and outputs of each, by the number of each value (`values`); what an
   operator does is defined in `operator_traits`, for this pass and all that follow
3. record/buffers: the table → one in which states that lie in one preallocated tensor are values of their own;
   record/growing_tensors: and so are those in a tensor that grows
4. loops/detection: the table → loops: repeated code of one frame, cut into iterations with labelled operations
   (`bytecode`); a loop inside a loop over layers is a loop of each layer (`nesting`, `weights`)
5. loops/iteration_classes: a loop → which iterations ran the same operations, so that one of them is analysed for all
6. loops/carried_variables: a loop → its variables: what one iteration makes and a later one reads
7. loops/carried_state: the variables → their values before and after each iteration (`first_values`), how old the
   values are that are read (lags), and which variables reach which operation
8. loops/state_choice: the variables → groups that are one recurrent state each; running sums are not, nor are whole
   sequences (`sequences`)
9. program/inner_cells: a state → whether the loop is only torch's cells or fused modules, which have their own probes
10. assemble: a state → names (`source_names`), layout (`state_layout`), gates (`precomputed_gates`, `gates`), programs
    that lead from one state to the next (`step_groups`, `slicing`), a cell that runs them (`replayed`; `graph`, where
    they cannot be run), and the check against what was recorded
11. program/state_matrices: a state → matrices that multiply it, and the piecewise linear function that makes it
12. cells/gradients: a state → its gradients: requested before the backward pass, arranged by step after it

Later, on request: `program/parameter_use` (how each step uses the parameters) and
`cells/autonomous` (a step at fixed inputs, for fixed points).
"""
