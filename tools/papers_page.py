"""Writes docs/papers.md from docs/papers.csv: what each thing in the five papers is here.

Run it after the table changed: `python tools/papers_page.py`. A test says if the page is stale.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "papers.csv"
PAGE = DOCS / "papers.md"
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
HEAD = """# The papers, line by line

This page lists {rows} results and methods of five papers, and the command that repeats each of
them: {states}. The notes say what differs.
[papers.csv](papers.csv) has every command in full.

Commands that draw images need a release (`counterprior build --out dist/counterprior`). `RUN` and
`STUDY` stand for your own folders.

A *recipe* is a study file that repeats a table or figure of a paper. With `--offline`, a recipe
draws simple scenes with the generator `render:` instead of running the paper's models, and uses
judges that need no weights. So it runs in seconds:

```console
$ counterprior study recipes pse-12 --offline > study.yaml
$ counterprior study run study.yaml --out studies/pse-12
$ counterprior study table studies/pse-12
```

The numbers then say nothing about the paper's models. If the renderer can't draw a thing, the
images of this thing fail, and `study run` ends with exit code 1.
"""


def read_rows(path: Path = TABLE) -> list[dict[str, str]]:
    """Rows of the table, with the fields row, paper, state, command and note."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page(rows: list[dict[str, str]]) -> str:
    """Text of the page."""
    return "\n".join(_lines(rows)) + "\n"


def _lines(rows: list[dict[str, str]]) -> Iterator[str]:
    counts = Counter(row["state"] for row in rows)
    present = [state for state in STATES if counts[state]]
    states = "; ".join(f"{counts[state]} {STATES[state]}" for state in present)
    yield HEAD.format(rows=len(rows), states=states).rstrip("\n")
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


if __name__ == "__main__":
    PAGE.write_text(page(read_rows()), encoding="utf-8")
