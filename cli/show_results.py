"""Prints runs, verdicts and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from .console import console, print_note, table

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.engine.steps import Done
    from ..eval.results.judge_card import HumanAgreement, JudgeCard
    from ..eval.results.scoring import Result
    from ..eval.selftest.run import Check
    from ..eval.studies.judge_check import CheckedJudges


def print_done(done: Done) -> None:
    """Prints what became of a run's images, what each judge said now, and the cost."""
    run = done.run
    made = Counter(image.status for image in run.images().values())
    others = [f"{n:,} {status}" for status, n in sorted(made.items()) if status != "made"]
    usd = sum(Decimal(attempt.usd) for attempt in run.results.every() if attempt.usd)
    cost = [f"{usd:.2f} USD"] if usd else []
    parts = [f"{made['made']:,} images", *others, *cost]
    print_note(f"{run.root}: {'; '.join(parts)}")
    failed = next((i for i in run.images().values() if i.status in ("error", "refused")), None)
    if failed is not None:
        print_note(f"the first {failed.status}, of {failed.case}: {failed.message}")
    for note in run.notes():
        print_note(f"note: {note}")
    for log, tally in done.judged:
        counts = ", ".join(f"{n:,} {label}" for label, n in sorted(tally.labels.items()))
        known = f"; {tally.known:,} verdicts were there" if tally.known else ""
        print_note(f"{log.name}: {counts or 'nothing new'}{known}")
    if done.spending.calls or done.spending.errors:
        print_note(f"spent {done.spending}")


def print_results(results: Sequence[Result], groups: bool) -> None:
    """Prints a table of scores for each run and judge, and the judge's card."""
    output = console(width=120)
    for result in results:
        output.print(_scores(result, groups))
        for line in _folded(result) if groups else ():
            output.print(line, style="dim", highlight=False)
        output.print(_judge(result.card))
        for question, agreement in result.card.agreement.items():
            output.print(_confusion(question, agreement))
        for line in _explained(result):
            output.print(line, style="dim", highlight=False)
    for folder, alpha in {result.folder: result.alpha for result in results}.items():
        for question, value in alpha.items():
            print(f"{folder}, {question}: Krippendorff's alpha of all who answered {value:.3f}")


def print_judge_checks(found: CheckedJudges) -> None:
    """Prints how often each judge recognizes gold images, by part, and where it was misled."""
    from ..eval.stats.estimate import interval_text, value_text

    output, gold = console(width=120), found.suite
    first, *others = gold.columns
    for check, judged in zip(found.checks, found.judged, strict=True):
        by_group = {(s.group, s.name): s for s in judged.result.scores}
        parts = [part for part, name in by_group if name == first and part != "all"]
        numbers = (gold.columns[first], "95 %", "n", *(gold.columns[name] for name in others))
        title = f"{check.judge} on gold images (percent)"
        shown = table(gold.breakdown, *numbers, numbers=numbers, title=title)
        for part in ("all", *(p for p in parts if p.partition("=")[0] in gold.table_groups)):
            told = by_group[part, first]
            shown.add_row(
                part.removeprefix(f"{gold.breakdown}="),
                value_text(told.value, told.unit),
                interval_text(told.interval, told.unit),
                f"{told.n:,}",
                *(
                    value_text(by_group[part, name].value, by_group[part, name].unit)
                    for name in others
                ),
            )
        output.print(shown)
        for name in gold.meanings:
            told = by_group["all", name]
            value = told.text(told.unit)
            output.print(f"{name}: {value}, n = {told.n:,}", style="dim", highlight=False)
        for name, said in check.confusion.items():
            counts = ", ".join(f"{n:,} {label}" for label, n in said.items())
            output.print(f"{name}: {counts}", style="dim", highlight=False)
        verb = f"{len(check.excluded):,} of {check.items:,} {gold.items} are excluded"
        output.print(f"{verb} for this judge, since it {gold.misled_how}", highlight=False)
        for entry in check.excluded:
            output.print(f"  {entry}", style="dim", highlight=False)
        if unchecked := set(check.unchecked.values()):
            why = "no verdict on all the images that could mislead it"
            output.print(f"{len(unchecked):,} {gold.items} are unchecked: {why}")


def print_checks(checks: Sequence[Check]) -> None:
    """Prints a table of the self-test: truth, what the judge says, and the corrected value."""
    from ..eval.stats.estimate import interval_text, value_text

    numbers = ("truth", "as judged", "corrected", "95 %")
    title = "known truth, as judged, and corrected by labels of a part (percent; grain in levels)"
    titles = ("generator", "judge", "score", *numbers, "holds")
    shown = table(*titles, numbers=numbers, title=title)
    for check in checks:
        values = (check.truth, check.raw.value, check.corrected.value)
        shown.add_row(
            check.trial,
            check.judge,
            check.score,
            *(value_text(value, "%") for value in values),
            interval_text(check.corrected.interval, "%"),
            "yes" if check.holds else "NO",
        )
    output = console(width=140)
    output.print(shown)
    held = sum(check.holds for check in checks)
    output.print(f"{held} of {len(checks)} corrected intervals hold the truth")


def _scores(result: Result, groups: bool) -> Table:
    from ..eval.results.tables import COLUMNS, cells, few, read_order, title

    shown = table(*COLUMNS, numbers=COLUMNS[2:], title=title(result))
    folded = {f"{column}={v}" for column, values in few(result.scores).items() for v in values}
    for score in read_order(result.scores):
        if "=" not in score.group or (groups and score.group not in folded):
            shown.add_row(*cells(score))
    return shown


def _folded(result: Result) -> Iterator[str]:
    """Which groups are too small to be printed."""
    from ..eval.results.tables import FEW, few, read_order

    for column, values in few(read_order(result.scores)).items():
        count = f"{len(values):,} group{'s' if len(values) > 1 else ''} of fewer than {FEW} items"
        yield f"{column}: {count} folded ({', '.join(values)}); --json prints them"


def _explained(result: Result) -> Iterator[str]:
    """What each score means, what its interval can't promise, and notes on the run."""
    from ..eval.results.clips import score_meanings
    from ..eval.results.tables import remarks
    from ..eval.suites import open_suite

    names = {score.name for score in result.scores if score.group == "all"}
    for name, meaning in score_meanings(open_suite(result.run.suite)).items():
        if name in names:
            yield f"{name}: {meaning}"
    yield from remarks(result)


def _judge(card: JudgeCard) -> str:
    parts = [
        f"{card.asked:,} questions",
        f"{_share(card.parse_rate)} parsed",
        f"answered with the question's first subject {_share(card.first_named)}",
    ]
    parts += [f"{n:,} {label}" for label, n in card.failures.items()]
    for probe, found in card.probes.items():
        parts.append(f"{probe}: same answer {_share(found.consistency)} of {found.n:,}")
    if card.gold:
        from ..eval.results.judge_check import gold_counts

        told = gold_counts(card.gold)["all"]
        counts = (f"{layout} {seen:,} of {shown:,}" for layout, (seen, shown) in told.items())
        parts.append(f"gold images recognized: {', '.join(counts)}")
    return f"judge: {'; '.join(parts)}"


def _confusion(question: str, found: HumanAgreement) -> Table:
    """People's labels against the judge's, with Cohen's kappa."""
    kappa = f"kappa {found.kappa.text('1')}"
    title = f"{question}: people (rows) and judge, n = {found.n:,}, {kappa}"
    shown = table("", *found.labels, numbers=found.labels, title=title)
    for label, row in zip(found.labels, found.matrix, strict=True):
        shown.add_row(label, *(f"{count:,}" for count in row))
    return shown


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.1%}"
