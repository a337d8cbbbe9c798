"""Hidden variables of any model: distributions that its code makes, samples it draws, divergences it takes.

1. `watched`: while a model runs, every call of `torch.distributions` is noted, whoever makes the object
2. `calls`: what was noted, by the line of the model's code that made it
3. `written`: samples that the code draws itself, z = μ + σ ε, from the recording of hand-written recurrences
4. `layout`: which axis of these tensors is the steps', which the sequences'
5. `variables`: all of it as hidden variables by step, for the sequence that is shown, or the reason why not
6. `declared`: models that say that they are a hidden Markov or a linear Gaussian one
"""
