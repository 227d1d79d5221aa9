"""A study's table as Markdown, LaTeX, HTML, CSV and JSON; the same table gives the same bytes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from ...errors import UsageError
from ...parsing import csv_text
from ...printable import markdown_text, printable
from ..core import Score
from ..report.plots import on_page
from ..report.single_page import single_page
from ..report.single_page import table as html_table
from ..results.changes import NUMBERS
from ..results.tables import exclusions_text
from ..stats.estimate import value_text
from .spec import unknown
from .table import StudyTable
from .table_lines import Heading, TableEntry

COLUMNS = (
    "line section column judge suites score value partial_value low high these_items_low "
    "these_items_high unit n effective_n left_out groups paper gap notes"
).split()
"""Columns of the CSV: one line per cell, without the effects of methods, which other forms have.
The number of an unfinished cell is a `partial_value`, not a `value`."""
FIGURE = "svg"
"""Form of the figure beside the table."""


def format_table(table: StudyTable, form: str) -> str:
    """Formats a table, or its figure, as text that ends with a line feed.

    Raises UsageError for an unknown form, and for the figure of a table without one.
    """
    if form == FIGURE:
        if not table.figure:
            raise UsageError(
                f"{table.title}: has no figure: choose from {', '.join(FORMS)}", code="unsupported"
            )
        return table.figure
    if form not in FORMS:
        raise UsageError(unknown("format", form, [*FORMS, FIGURE]), code="unknown-name")
    return printable(FORMS[form](table))


def cell_text(cell: TableEntry) -> str:
    """Number of a cell with its interval and groups; in parentheses if the cell is not done.

    Words for a missing number.
    """
    if cell.score is None:
        return cell.gap.partition(":")[0] if cell.gap else ""
    text = f"{value_text(cell.score.value, cell.score.unit)}{_ends(cell.score)}"
    if cell.gap:
        return f"({text}) in part"
    return f"{text} {cell.groups.replace(' ', '')}".rstrip()


def paper_text(value: float | None) -> str:
    """Number as printed, with two digits at least for a share.

    >>> paper_text(52.6), paper_text(0.4), paper_text(0.551), paper_text(None)
    ('52.6', '0.40', '0.551', '')
    """
    if value is None:
        return ""
    digits = len(f"{value:g}".partition(".")[2])
    return f"{value:.{max(digits, 2)}f}" if abs(value) <= 1 else f"{value:g}"


def _ends(score: Score) -> str:
    low, high = score.interval
    if math.isnan(low) or math.isnan(score.value):
        return ""
    return f" [{value_text(low, score.unit)}, {value_text(high, score.unit)}]"


def _markdown(table: StudyTable) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    width = len(table.columns)
    lines = [f"**{_plain(table.title)}**{'' if table.complete else ' (incomplete)'}", ""]
    lines.append(row([table.rows, *(_plain(column.name) for column in table.columns)]))
    lines.append(row(["---", *["---:"] * width]))
    for section, lines_of_section in groupby(table.lines, key=lambda line: line.section):
        if section:
            lines.append(row([f"*{_plain(section)}*", *[""] * width]))
        for line in lines_of_section:
            texts = [cell_text(cell) + _raised(cell.notes) for cell in line.cells]
            lines.append(row([_plain(line.name), *map(_plain, texts)]))
            printed = [paper_text(cell.paper) for cell in line.cells]
            if any(printed):
                lines.append(row(["*paper*", *(f"*{text}*" if text else "" for text in printed)]))
    if table.source:
        lines += ["", f"*paper*: as printed in {_plain(table.source)}."]
    if table.notes:
        lines += ["", *(f"{n}. {_plain(note)}" for n, note in enumerate(table.notes, 1))]
    lines += ["", *(f"- {_plain(remark)}" for remark in table.remarks)]
    for report in table.changes:
        lines += ["", f"**{_plain(report.title)}**", "", row(report.columns)]
        lines.append(row(["---:" if name in NUMBERS else "---" for name in report.columns]))
        lines += [row([_plain(text) for text in cells]) for cells in report.rows()]
        lines += [f"\n{_plain(legend)}" for legend in report.legends]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Escapes a text for Markdown."""
    return markdown_text(text)


def _raised(notes: Sequence[int]) -> str:
    """Numbers of notes as superscripts.

    >>> _raised((1, 12))
    ' ¹ ¹²'
    """
    digits = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "".join(f" {note}".translate(digits) for note in notes)


def _latex(table: StudyTable) -> str:
    width = len(table.columns)
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_tex(table.title)}{'' if table.complete else ' (incomplete)'}}}",
        f"\\begin{{tabular}}{{l{'r' * width}}}",
        "\\toprule",
    ]
    lines += _latex_head(table.columns)
    lines.append(" & ".join([_tex(table.rows), *(_tex(c.label) for c in table.columns)]) + " \\\\")
    lines.append("\\midrule")
    for section, lines_of_section in groupby(table.lines, key=lambda line: line.section):
        if section:
            lines.append(f"\\multicolumn{{{width + 1}}}{{l}}{{\\emph{{{_tex(section)}}}}} \\\\")
        for line in lines_of_section:
            texts = [_latex_cell(cell) for cell in line.cells]
            lines.append(" & ".join([_tex(line.name), *texts]) + " \\\\")
            printed = [paper_text(cell.paper) for cell in line.cells]
            if any(printed):
                words = [f"\\emph{{{text}}}" if text else "" for text in printed]
                lines.append(" & ".join(["\\emph{paper}", *words]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", "\\par\\raggedright\\footnotesize"]
    if table.source:
        lines.append(f"\\emph{{paper}}: as printed in {_tex(table.source)}.\\par")
    notes = [f"\\textsuperscript{{{n}}}~{_tex(note)}\\par" for n, note in enumerate(table.notes, 1)]
    lines += [*notes, *(f"{_tex(remark)}\\par" for remark in table.remarks), "\\end{table}"]
    for report in table.changes:
        form = "".join("r" if name in NUMBERS else "l" for name in report.columns)
        lines += ["\\begin{table}", "\\centering", f"\\caption{{{_tex(report.title)}}}"]
        lines += [f"\\begin{{tabular}}{{{form}}}", "\\toprule"]
        lines += [" & ".join(map(_tex, report.columns)) + " \\\\", "\\midrule"]
        lines += [" & ".join(map(_tex, cells)) + " \\\\" for cells in report.rows()]
        lines += ["\\bottomrule", "\\end{tabular}"]
        lines += [f"\\par {_tex(legend)}" for legend in report.legends]
        lines.append("\\end{table}")
    return "\n".join(lines) + "\n"


def _latex_head(columns: Sequence[Heading]) -> Iterator[str]:
    """A line of judges and one of heads, over the columns that share one."""
    for titles in ([c.judge for c in columns], [c.head for c in columns]):
        if not any(titles):
            continue
        heads, rules, place = [""], [], 2
        # A head belongs to the judge above it.
        named = zip(titles, (c.judge for c in columns), strict=True)
        for (title, _), group in groupby(named):
            span = len(list(group))
            heads.append(f"\\multicolumn{{{span}}}{{c}}{{{_tex(title)}}}")
            if title:
                rules.append(f"\\cmidrule(lr){{{place}-{place + span - 1}}}")
            place += span
        yield " & ".join(heads) + " \\\\"
        yield " ".join(rules)


def _latex_cell(cell: TableEntry) -> str:
    notes = ",".join(map(str, cell.notes))
    return _tex(cell_text(cell)) + (f"\\textsuperscript{{{notes}}}" if notes else "")


_TEX = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _tex(text: str) -> str:
    """Escapes a text for LaTeX.

    >>> _tex("95 % of A_B & C")
    '95 \\\\% of A\\\\_B \\\\& C'
    """
    plain = " ".join(printable(text).split())
    return re.sub(r"[\\~^<>|&%$#_{}]", lambda match: _TEX[match[0]], plain)


def _html(table: StudyTable) -> str:
    """A page of one file, with the figure."""
    title = f"{table.title}{'' if table.complete else ' (incomplete)'}"
    rows: list[list[str]] = []
    for line in table.lines:
        name = f"{line.section}: {line.name}" if line.section else line.name
        rows.append([name, *(cell_text(cell) + _raised(cell.notes) for cell in line.cells)])
        printed = [paper_text(cell.paper) for cell in line.cells]
        if any(printed):
            rows.append([Markup("<em>{}</em>").format(text) for text in ("paper", *printed)])
    header = (table.rows, *(column.name for column in table.columns))
    blocks = [Markup("<h1>{}</h1>").format(title), html_table(header, rows)]
    if table.figure:
        blocks.append(on_page(table.figure.strip()))
    if table.source:
        blocks.append(Markup("<p><em>paper</em>: as printed in {}.</p>").format(table.source))
    for tag, texts in (("ol", table.notes), ("ul", table.remarks)):
        items = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
        blocks.append(Markup(f"<{tag}>{items}</{tag}>") if texts else Markup(""))
    for report in table.changes:
        blocks.append(Markup("<h2>{}</h2>").format(report.title))
        blocks.append(html_table(report.columns, report.rows()))
        blocks += [Markup("<p>{}</p>").format(legend) for legend in report.legends]
    return single_page(title, blocks)


def _csv(table: StudyTable) -> str:
    lines: list[Sequence[object]] = [COLUMNS]
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            score = cell.score
            value = "" if score is None or math.isnan(score.value) else repr(score.value)
            lines.append(
                [
                    line.name,
                    line.section,
                    column.name,
                    column.judge,
                    " ".join(column.suites),
                    column.score,
                    "" if cell.gap else value,
                    value if cell.gap else "",
                    *(map(_end, (*score.interval, *score.these_items)) if score else [""] * 4),
                    score.unit if score else "",
                    score.n if score else "",
                    _end(score.effective) if score else "",
                    exclusions_text(score) if score else "",
                    cell.groups,
                    "" if cell.paper is None else repr(cell.paper),
                    cell.gap,
                    "; ".join(table.notes[note - 1] for note in cell.notes),
                ]
            )
    return csv_text(lines)


def _end(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _json(table: StudyTable) -> str:
    return json.dumps(table.to_json(), indent=2, ensure_ascii=False) + "\n"


FORMS: dict[str, Callable[[StudyTable], str]] = {
    "md": _markdown,
    "tex": _latex,
    "html": _html,
    "csv": _csv,
    "json": _json,
}
"""Name -> function that writes the form."""
