"""A checkpoint without its model: what its names and shapes tell is rebuilt and run, all else is kept as tensors.

- `stacks.py` - recurrent layers by the names and shapes of torch's modules;
- `plan.py` - what is put before and behind them, as a guess that arguments change;
- `rebuilt_model.py` - the module of a plan, with all tensors under their own names;
- `open_weights.py` - from a file to a subject.
"""
