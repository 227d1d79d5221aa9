"""Writes the numbers of docs/findings.md and its figures from the labels of a release.

    python tools/findings_page.py dist/counterprior

A detector's numbers are of the detections in the bank, `DETECTIONS`.

A table whose columns are named for scores, `first_left` or n, p or q of it, gets these numbers
anew, for each generator and over all images; a table with a single line, over all images alone. The
text between the tables is written by hand; a test looks its numbers up in the tables.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.eval.core import ALL
from counterprior.eval.stats.estimate import p_text, value_text
from counterprior.eval.studies.findings import Findings, find

DETECTIONS = DEFAULT_BANK / "real" / "nanodet.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
COLUMN = re.compile(r"(?:(n|p|q) of )?`(\w+)`")


def renewed(page: str, findings: Findings) -> str:
    """The page with the numbers of its tables from findings."""
    groups = {s.group.partition("=")[2] or ALL: s.group for s in findings.scores}
    ordered = [*sorted(groups.keys() - {ALL}), ALL]
    scores = {(score.group, score.name): score for score in findings.scores}

    def table(old: re.Match[str]) -> str:
        head, rule, *before = old[0].splitlines()
        columns = [COLUMN.fullmatch(cell.strip()) for cell in head.strip("|").split("|")]
        if not any(columns):
            return old[0]
        lines = [head, rule]
        for name in ordered if len(before) > 1 else [ALL]:
            cells = [name if name == ALL else f"`{name}`"]
            for column in filter(None, columns):
                score = scores.get((groups[name], column[2]))
                if score is None:  # not corrected over all images, or not published
                    cells.append("-")
                    continue
                known = not math.isnan(score.interval.low)
                texts = {
                    None: score.text(score.unit) if known else value_text(score.value, score.unit),
                    "n": f"{score.n:,}",
                    "p": p_text(score.p_value),
                    "q": p_text(score.q_value),
                }
                cells.append(texts[column[1]])
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    return TABLE.sub(table, page)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    findings = find(sys.argv[1], detections=DETECTIONS)
    PAGE.write_text(renewed(PAGE.read_text(), findings))
    findings.write(PAGE.parent)


if __name__ == "__main__":
    main()
