"""The command line: one file for each command.

In: arguments of a command line. Out: text in the terminal, files, and an exit code: 0 done, 1 the run failed or what is
to be written or diagnosed is damaged, 2 bad arguments or unreadable input (a one-line message on stderr).

    command    the group of commands, and `main`, which turns every failure into a one-line message and an exit code
    fault      a message with its exit code, and opening a capture
    reporting  a run in a worker process, with progress on a terminal
    columns    widths of lists
    view_options   options that say what is looked at
    evidence, findings_data, report    where a finding shows; findings as data and as a report
    sequence_options   options that give a sequence
    run, sweep, watch, listen, listing, compare, export, diagnose, reproduce, trying, pack, weights, catalogue,
    demo, samples    the commands

Begin reading with `command.py`.
"""

from inspector.cli.command import cli, main

__all__ = ["cli", "main"]
