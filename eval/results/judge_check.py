"""What a judge makes of gold images, and on which pairs it can't be believed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ...errors import DataError
from ...schema import GoldLayout, T2ICorrectnessGold
from ...storage import write_whole
from ...tables import parse_as, read_json
from ..core import FAILURES, INVALID, Outcome
from ..suites.gold import SAID
from .judge_card import GoldLabels

if TYPE_CHECKING:
    from .scoring import JudgedRun

CHECK = "judge_check.json"
"""File of checked judges: in the folder of their run on gold images, and in runs that they judged
after it."""


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
    confusion: GoldLabels
    """Layout -> label -> images."""
    domains: dict[str, GoldLabels] = field(default_factory=dict)
    """The same of each domain."""


def check_of(judged: JudgedRun, rows: Mapping[str, T2ICorrectnessGold]) -> JudgeCheck:
    """What a judge's run on gold images says of it; rows: by id."""
    misled: dict[str, str] = {}
    seen: dict[str, str] = {}
    every: dict[str, str] = {}
    domains: dict[str, dict[str, Counter[str]]] = {}
    for outcome in judged.outcomes:
        row, label = rows[outcome.case.row], outcome.label("arrangement")
        of_domain = domains.setdefault(row.domain, {})
        of_domain.setdefault(row.layout, Counter())[label] += 1
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
        confusion=_counted(domains.values()),
        domains={name: _counted([said]) for name, said in sorted(domains.items())},
    )


def _counted(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> GoldLabels:
    """Layout -> label -> images of several parts together, in the order of the layouts."""
    total = {layout: Counter[str]() for layout in get_args(GoldLayout)}
    for part in parts:
        for layout, said in part.items():
            total[layout].update(said)
    return {layout: dict(sorted(said.items())) for layout, said in total.items() if said}


def gold_counts(gold: Mapping[str, GoldLabels]) -> dict[str, dict[str, tuple[int, int]]]:
    """Part of a card's gold images -> layout -> images that the judge recognized, and judged."""
    return {
        part: {
            layout: (said.get(SAID.get(layout, INVALID), 0), sum(said.values()))
            for layout, said in layouts.items()
        }
        for part, layouts in gold.items()
    }


def write_checks(root: Path, checks: Sequence[JudgeCheck]) -> None:
    """Writes what became of every judge beside its verdicts."""
    text = json.dumps([asdict(check) for check in checks], indent=1, ensure_ascii=False)
    write_whole(root / CHECK, text + "\n")


def read_checks(root: Path) -> list[JudgeCheck]:
    """The checked judges of a run on gold images. Raises DataError for a folder without."""
    path = root / CHECK
    try:
        found = read_json(path)
    except DataError as error:
        raise DataError(f"{error}; make it with `counterprior judge-check`") from None
    if not isinstance(found, list):
        raise DataError(f"{path}: is not a list of checked judges")
    return [parse_as(JudgeCheck, one, f"{path}, judge {n}") for n, one in enumerate(found, 1)]


def find_check(root: Path, comparable: Mapping[str, str]) -> JudgeCheck | None:
    """The check of a judge with its prompts in a folder; None where there is none.

    Raises DataError for a file that can't be read.
    """
    if not (root / CHECK).exists():
        return None
    checks = read_checks(root)
    return next((check for check in checks if check.comparable == dict(comparable)), None)


def check_for(root: Path, comparable: Mapping[str, str]) -> JudgeCheck:
    """The check of a judge in a folder of `judge-check`.

    Raises DataError for a judge that was not checked with these prompts, and as `read_checks`.
    """
    checks = read_checks(root)
    if (check := find_check(root, comparable)) is not None:
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
    notes = []
    if names:
        listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        notes.append(
            f"{len(names):,} pairs are left out, since {check.judge} calls their swapped gold "
            f"image correct: {listed}"
        )
    if (open_ones := max(len(rows) - check.pairs, len(rows & check.unchecked.keys()))) > 0:
        notes.append(
            f"{check.judge} was never shown the gold images of at least {open_ones:,} of the "
            f"{len(rows):,} pairs, which stay in"
        )
    return kept, "; ".join(notes)
