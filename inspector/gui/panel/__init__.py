"""The base of every panel: a figure over a capture, a page for when there is nothing to show, a page for its own
errors.

In: a capture (`capture/view.py`), the shared cursor and the steps in view. Out: a drawing, exact numbers under the
cursor, numbers to be saved.

    base          Panel: choosing channels, drawing, readout
    registry      the registry of panels
    figure        the figure itself, and a guard around its painting
    line_panel    what panels of lines over steps share
    empty_page, availability   what is missing, why, and how to get it
    axis_choice   which of several step axes is shown
    run_toggle    which channels have data; which part of a difference of two runs can be shown
    compared      names of two runs in titles and files; `baseline`: one of several runs that are drawn together
    labelled      rows of a table by their names
    same_in_all   what is the same in every panel: its menu (plot_menu), view, colours, words (explained)

Begin reading with `base.py`, then `panels/jacobians.py`.
"""
