"""The main window and what stands in it: docks, menus, bars.

main_window     puts the parts together; its tick takes in what is new and draws only what changed
docks, dock_title, side_docks   the arrangement of panels; the lists at the sides
menus, run_options   every action; what a run computes beyond the default
input_bar, frame_bar, sequence_rows, status_row, cursor_readout   the rows above, below and beside the panels
"""
