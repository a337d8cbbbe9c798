"""Watching scripts that know nothing of inspector, as `inspector watch -- python train.py` starts them.

    startup/sitecustomize.py    runs when a Python below the command starts; notices torch's optimizers being made
    supervisor                  attaches a watcher where the first of them is used
    roots                       the models whose parameters an optimizer has
    claims                      which process writes which capture; what the command is told

Begin reading with `startup/sitecustomize.py`.
"""
