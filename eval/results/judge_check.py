"""What a judge makes of gold images, and on which items it can't be believed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...schema import GoldRow
from ...storage import write_whole
from ...tables import parse_as, read_json
from ..core import FAILURES, INVALID, Outcome
from ..suites.gold import SAID, GoldSuite
from .judge_card import GoldLabels

CHECK = "judge_check.json"
"""File of checked judges: in the folder of their run on gold images, and in runs that they judged
after it."""


@dataclass(frozen=True)
class JudgeCheck:
    """One judge on gold images of the items of a suite, e.g. pairs."""

    judge: str
    """Who judged, in a few words."""
    comparable: dict[str, str]
    """Identity and prompts, by which the judge is known in other runs."""
    checked: dict[str, str]
    """Row of the suite -> bank entry of its item, on which the judge has answered about all that
    could mislead it."""
    misled: dict[str, str]
    """The same of the items on which it was misled: what it says of them counts nowhere."""
    unchecked: dict[str, str]
    """The same of those that have gold images and are not checked, e.g. since it refused."""
    confusion: GoldLabels
    """What is shown -> what the judge says of it -> images."""
    parts: dict[str, GoldLabels] = field(default_factory=dict)
    """The same of each part of the suite, e.g. a domain."""

    @property
    def items(self) -> int:
        """How many items are checked."""
        return len(set(self.checked.values()))

    @property
    def excluded(self) -> list[str]:
        """The bank entries of the items on which the judge was misled, sorted."""
        return sorted(set(self.misled.values()))


def check_of(
    judge: str,
    comparable: Mapping[str, str],
    outcomes: Iterable[Outcome],
    suite: GoldSuite[Any],
    rows: Mapping[str, GoldRow],
) -> JudgeCheck:
    """Checks a judge by its outcomes on gold images.

    comparable: the judge's identity and prompts; rows: by id.
    """
    answered: dict[str, set[str]] = {}
    misled: set[str] = set()
    every: dict[str, str] = {}
    parts: dict[str, dict[str, Counter[str]]] = {}
    for outcome in outcomes:
        row, said, shown = rows[outcome.case.row], suite.seen(outcome), outcome.case.variant
        of_part = parts.setdefault(outcome.case.groups[suite.parts], {})
        of_part.setdefault(shown, Counter())[said] += 1
        for source in suite.sources(row):
            every[source] = row.provenance.entry
            if said not in FAILURES:
                answered.setdefault(source, set()).add(shown)
            if said == suite.misled.get(shown):
                misled.add(source)
    ordered = sorted(every.items(), key=lambda item: (item[1], item[0]))
    # Who was misled by one of the images was checked, whatever it said of the others.
    seen = {s for s, shown in answered.items() if shown >= set(suite.misled)} | misled
    return JudgeCheck(
        judge=judge,
        comparable=dict(comparable),
        checked={source: entry for source, entry in ordered if source in seen},
        misled={source: entry for source, entry in ordered if source in misled},
        unchecked={source: entry for source, entry in ordered if source not in seen},
        confusion=_counted(suite, parts.values()),
        parts={name: _counted(suite, [said]) for name, said in sorted(parts.items())},
    )


def _counted(suite: GoldSuite[Any], parts: Iterable[Mapping[str, Mapping[str, int]]]) -> GoldLabels:
    """What is shown -> label -> images of several parts together, in the order of the suite."""
    total = {shown: Counter[str]() for shown in suite.variants}
    for part in parts:
        for shown, said in part.items():
            total[shown].update(said)
    return {shown: dict(sorted(said.items())) for shown, said in total.items() if said}


def gold_counts(gold: Mapping[str, GoldLabels]) -> dict[str, dict[str, tuple[int, int]]]:
    """Part of a card's gold images -> what is shown -> images that the judge recognized, and
    judged."""
    return {
        part: {
            name: (said.get(SAID.get(name, INVALID), 0), sum(said.values()))
            for name, said in shown.items()
        }
        for part, shown in gold.items()
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
        raise DataError(
            f"{error}; make it with `counterprior judge-check`", code="no-such-file"
        ) from None
    if not isinstance(found, list):
        raise DataError(f"{path}: is not a list of checked judges", code="bad-format")
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
        f"(checked: {', '.join(one.judge for one in checks) or 'none'})",
        code="judge-unchecked",
    )


def exclude_misjudged(
    outcomes: Sequence[Outcome], check: JudgeCheck, suite: type[GoldSuite[Any]]
) -> tuple[list[Outcome], str]:
    """The outcomes of the items on which a judge was not misled, and a note of what is left out.

    suite: of the gold images.
    """
    kept = [outcome for outcome in outcomes if outcome.case.row not in check.misled]
    rows = {outcome.case.row for outcome in outcomes}
    names = sorted({entry for row, entry in check.misled.items() if row in rows})
    notes = []
    if names:
        listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        notes.append(
            f"{len(names):,} {suite.items} are left out, since {check.judge} {suite.misled_how}: "
            f"{listed}"
        )
    if unseen := len(rows - check.checked.keys()):
        notes.append(
            f"{check.judge} has no check on gold images for {unseen:,} of the {len(rows):,} rows, "
            f"which stay in"
        )
    return kept, "; ".join(notes)
