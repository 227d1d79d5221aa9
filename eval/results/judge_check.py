"""What a judge makes of gold images, and on which pairs it can't be believed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError
from ...schema import T2ICorrectnessGold
from ...storage import write_whole
from ...tables import parse_as
from ..core import FAILURES, Outcome

if TYPE_CHECKING:
    from .scoring import JudgedRun

CHECK = "judge_check.json"
"""File of a checked judge in the folder of its run on gold images."""


@dataclass(frozen=True)
class JudgeCheck:
    """One judge on gold images."""

    judge: str
    """Who judged, in a few words."""
    comparable: dict[str, str]
    """Identity and prompts, by which the judge is known in other runs."""
    pairs: int
    """Pairs of which it judged a swapped image."""
    misled: dict[str, str]
    """Row of the pair -> its bank entry, where the judge calls a swapped image correct: what it
    says of this pair counts nowhere."""
    unchecked: dict[str, str]
    """The same where it judged no swapped image, e.g. since it refused."""
    confusion: dict[str, dict[str, int]]
    """Layout -> label -> images."""


def check_of(judged: JudgedRun, rows: Mapping[str, T2ICorrectnessGold]) -> JudgeCheck:
    """What a judge's run on gold images says of it; rows: by id."""
    misled: dict[str, str] = {}
    seen: dict[str, str] = {}
    every: dict[str, str] = {}
    confusion: dict[str, Counter[str]] = {}
    for outcome in judged.outcomes:
        row, label = rows[outcome.case.row], outcome.label("arrangement")
        confusion.setdefault(row.layout, Counter())[label] += 1
        every[row.source_id] = row.provenance.entry
        if row.layout == "swapped" and label not in FAILURES:
            seen[row.source_id] = row.provenance.entry
            if label == "correct":
                misled[row.source_id] = row.provenance.entry
    return JudgeCheck(
        judge=judged.result.judge,
        comparable=dict(judged.result.card.comparable),
        pairs=len(seen),
        misled=dict(sorted(misled.items(), key=lambda item: item[1])),
        unchecked={row: entry for row, entry in sorted(every.items()) if row not in seen},
        confusion={layout: dict(sorted(said.items())) for layout, said in confusion.items()},
    )


def write_checks(root: Path, checks: Sequence[JudgeCheck]) -> None:
    """Writes what became of every judge beside its verdicts."""
    text = json.dumps([asdict(check) for check in checks], indent=1, ensure_ascii=False)
    write_whole(root / CHECK, text + "\n")


def read_checks(root: Path) -> list[JudgeCheck]:
    """The checked judges of a run on gold images. Raises DataError for a folder without."""
    path = root / CHECK
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}; make it with `counterprior judge-check`") from None
    if not isinstance(found, list):
        raise DataError(f"{path}: is no list of checked judges")
    return [parse_as(JudgeCheck, one, f"{path}, judge {n}") for n, one in enumerate(found, 1)]


def check_for(checks: Sequence[JudgeCheck], comparable: Mapping[str, str]) -> JudgeCheck:
    """The check of a judge. Raises DataError for one that was not checked with these prompts."""
    for check in checks:
        if check.comparable == dict(comparable):
            return check
    raise DataError(
        f"the judge was not checked with these prompts: run `counterprior judge-check` with it "
        f"(checked: {', '.join(one.judge for one in checks) or 'none'})"
    )


def believed(outcomes: Sequence[Outcome], check: JudgeCheck) -> tuple[list[Outcome], str]:
    """The outcomes of the pairs on which a judge was not misled, and a note of what is left out."""
    kept = [outcome for outcome in outcomes if outcome.case.row not in check.misled]
    rows = {outcome.case.row for outcome in outcomes}
    names = [entry for row, entry in check.misled.items() if row in rows]
    if not names:
        return kept, ""
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return kept, (
        f"{len(names):,} pairs are left out, since the judge calls their swapped gold image "
        f"correct: {listed}"
    )
