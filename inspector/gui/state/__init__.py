"""What the window holds that is not a widget: the session, the cursor, the steps in view, what is remembered.

session      what a user asks for; it builds on work (what goes on now) and answers (what follows from the worker's)
connection   the worker, opening the model that is open or being opened, shown the capture and the run that made it
cursor       step, place, unit, head: moved by any panel, followed by all
step_axes    which step axes a capture has, how long they are and what they are called
step_range   the steps in view, of every axis
player       moves the cursor by itself
settings     what is remembered between starts
"""
