"""The report: what the rules found in a capture or log, and on what grounds, as one HTML file that needs nothing else.

In: a diagnosis, what was diagnosed, and figures that somebody else draws (this package knows no window). Out: HTML.

    contents   what a report holds, section by section
    compose    that, made from a diagnosis and a view
    about      what was run, as rows of a table
    numbers    the numbers of a finding's evidence
    added      notes of persons and results of cures that a capture holds
    rows       pieces of HTML in which every text is escaped
    page       the whole page; `style`: its style sheet

Begin reading with `contents.py`.
"""

from inspector.diagnosis.report.compose import compose
from inspector.diagnosis.report.contents import Figure, Report, Support
from inspector.diagnosis.report.page import page

__all__ = ["Figure", "Report", "Support", "compose", "page"]
