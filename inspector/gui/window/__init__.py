"""The main window and its parts: docks, menus, bars.

main_window   takes the changes of every tick and draws only what changed; each of the next three builds on the one
              below it: asking (requests of the user), showing (how a capture is shown), parts (the layout)
panels_on_demand   the panels, each made when it is first visible or asked for
docks, dock_title, side_docks, side_widths, log_pane   the arrangement of panels; the lists at the sides; the log
comparing, compare_bar, beside   another capture or frame beside what is shown, as differences or side by side
comparison_pane, parameter_table   all channels of both, distributions, parameters
menus, compute_menu, states_choice, model_opening   every action; what a run computes beyond the default
input_bar, frame_bar, sequence_rows, status_row, cursor_readout   the rows above, below and beside the panels
"""
