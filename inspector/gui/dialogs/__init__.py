"""Questions to the user: which model, may its code run, does the checkpoint fit, what should be edited.

In: records (reports, captures). Out: records (`Load`, `Edit`) or a confirmation.
"""
