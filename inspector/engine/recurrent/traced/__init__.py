"""A user's own recurrence, seen through the operations that it makes: what its state is, its gates, one step of it.

In comes a forward pass of a model that nobody changed; out go `Recurrence`s whose step can be run again from other
states. The probe (engine/probes/handwritten.py, `_search`) calls these passes in this order; begin reading there.

1. recording   every call of a torch function → a list of calls: function, arguments, result, place in the code
2. table       the calls → columns: who was given what and made what, by the number of each value (values); equal places
               in the code are one site. What an operator does stands in operator_traits, for this and all that follows
3. buffers     the table → one in which states that were kept in one preallocated tensor are values of their own
4. loops       the table → loops: frames that go round, cut into iterations with labelled operations (bytecode)
5. twins       a loop → which iterations did the same, so that one of them is looked at; where each value comes from
6. carried     a loop → its variables: what one iteration makes and a later one reads
7. slots       the variables → their values before and after each iteration (starts), how old a value may be that is
               read (lags), and which variables reach which operation
8. states      the slots → groups that are one recurrent state each; running sums are none
9. built_in    a state → whether the loop is only torch's cells or fused modules, which have probes of their own
10. assemble   a state → names (naming), parts, gates (ahead, built_in, gates), programs that lead from one state to the
               next (programs, program, parts), a cell that runs them (replay; graph, where they cannot be run), and the
               check of every step against what was recorded
11. weights    a state → matrices that multiply it, and the piecewise linear function that makes it
12. gradients  a state → its gradients: asked for before the backward pass, laid out after it

Later, when they are asked for: trained (what each step's use of the parameters does), held (a step at inputs held
still, for fixed points). `unrolled` is no pass: torch's own modules as loops, for edited runs.
"""
