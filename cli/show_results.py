"""Prints runs, verdicts and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..printable import reasons
from .console import console, new_table, print_note

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.core import Score
    from ..eval.engine.run import RunHeader
    from ..eval.engine.steps import Done
    from ..eval.results.detectability import DetectorCheck
    from ..eval.results.judge_card import HumanAgreement, JudgeCard
    from ..eval.results.scoring import Result
    from ..eval.selftest.run import Check
    from ..eval.studies.detector_check import CheckedDetectors
    from ..eval.studies.findings import Findings
    from ..eval.studies.judge_check import CheckedJudges
    from ..eval.studies.real_check import CheckedOnReal


FAILURES = 5
"""Images that failed of which each is named with its reason."""


def print_done(done: Done) -> None:
    """Prints a run's images by status, the new verdicts of each judge, and the cost."""
    run = done.run
    statuses = Counter(image.status for image in run.images().values())
    other_statuses = [
        f"{n:,} {status}" for status, n in sorted(statuses.items()) if status != "made"
    ]
    usd = sum(Decimal(attempt.usd) for attempt in run.results.every() if attempt.usd)
    cost = [f"{usd:.2f} USD"] if usd else []
    facts = [f"{statuses['made']:,} images", *other_statuses, *cost]
    print_note(f"{run.root}: {'; '.join(facts)}")
    failed = [i for i in run.images().values() if i.status in ("error", "refused")]
    for image in failed[:FAILURES]:
        print_note(f"{image.status}, {image.case}: {image.message}")
    if failed[FAILURES:]:
        print_note(f"{len(failed) - FAILURES:,} more in {run.root / 'images.jsonl'}")
    for note in run.notes():
        print_note(f"note: {note}")
    for log, tally in done.judged:
        counts = ", ".join(f"{n:,} {label}" for label, n in sorted(tally.labels.items()))
        earlier = f"; {tally.recorded:,} verdicts were there" if tally.recorded else ""
        print_note(f"{log.name}: {counts or 'nothing new'}{earlier}")
        for reason in reasons(tally.errors):
            print_note(f"{log.name}: {reason}")
    if done.spending.calls or done.spending.errors:
        print_note(f"spent {done.spending}")
    if done.total or done.unpriced:
        unknown = f" and an unknown sum for {done.unpriced:,} calls" if done.unpriced else ""
        print_note(f"images and verdicts so far: {done.total:.4f} USD{unknown}")


def print_results(results: Sequence[Result], groups: bool, explain: bool) -> None:
    """Prints a table of scores for each run and judge, and the judge's card.

    explain: all scores with what each means, in place of the headline score and its checks.
    """
    from ..eval.results.tables import discoveries, leading

    output = console(width=120)
    for result in results:
        scores = result.scores if explain else leading(result)
        for doubt in result.doubts:
            output.print(doubt, style="bold red", highlight=False)
        output.print(_scores(result, scores, groups))
        for line in (*_folded(scores), *discoveries(scores)) if groups else ():
            output.print(line, style="dim", highlight=False)
        if result.run.where or result.run.limit:
            output.print(_rows(result.run), highlight=False)
        output.print(_judge(result.card))
        for question, agreement in result.card.agreement.items():
            output.print(_confusion(question, agreement))
            if agreement.kappa.warning:
                output.print(agreement.kappa.warning, style="dim", highlight=False)
        for line in _explained(result) if explain else _unexplained(result, scores):
            output.print(line, style="dim", highlight=False)
    for folder, alpha in {result.folder: result.alpha for result in results}.items():
        for question, value in alpha.items():
            print(f"{folder}, {question}: Krippendorff's alpha of all who answered {value:.3f}")


def print_judge_checks(checked: CheckedJudges) -> None:
    """Prints how often each judge recognizes gold images, by group, and which misled it."""
    from ..eval.stats.estimate import interval_text, value_text

    output, gold = console(width=120), checked.suite
    first, *other_columns = gold.columns
    for check, judged in zip(checked.checks, checked.judged, strict=True):
        by_group = {(s.group, s.name): s for s in judged.result.scores}
        groups = [group for group, name in by_group if name == first and group != "all"]
        numbers = (
            gold.columns[first],
            "95 % CI",
            "n",
            *(gold.columns[name] for name in other_columns),
        )
        title = f"{check.judge} on gold images (percent)"
        table = new_table(gold.breakdown, *numbers, numbers=numbers, title=title)
        for group in ("all", *(p for p in groups if p.partition("=")[0] in gold.table_groups)):
            score = by_group[group, first]
            table.add_row(
                group.removeprefix(f"{gold.breakdown}="),
                value_text(score.value, score.unit),
                interval_text(score.interval, score.unit),
                f"{score.n:,}",
                *(
                    value_text(by_group[group, name].value, by_group[group, name].unit)
                    for name in other_columns
                ),
            )
        output.print(table)
        for name in gold.meanings:
            score = by_group["all", name]
            value = score.text(score.unit)
            output.print(f"{name}: {value}, n = {score.n:,}", style="dim", highlight=False)
        for name, labels in check.confusion.items():
            counts = ", ".join(f"{n:,} {label}" for label, n in labels.items())
            output.print(f"{name}: {counts}", style="dim", highlight=False)
        if check.informedness is not None:
            informed, low, high = check.informedness
            verdict = "fails: none of its verdicts is scored" if check.failed else "passes"
            output.print(
                f"informedness {informed:.3f} ({low:.3f} to {high:.3f}), where 1 is a judge that "
                f"sees and 0 one that guesses: {check.judge} {verdict}",
                highlight=False,
            )
        verb = f"{len(check.excluded):,} of {check.items:,} {gold.items} are excluded"
        output.print(f"{verb} for this judge, since it {gold.misled_how}", highlight=False)
        for entry in check.excluded:
            output.print(f"  {entry}", style="dim", highlight=False)
        if unchecked := set(check.unchecked.values()):
            why = "no verdict on all the images that could mislead it"
            output.print(f"{len(unchecked):,} {gold.items} are unchecked: {why}")


def print_detectors(checked: CheckedDetectors) -> None:
    """Prints how often each judge misses things that are there, by class and size."""
    from ..eval.results.detectability import SIZES

    output = console(width=140)
    for check in checked.checks:
        columns = [f"area {size:.0%}, 95 %" for size in SIZES]
        numbers = ("there", "cut-outs", "missed", *columns, "not there", "seen")
        title = f"{check.judge}: missed of what is there, of {check.images:,} composed images (%)"
        table = new_table("class", *numbers, numbers=numbers, title=title)
        for line in checked.rates(check):
            table.add_row(
                line.name,
                f"{line.there:,}",
                f"{line.cutouts:,}",
                f"{line.missed:,}",
                *(estimate.text("%") for estimate in line.missing_at),
                f"{line.absent:,}",
                f"{line.invented:,}",
            )
        output.print(table)
        if check.failed:
            print_note(f"{check.judge}: {check.failed:,} images without a verdict, excluded")
    for note in checked.notes:
        print_note(f"note: {note}")
    print_note(f"correct a run with `counterprior score RUN --gold {checked.done.run.root.parent}`")


def print_on_real(checked: CheckedOnReal) -> None:
    """Prints the scores of each judge on real images, over all and by generator."""
    from ..eval.stats.estimate import interval_text, value_text
    from ..eval.suites.real import RealGoldSuite

    output = console(width=120)
    for judged in checked.judged:
        result = judged.result
        table = new_table(
            "of real images",
            *("%", "95 % CI", "n", "excluded"),
            numbers=("%", "95 % CI", "n"),
            title=f"{result.judge} on real images, against their readers",
        )
        groups = sorted({s.group for s in result.scores if s.group.startswith("model=")})
        for score in result.scores:
            if score.group == "all" or (score.group in groups and score.name == "recognized"):
                of = "" if score.group == "all" else f", {score.group.removeprefix('model=')}"
                table.add_row(
                    score.name.replace("_", " ") + of,
                    value_text(score.value, score.unit),
                    interval_text(score.interval, score.unit),
                    f"{score.n:,}",
                    ", ".join(f"{n:,} {why}" for why, n in score.excluded.items()),
                )
        output.print(table)
        for name, meaning in RealGoldSuite.meanings.items():
            output.print(f"{name}: {meaning}", style="dim", highlight=False)
    for note in checked.notes:
        print_note(f"note: {note}")
    print_note(f"correct a run with `counterprior score RUN --gold {checked.done.run.root.parent}`")


BY_DIFFICULTY = (
    "recognized",
    "taken_for_opposite",
    "one_missing_refused",
    "merged_refused",
    "accuracy",
)
"""Scores that are printed for each level of drawn images."""


def print_on_drawn(drawn: CheckedOnReal, real: CheckedOnReal | None) -> None:
    """Prints the scores of each judge by difficulty, and those on real images after them."""
    from ..eval.stats.estimate import interval_text, value_text

    on_real = {judged.result.judge: judged.whole for judged in real.judged} if real else {}
    for judged in drawn.judged:
        result = judged.result
        table = new_table(
            "of images",
            *("difficulty", "%", "95 % CI", "n", "excluded"),
            numbers=("%", "95 % CI", "n"),
            title=f"{result.judge} on drawn images, from easy to hard"
            + (", and on real ones" if real else ""),
        )
        for name in BY_DIFFICULTY:
            lines = [
                (score.group.partition("=")[2], score)
                for score in result.scores
                if score.name == name and score.group.startswith("difficulty=")
            ]
            lines.sort(key=lambda line: line[0])
            if score := on_real.get(result.judge, {}).get(name):
                lines.append(("real", score))
            for place, (level, score) in enumerate(lines):
                table.add_row(
                    "" if place else name.replace("_", " "),
                    level,
                    value_text(score.value, score.unit),
                    interval_text(score.interval, score.unit),
                    f"{score.n:,}",
                    ", ".join(f"{n:,} {why}" for why, n in score.excluded.items()),
                )
        console(width=120).print(table)


def print_findings(found: Findings) -> None:
    """Prints a table for each kind of finding, a line for each score and generator."""
    from ..eval.stats.estimate import interval_text, p_text, value_text
    from ..eval.studies.findings import MEANINGS, TABLES

    output = console(width=120)
    for title, names in TABLES.items():
        tested = any(score.p_value == score.p_value for name in names for score in found.of(name))
        numbers = ("value", "95 % CI", "n", *(("p", "q") if tested else ()))
        table = new_table("score", "images of", *numbers, "excluded", numbers=numbers, title=title)
        if not any(found.of(name) for name in names):
            continue
        for name in names:
            for score in found.of(name):
                table.add_row(
                    name,
                    score.group.partition("=")[2] or score.group,
                    value_text(score.value, score.unit),
                    interval_text(score.interval, score.unit),
                    f"{score.n:,}",
                    *((p_text(score.p_value), p_text(score.q_value)) if tested else ()),
                    ", ".join(
                        f"{n:,} {why.replace('_', ' ')}" for why, n in score.excluded.items()
                    ),
                )
        output.print(table)
        for name in names:
            output.print(f"{name}: {MEANINGS[name]}", style="dim", highlight=False)
    for note in found.notes:
        print_note(f"note: {note}")


def detector_json(checked: CheckedDetectors, check: DetectorCheck) -> dict[str, Any]:
    """The rates of a judge for a machine, in percent."""
    from ..eval.results.detectability import SIZES

    return {
        "judge": check.judge,
        "images": check.images,
        "failed": check.failed,
        "areas": list(SIZES),
        "classes": [
            {**vars(line), "missing_at": [e.to_json() for e in line.missing_at]}
            for line in checked.rates(check)
        ],
        "notes": list(checked.notes),
    }


def print_checks(checks: Sequence[Check]) -> None:
    """Prints a table of the self-test: truth, value as judged, and corrected value."""
    from ..eval.stats.estimate import interval_text, value_text

    numbers = ("truth", "as judged", "corrected", "95 % CI")
    title = (
        "known truth, as judged, and corrected by labels of a part (percent; worlds from 0 to 1; "
        "grain in levels)"
    )
    titles = ("generator", "judge", "score", *numbers, "holds")
    table = new_table(*titles, numbers=numbers, title=title)

    def unit_of(check: Check) -> str:
        return "%" if check.score == "grain" else check.raw.unit  # levels need no more digits

    for check in checks:
        values = (check.truth, check.raw.value, check.corrected.value)
        table.add_row(
            check.trial,
            check.judge,
            check.score,
            *(value_text(value, unit_of(check)) for value in values),
            interval_text(check.corrected.interval, unit_of(check)),
            "yes" if check.holds else "NO",
        )
    output = console(width=140)
    output.print(table)
    held = sum(check.holds for check in checks)
    output.print(f"{held} of {len(checks)} corrected intervals hold the truth")


def _scores(result: Result, scores: Sequence[Score], groups: bool) -> Table:
    from ..eval.results.tables import COLUMNS, cells, few, read_order, title

    folded = {f"{column}={v}" for column, values in few(scores).items() for v in values}
    shown = [
        score
        for score in read_order(scores)
        if "=" not in score.group or (groups and score.group not in folded)
    ]
    grouped = any(score.group != "all" for score in shown)
    titles = [name for name in COLUMNS if grouped or name != "group"]
    table = new_table(*titles, numbers=COLUMNS[2:-1], title=title(result))
    table.columns[0].no_wrap = not grouped
    for column in table.columns:
        column.overflow = "fold"  # names whole, on two lines if need be
    for score in shown:
        name, group, *others, left_out = cells(score)
        table.add_row(name, *([group] if grouped else []), *others, left_out.replace("_", " "))
    return table


def _rows(run: RunHeader) -> str:
    """The rows that a run has, where these are not all of its suite."""
    sample = f"a sample by --limit {run.limit:,}" if run.limit else ""
    return ", ".join(filter(None, (f"rows: {run.rows:,}", run.where, sample)))


def _folded(scores: Sequence[Score]) -> Iterator[str]:
    """Yields a line for each column whose small groups are not printed."""
    from ..eval.results.tables import FEW, few, read_order

    for column, values in few(read_order(scores)).items():
        count = f"{len(values):,} group{'s' if len(values) > 1 else ''} of fewer than {FEW} items"
        yield f"{column}: {count} folded ({', '.join(values)}); --json prints them"


def _unexplained(result: Result, scores: Sequence[Score]) -> Iterator[str]:
    """Yields warnings about the scores that are shown, notes on the run, and what is not shown."""
    from ..eval.results.scoring import SCORES
    from ..eval.results.tables import remarks

    _, *others = remarks(result, scores)
    yield from others
    names = {score.name for score in result.scores if score.group == "all"}
    hidden = len(names) - len({score.name for score in scores if score.group == "all"})
    more = f"{hidden:,} more scores, and " if hidden else ""
    yield f"--explain prints {more}what each means; {result.folder}/{SCORES} has all scores"


def _explained(result: Result) -> Iterator[str]:
    """Yields the meaning of each score, the limits of its interval, and notes on the run."""
    from ..eval.results.clips import score_meanings
    from ..eval.results.tables import remarks
    from ..eval.suites import open_suite

    score_names = {score.name for score in result.scores if score.group == "all"}
    for name, meaning in score_meanings(open_suite(result.run.suite)).items():
        if name in score_names:
            yield f"{name}: {meaning}"
    yield from remarks(result)


def _judge(card: JudgeCard) -> str:
    facts = [
        f"{card.asked:,} questions",
        f"{_share(card.parse_rate)} parsed",
        f"answered with the question's first subject {_share(card.first_named)}",
    ]
    facts += [f"{n:,} {label}" for label, n in card.failures.items()]
    for probe, probe_result in card.probes.items():
        facts.append(
            f"{probe}: same answer {_share(probe_result.consistency)} of {probe_result.n:,}"
        )
    if card.gold:
        from ..eval.results.judge_check import gold_counts

        gold_images = gold_counts(card.gold)["all"]
        counts = (
            f"{layout} {recognized:,} of {total:,}"
            for layout, (recognized, total) in gold_images.items()
        )
        facts.append(f"gold images recognized: {', '.join(counts)}")
    for question, recognized in card.latent.items():
        shares = (
            f"{label} {_share(value)} ({_share(low)} to {_share(high)})"
            for label, (value, low, high) in recognized.items()
        )
        facts.append(f"recognizes, by all raters of {question} together, {', '.join(shares)}")
    return f"judge: {'; '.join(facts)}"


def _confusion(question: str, agreement: HumanAgreement) -> Table:
    """Returns people's labels against the judge's, with Cohen's kappa, and beside it what kappa
    depends on: how common each label is, and how often the judge recognizes it."""
    from ..eval.stats.estimate import share_of

    kappa = f"kappa {agreement.kappa.text('1')}"
    title = f"{question}: people (rows) and judge, n = {agreement.n:,}, {kappa}"
    columns = (*agreement.labels, "share", "recognized")
    table = new_table("", *columns, numbers=columns, title=title)
    for place, (label, row) in enumerate(zip(agreement.labels, agreement.matrix, strict=True)):
        n, right = sum(row), row[place]
        recognized = "-"
        if n:
            of_label = share_of(right, n)
            low, high = of_label.interval
            recognized = f"{_share(of_label.value)} ({_share(low)} to {_share(high)})"
            table.caption = of_label.warning or table.caption
        counts = (f"{count:,}" for count in row)
        share = _share(n / agreement.n if agreement.n else math.nan)
        table.add_row(label, *counts, share, recognized)
    return table


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.1%}"
