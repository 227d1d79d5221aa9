"""Pages of one file: HTML with plots and tables, without scripts or files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from markupsafe import Markup, escape

from ...printable import printable


def single_page(title: str, parts: Iterable[str]) -> str:
    """Returns a page in the style of reports; the parts are HTML already, the title is escaped."""
    style = resources.files(__package__).joinpath("templates", "style.css").read_text("utf-8")
    return printable(
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style><main>{''.join(parts)}</main></html>\n"
    )


def figure_page(figures: Mapping[str, Markup], title: str) -> str:
    """Returns a page of figures under their headings."""
    headed = (f"<h2>{escape(name)}</h2>\n{figure}\n" for name, figure in figures.items())
    return single_page(title, [f"<h1>{escape(title)}</h1>\n", *headed])


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Returns a table; text is escaped, whole numbers are aligned at the right."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in header)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, row))) for row in rows
    )
    return Markup('<div class="scroll"><table><tr>{}</tr>{}</table></div>').format(head, body)


def _cell(value: object) -> Markup:
    if isinstance(value, int):
        return Markup('<td class="n">{}</td>').format(f"{value:,}")
    return Markup("<td>{}</td>").format(value)
