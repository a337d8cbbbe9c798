"""The devices on which a model may run: which there are, their random state and their memory.

A model runs on its own device or devices. What is recorded of a recurrence is copied into main memory once, when the
run has ended, and analysed there; recorded operations are run again where the model ran them.

    random_state     the generators of all devices of a model
    present          names of the devices of this machine
    memory           what is free on a device, and about how much a run will take

Begin reading with `random_state.py`.
"""
