"""Loops: where the user's code repeats itself, and what it carries from one iteration to the next.

In: the table of recorded operations. Out: iterations, and for each variable that is carried its value at every step.

    bytecode            where loops are in the user's function
    detection           iterations, from the order of the operations and the bytecode
    nesting             loops inside loops: layers, and runs of one loop
    weights             which weights an operation uses
    carried_state       the variables that are carried, which belong together, and at which lag
    first_values, early_values   initial values, one for every variable and age
    sequences           whole sequences, which are no state
    iteration_classes   iterations that ran the same operations, so that one of them is analysed for all
"""
