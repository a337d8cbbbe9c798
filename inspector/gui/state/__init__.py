"""The state of the window without widgets: the session, the cursor, the steps in view, the settings.

session      the user's requests; built on work (the present activity) and answers (handling of the worker's records)
connection   the worker, opening the model that is open or being opened, shown the capture and the run that made it
compared_with   what the capture that is shown is compared with; runs_opening: several runs, to be drawn together
cursor       step, place, unit, head: moved by any panel, followed by all
step_axes    which step axes a capture has, their lengths and their names
step_range   the steps in view, of every axis
player       moves the cursor by itself
settings     what is remembered between starts
"""
