"""Checks of a judge on gold images, and the items on which it can't be believed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...parsing import parse_as, read_json
from ...schema import GoldRow
from ...storage import write_whole
from ..core import FAILURES, INVALID, Outcome
from ..stats.clusters import cluster_interval
from ..suites.gold import TRUE_LABELS, GoldSuite
from ..suites.scoring import MANY
from .judge_card import GoldLabels
from .marks import CHECK_FAILED, PARTLY_CHECKED

CHECK = "judge_check.json"
"""File of checked judges: in the folder of their run on gold images, and in runs that they judged
after it."""

LEAST_INFORMED = 0.5
"""Informedness below which a judge fails its check, halfway between guessing and seeing."""
ENOUGH_ITEMS = 10
"""Items below which an interval always reaches guessing."""


@dataclass(frozen=True)
class JudgeCheck:
    """One judge on gold images of the items of a suite, e.g. pairs."""

    judge: str
    """Short name of the judge."""
    comparable: dict[str, str]
    """Identity and prompts, which identify the judge in other runs."""
    checked: dict[str, str]
    """Row of the suite -> bank entry of its item, on which the judge has answered about all that
    could mislead it."""
    misled: dict[str, str]
    """The same of the items on which it was misled: its verdicts on them are excluded."""
    unchecked: dict[str, str]
    """The same of items with gold images that are not checked, e.g. because it refused."""
    confusion: GoldLabels
    """Content -> label by the judge -> number of images."""
    parts: dict[str, GoldLabels] = field(default_factory=dict)
    """The same for each group of the suite, e.g. a domain."""
    informedness: tuple[float, float, float] | None = None
    """Share of both kinds of images that it recognizes, together, less 1 (Youden's J: 1 for a judge
    that sees, 0 for one that guesses or always says the same), and the ends of its 95 % interval
    over items. None in checks of earlier versions, and where a kind has no answers."""
    by_item: dict[str, GoldLabels] = field(default_factory=dict)
    """The confusion of each item, by bank entry; empty in checks of earlier versions."""

    @property
    def failed(self) -> bool:
        """Whether the judge as a whole can't be believed.

        It is nearer to guessing than to seeing; or, from `ENOUGH_ITEMS` on, not shown to be better
        than guessing.
        """
        if self.informedness is None:
            return False
        value, low, _ = self.informedness
        return value < LEAST_INFORMED or (self.items >= ENOUGH_ITEMS and low <= 0)

    @property
    def items(self) -> int:
        """Number of items that are checked."""
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
    entries: dict[str, str] = {}
    by_group: dict[str, dict[str, Counter[str]]] = {}
    by_item: dict[str, dict[str, Counter[str]]] = {}
    recognized: list[tuple[float, float]] = []
    items: list[str] = []
    kinds = sorted(suite.misled)
    for outcome in outcomes:
        row, label, content = rows[outcome.case.row], suite.reading(outcome), outcome.case.variant
        of_group = by_group.setdefault(outcome.case.groups[suite.breakdown], {})
        of_group.setdefault(content, Counter())[label] += 1
        of_item = by_item.setdefault(row.provenance.entry, {})
        of_item.setdefault(content, Counter())[label] += 1
        if content in suite.misled and label not in FAILURES:
            right = float(label == TRUE_LABELS[content])
            recognized.append((right, math.nan) if content == kinds[0] else (math.nan, right))
            items.append(row.provenance.entry)
        for source in suite.sources(row):
            entries[source] = row.provenance.entry
            if label not in FAILURES:
                answered.setdefault(source, set()).add(content)
            if label == suite.misled.get(content):
                misled.add(source)
    ordered = sorted(entries.items(), key=lambda item: (item[1], item[0]))
    # A judge that was misled by one image is checked, whatever it said of the others.
    checked = {s for s, content in answered.items() if content >= set(suite.misled)} | misled
    return JudgeCheck(
        judge=judge,
        comparable=dict(comparable),
        checked={source: entry for source, entry in ordered if source in checked},
        misled={source: entry for source, entry in ordered if source in misled},
        unchecked={source: entry for source, entry in ordered if source not in checked},
        confusion=_counted(suite, by_group.values()),
        parts={name: _counted(suite, [label]) for name, label in sorted(by_group.items())},
        informedness=_informedness(recognized, items),
        by_item={entry: _counted(suite, [label]) for entry, label in sorted(by_item.items())},
    )


def _informedness(
    recognized: Sequence[tuple[float, float]], items: Sequence[str]
) -> tuple[float, float, float] | None:
    """Youden's J with its interval; a row for each image, NaN in the column of the other kind."""
    if not recognized:
        return None
    (estimate,) = cluster_interval(
        recognized, items, (0, 1), lambda means: means.sum(axis=-1, keepdims=True) - 1
    )
    if math.isnan(estimate.value):
        return None
    return estimate.value, *estimate.interval


def _counted(
    suite: GoldSuite[Any], groups: Iterable[Mapping[str, Mapping[str, int]]]
) -> GoldLabels:
    """Content -> label -> images of several groups together, in the order of the suite."""
    total = {content: Counter[str]() for content in suite.variants}
    for group in groups:
        for content, counts in group.items():
            total[content].update(counts)
    return {content: dict(sorted(counts.items())) for content, counts in total.items() if counts}


def gold_counts(gold: Mapping[str, GoldLabels]) -> dict[str, dict[str, tuple[int, int]]]:
    """Group of a card's gold images -> content -> images that the judge recognized, and judged."""
    return {
        group: {
            content: (counts.get(TRUE_LABELS.get(content, INVALID), 0), sum(counts.values()))
            for content, counts in contents.items()
        }
        for group, contents in gold.items()
    }


def write_checks(root: Path, checks: Sequence[JudgeCheck]) -> None:
    """Writes the checks of all judges of a run on gold images into its folder."""
    text = json.dumps([asdict(check) for check in checks], indent=1, ensure_ascii=False)
    write_whole(root / CHECK, text + "\n")


def read_checks(root: Path) -> list[JudgeCheck]:
    """The checked judges of a run on gold images. Raises DataError if missing."""
    path = root / CHECK
    try:
        records = read_json(path)
    except DataError as error:
        raise DataError(
            f"{error}; create it with `counterprior judge-check`", code="no-such-file"
        ) from None
    if not isinstance(records, list):
        raise DataError(f"{path}: is not a list of checked judges", code="bad-format")
    return [
        parse_as(JudgeCheck, record, f"{path}, judge {n}") for n, record in enumerate(records, 1)
    ]


def find_check(root: Path, comparable: Mapping[str, str]) -> JudgeCheck | None:
    """The check of a judge with its prompts in a folder; None if missing.

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
        f"(checked: {', '.join(checked.judge for checked in checks) or 'none'})",
        code="judge-unchecked",
    )


def check_marks(outcomes: Sequence[Outcome], check: JudgeCheck) -> tuple[str, ...]:
    """Marks of the scores of outcomes under a checked judge."""
    if check.failed:
        return (CHECK_FAILED,)
    rows = {outcome.case.row for outcome in outcomes}
    return (PARTLY_CHECKED,) if len(rows - check.checked.keys()) > MANY * len(rows) else ()


def exclude_misjudged(
    outcomes: Sequence[Outcome], check: JudgeCheck, suite: type[GoldSuite[Any]]
) -> tuple[list[Outcome], str]:
    """The outcomes of the items on which a judge was not misled, and a note of what is left out.

    suite: of the gold images.
    """
    believed = [outcome for outcome in outcomes if outcome.case.row not in check.misled]
    if check.failed:
        value, low, high = check.informedness or (math.nan, math.nan, math.nan)
        return [], (
            f"{check.judge} fails its check on gold images: informedness {value:.2f} "
            f"({low:.2f} to {high:.2f}), where 1 is a judge that sees and 0 one that guesses, and "
            f"{LEAST_INFORMED} is asked. None of its {len(outcomes):,} verdicts is scored"
        )
    rows = {outcome.case.row for outcome in outcomes}
    entries = sorted({entry for row, entry in check.misled.items() if row in rows})
    notes = []
    if entries:
        listed = ", ".join(entries[:3]) + (", ..." if len(entries) > 3 else "")
        notes.append(
            f"{len(entries):,} {suite.items} are excluded, since {check.judge} {suite.misled_how}: "
            f"{listed}"
        )
    if unchecked := len(rows - check.checked.keys()):
        unanswered = len(rows & check.unchecked.keys())
        reasons = {
            "it has not answered about those of": unanswered,
            "the check has none of": unchecked - unanswered,
        }
        given = ", ".join(f"{why} {n:,}" for why, n in reasons.items() if n)
        notes.append(
            f"{check.judge} has no check on gold images for {unchecked:,} of the {len(rows):,} "
            f"rows, which stay in: {given}"
        )
    return believed, "; ".join(notes)
