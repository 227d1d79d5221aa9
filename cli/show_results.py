"""Prints runs, verdicts and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from .console import console, print_note, table

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.engine.run import JudgeFolder, Run
    from ..eval.results.judge_card import Agreement, JudgeCard
    from ..eval.results.scoring import Result
    from ..eval.stats.intervals import Interval
    from ..eval.studies.selftest import Check
    from ..eval.suites.scores import Score


def print_images(run: Run) -> None:
    """Prints how many images of a run were made, what became of the others, and the cost."""
    made = Counter(image.status for image in run.images().values())
    others = ", ".join(f"{n:,} {status}" for status, n in sorted(made.items()) if status != "made")
    usd = sum(Decimal(attempt.usd) for attempt in run.attempts() if attempt.usd)
    parts = [f"{made['made']:,} images", others, f"{usd:.2f} USD" if usd else ""]
    print_note(f"{run.root}: {'; '.join(filter(None, parts))}")


def print_verdicts(folder: JudgeFolder) -> None:
    """Prints how many verdicts of a judge there are, by label."""
    labels = Counter(record["label"] for record in folder.verdicts())
    counts = ", ".join(f"{n:,} {label}" for label, n in sorted(labels.items()))
    print_note(f"{folder.root}: {counts or 'no verdicts'}")


def print_results(results: Sequence[Result], groups: bool) -> None:
    """Prints a table of scores for each run and judge, and the judge's card."""
    output = console(width=120)
    for result in results:
        output.print(_scores(result, groups))
        output.print(_judge(result.card))
        for question, agreement in result.card.agreement.items():
            output.print(_confusion(question, agreement))
    for folder, alpha in {result.folder: result.alpha for result in results}.items():
        for question, value in alpha.items():
            print(f"{folder}, {question}: Krippendorff's alpha of all who answered {value:.3f}")


def print_checks(checks: Sequence[Check]) -> None:
    """Prints a table of the self-test: truth, what the judge says, and the corrected value."""
    numbers = ("truth", "as judged", "corrected", "95 %")
    title = "known truth, as judged, and corrected by labels of a part (percent)"
    titles = ("generator", "judge", "score", *numbers, "holds")
    shown = table(*titles, numbers=numbers, title=title)
    for check in checks:
        values = (check.truth, check.raw.value, check.corrected.value)
        shown.add_row(
            check.trial,
            check.judge,
            check.score,
            *(_number(value, "%") for value in values),
            _interval(check.corrected.interval, "%"),
            "yes" if check.holds else "NO",
        )
    output = console(width=140)
    output.print(shown)
    held = sum(check.holds for check in checks)
    output.print(f"{held} of {len(checks)} corrected intervals hold the truth")


def _scores(result: Result, groups: bool) -> Table:
    numbers = ("value", "95 %", "null", "n", "left out")
    title = f"{result.run.suite}: {_who(result.run.generator)}, by {result.judge}"
    shown = table("score", "group", *numbers, numbers=numbers, title=title)
    for score in result.scores:
        if groups or "=" not in score.group:
            shown.add_row(*_cells(score))
    return shown


def _cells(score: Score) -> tuple[str, ...]:
    left_out = ", ".join(f"{n} {label}" for label, n in score.excluded.items() if n)
    if score.bounds.low == score.bounds.low:
        left_out += f"; with them {_interval(score.bounds, score.unit)}"
    return (
        score.name,
        score.group,
        _number(score.value, score.unit),
        _interval(score.interval, score.unit),
        _number(score.null, score.unit, undefined=""),
        f"{score.n:,}",
        left_out,
    )


def _judge(card: JudgeCard) -> str:
    parts = [
        f"{card.asked:,} questions",
        f"{_share(card.parse_rate)} parsed",
        f"first-named {_share(card.first_named)}",
    ]
    parts += [f"{n:,} {label}" for label, n in card.failures.items()]
    for probe, found in card.probes.items():
        parts.append(f"{probe}: same answer {_share(found.consistency)} of {found.n:,}")
    return f"judge: {'; '.join(parts)}"


def _confusion(question: str, found: Agreement) -> Table:
    """People's labels against the judge's, with Cohen's kappa."""
    kappa = f"kappa {_number(found.kappa, '1')} ({_ends(found.low, found.high, '1')})"
    title = f"{question}: people (rows) and judge, n = {found.n:,}, {kappa}"
    shown = table("", *found.labels, numbers=found.labels, title=title)
    for label, row in zip(found.labels, found.matrix, strict=True):
        shown.add_row(label, *(f"{count:,}" for count in row))
    return shown


def _who(identity: Mapping[str, str]) -> str:
    others = [f"{name}={value}" for name, value in identity.items() if name != "kind"]
    return " ".join([identity["kind"], *others])


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.1%}"


def _number(value: float, unit: str, undefined: str = "undefined") -> str:
    if value != value:
        return undefined
    return f"{value:.1f}" if unit == "%" else f"{value:.3f}"


def _interval(interval: Interval, unit: str) -> str:
    return _ends(interval.low, interval.high, unit)


def _ends(low: float, high: float, unit: str) -> str:
    return "-" if low != low else f"{_number(low, unit)} to {_number(high, unit)}"
