"""Tables of docs/papers.md for the site, from docs/papers.csv: what each paper's results are here.

`tools/docs_site.py` puts them in the place of ``<!-- tables of papers -->``.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "papers.csv"
PAPERS = {
    "PSE": "PSE: Why Settle for Mid (arXiv:2506.23418)",
    "ACON": "ACON (arXiv:2505.24211)",
    "CF": "CF-World (arXiv:2606.24548v1)",
    "OTS": "OTS-Bench: Order Is Not Layout (arXiv:2603.03714v1)",
    "UC": "SpatialBench-UC (arXiv:2601.13462)",
}
"""Prefix of a row's name -> its paper."""
STATES = {
    "as published": "work as published",
    "in part": "differ, or are missing, in part",
    "differs": "differ on purpose or can't be repeated",
    "not yet": "are missing",
}
"""State of a row -> what the page says of its rows."""
RECIPE = re.compile(r"counterprior study recipes (\S+)( --offline)? > \S+\.yaml")
MARKER = "<!-- tables of papers -->\n"


def read_rows(path: Path = TABLE) -> list[dict[str, str]]:
    """Rows of the table, with the fields row, paper, state, command and note."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def counts(rows: list[dict[str, str]]) -> str:
    """Phrase of how many rows there are in each state, as the head of the page has it."""
    states = Counter(row["state"] for row in rows)
    return "; ".join(f"{states[state]} {STATES[state]}" for state in STATES if states[state])


def with_tables(text: str) -> str:
    """Return a page with the tables of all papers in the place of the marker."""
    return text.replace(MARKER, "\n".join(_lines(read_rows())) + "\n") if MARKER in text else text


def _lines(rows: list[dict[str, str]]) -> Iterator[str]:
    for prefix, title in PAPERS.items():
        yield from ("", f"## {title}", "")
        yield from (
            "| row | in the paper | shown by | note |",
            "| --- | --- | --- | --- |",
        )
        first: dict[str, str] = {}  # cell of a command -> the first row with it
        for row in rows:
            if row["row"].partition("-")[0] == prefix:
                state = "" if row["state"] == "as published" else f"**{row['state']}:** "
                shown = _shown_by(row["command"])
                same = first.setdefault(shown, row["row"])
                if same != row["row"] and shown.startswith("`"):
                    shown = f"as {same}"
                cells = (row["row"], row["paper"], shown, state + row["note"])
                yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _shown_by(command: str) -> str:
    """Cell of a command; a recipe, which the head of the page explains, has only its name."""
    if recipe := RECIPE.fullmatch(command):
        return f"recipe `{recipe[1]}{recipe[2] or ''}`"
    return f"`{command}`" if command else ""
