"""Tables and figures of pages that stand on a published study are recomputed from it."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmark_files import BENCHMARKS, opened

from counterprior.eval.core import ALL
from counterprior.eval.studies import table as table_module
from counterprior.eval.studies.detections import TableSources, open_table
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import format_table
from counterprior.eval.studies.table import StudyTable, TableCells
from counterprior.eval.studies.table_layout import TableLayout

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"\$ counterprior study table (docs/studies/\S+\.zip)(?: --as (\S+))?(.*)")
MOST_BYTES = 2_700_000
"""Size of all published studies together."""


cells_of, scored = table_module._cells_of, dict[tuple[str, bool], TableCells]()


@functools.cache
def table_of(study: str, layout: str = "") -> StudyTable:
    """As `open_table`, but for the runs of a study, which are scored for its first table only."""

    def cells(study: Study, layout: TableLayout) -> TableCells:
        key = study.root.name, any(column.group != ALL for column in layout.columns)
        if key not in scored:
            scored[key] = cells_of(study, layout)
        return scored[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "_cells_of", cells)
        return open_table(layout, TableSources([str(ROOT / study)]))


LARGE = ("organism", "organism-switch", "organism-methods", "organism-psg")
"""Studies of many runs: lanes. A break of what scores them changes the tables of the others."""


def shown_tables() -> list[Any]:
    """`commands`, those of a large study as lanes."""
    lane, slow = pytest.mark.lane, pytest.mark.slow
    return [
        pytest.param(*command, marks=lane if Path(command[1]).stem in LARGE else slow)
        for command in commands()
    ]


def commands() -> list[tuple[Path, str, str, str]]:
    """Page, study, layout and further options of each command."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    return [(page, *found) for page in pages for found in COMMAND.findall(page.read_text("utf-8"))]


def tables(text: str) -> list[list[str]]:
    """Lines of each table of a text, without the rule below its head."""
    blocks = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [[head, *rows] for head, _, *rows in map(str.splitlines, blocks)]


def shown(line: str) -> list[str]:
    """Cells of a line without the raised numbers of notes."""
    plain = re.sub(r"( [⁰¹²³⁴⁵⁶⁷⁸⁹]+)+(?= \|)", "", line)
    return [cell.strip() for cell in plain.strip("|").split("|")]


def test_every_published_study_has_a_table_on_a_page() -> None:
    published = sorted((ROOT / "docs" / "studies").glob("*.zip"))
    assert published and sum(path.stat().st_size for path in published) <= MOST_BYTES
    assert {ROOT / study for _, study, _, _ in commands()} == {*published}


@pytest.mark.parametrize(("page", "study", "layout", "options"), shown_tables())
def test_what_a_page_shows_is_recomputed(page: Path, study: str, layout: str, options: str) -> None:
    table = table_of(study, layout)
    if drawn := re.search(r"--format svg > (\S+)", options):
        texts = [
            ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.text]
            for svg in (format_table(table, "svg"), (ROOT / drawn[1]).read_text("utf-8"))
        ]
        assert texts[0] == texts[1]
        return
    asked = f"study table {study} --as {layout}\n" if layout else f"study table {study}\n"
    after = page.read_text("utf-8").partition(asked)[2]
    until_next = re.split(r"```console|^#", after, flags=re.MULTILINE)[0]
    names, *recomputed = [shown(line) for line in tables(format_table(table, "md"))[0]]
    parts_shown = [part for part in tables(until_next) if shown(part[0])[0] == names[0]]
    assert parts_shown, page
    for head, *rows in parts_shown:
        columns = [names.index(name) for name in shown(head)]
        parts = [[row[column] for column in columns] for row in recomputed]
        assert rows and [row for row in map(shown, rows) if row not in parts] == [], page


@pytest.mark.slow
def test_what_the_loop_is_expected_to_do_is_recomputed() -> None:
    expected = opened(BENCHMARKS / "recaptioning.py").expected
    gains, loop = (
        table_of(f"docs/studies/{study}.zip", layout)
        for layout, study in (("organism-prediction", "organism-trained"), ("", "organism-loop"))
    )
    measured = {line.name: line.cells[0].score for line in gains.lines}
    seen = {line.name: line.cells[0].score for line in loop.lines}
    rows = []
    chains = (("prompts kept", 1.0, 1), ("half written afresh", 0.5, 1), ("prompts kept", 1.0, 2))
    for chain, kept, guidance in chains:
        gain = measured[f"guidance {guidance}"]
        start = seen[f"prompts kept, guidance {guidance}, generation 0"]
        assert gain and start
        shares = [(1 + start.value / 100) / 2] * 4
        for _ in range(3):
            by = (guidance, gain.value, *gain.interval)
            shares = [expected(s, kept, 0.5, g) for s, g in zip(shares, by, strict=True)]
            stated, value, low, high = (f"{200 * share - 100:.1f}" for share in shares)
        rows.append([chain, str(guidance), stated, f"{value} [{low}, {high}]"])
    page = (ROOT / "docs" / "organisms.md").read_text("utf-8")
    (table,) = (table for table in tables(page) if "expected from the guidance" in table[0])
    assert [shown(line) for line in table[1:]] == rows
