"""TorchScript run by Python: the code in the archive, which is written in Python's syntax, as modules with hooks.

    code        the archive's code: classes and functions, parsed and made Python's
    functions   what that code calls `torch` and `ops`
    modules     from a scripted module to one of these
    example     an input that the program can run on, found by trying

Begin reading with `modules.py`.
"""
