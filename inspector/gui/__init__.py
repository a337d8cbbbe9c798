"""The window: the only package with Qt, and never torch.

It shows captures, finished or growing, and asks a worker for new ones. `app.py` starts it; importing `app` imports
neither torch nor the plotting library, so that the window appears at once.

From the top down (each imports only what is below it):
    app                the start
    window             the main window, its docks, menus and bars
    dialogs, export    questions to the user; figures and numbers as files
    panels             one file for each panel; panels match channels by kind and axes, never by name
    panel              the base of every panel: figure, empty page, error page
    widgets            plot items independent of runs and files: heat maps, curves, strips
    state              the session with its worker, the cursor, the steps in view; without widgets
    runtime            the process: display, garbage collection, exception hooks

Begin reading with `state/session.py`, then `window/main_window.py`.
"""
