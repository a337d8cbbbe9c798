"""`inspector docs`: the pages of the documentation that were installed, and one of them as text."""

from __future__ import annotations

import click

from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.transport.terminal import say
from inspector.workspace.documentation import docs_folder, page_of, pages


@click.command()
@click.argument("page", required=False)
@click.option("--where", is_flag=True, help="The path of the page, or of the folder, instead.")
def docs(page: str | None, where: bool) -> None:
    """List the pages of the documentation, or print PAGE (watching, adding/rule, README) as Markdown."""
    folder, known = docs_folder(), pages()
    if folder is None or not known:
        raise Fault("The pages of the documentation were not installed with this package.")
    names = [one.short for one in known]
    if page is None:
        if where:
            say(str(folder))
            return
        width = width_of(names)
        for name, one in zip(names, known, strict=True):
            say(f"{name:<{width}}  {one.title}")
        return
    found = page_of(page)
    if found is None:
        raise Fault(f"There is no page {page}; there are {', '.join(names)}.", 2)
    if where:
        say(str(found.path))
        return
    try:
        text = found.text()
    except OSError as problem:
        raise Fault(f"{found.path} cannot be read: {problem.strerror or problem}.") from None
    click.echo(text, nl=False)
