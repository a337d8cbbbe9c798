"""The scripts of small trainings with one fault each, read as text: none of them is imported here."""

from __future__ import annotations

from inspector.workspace.samples import samples_folder

FOLDER = "illnesses"


def case_text(name: str) -> str | None:
    """The script whose file has this name ("contracting_weight"); None where there is none, or none is installed."""
    folder = samples_folder()
    path = None if folder is None or not name.isidentifier() else folder / FOLDER / f"{name}.py"
    if path is None or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    return text if "\nRULE = " in text else None  # the other files of the folder are no cases
