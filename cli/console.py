"""What the command line prints: progress, tables, errors and exit codes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from ..builders.authoring.folder import AuthoringReport
    from ..cards.diff import ReleaseDiff
    from ..cards.facts import Facts
    from ..cards.plan import Plan
    from ..corpus_analysis.flips import FlipSet
    from ..corpus_analysis.run import Finished
    from ..eval.engine.steps import Done
    from ..eval.results.judge_card import HumanAgreement
    from ..eval.results.scoring import Result
    from ..eval.stats.intervals import Interval
    from ..eval.studies.selftest import Check

WRONG = 1
USAGE = 2
INTERRUPTED = 130


@contextmanager
def failing() -> Iterator[None]:
    """Turn what a user can mend into one line on stderr and an exit code."""
    from ..errors import CounterpriorError

    try:
        yield
    except CounterpriorError as error:
        _stop(str(error), error.exit_code)
    except ValueError as error:
        _stop(str(error), USAGE)
    except KeyboardInterrupt:
        _stop("interrupted; run the same command again", INTERRUPTED)


def _stop(message: str, code: int) -> None:
    print(f"counterprior: {message}", file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A function that is told stage, done and total; a bar on a terminal, else plain lines."""
    if not sys.stderr.isatty():
        yield _plain_progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done)

        yield show


def _plain_progress() -> Callable[[str, int, int], None]:
    printed: dict[str, int] = {}

    def show(stage: str, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if printed.get(stage) != tenth:
            printed[stage] = tenth
            print(f"{stage}: {done}/{total}", file=sys.stderr, flush=True)

    return show


def print_configs(facts: Facts, out: Path) -> None:
    """The table of configs with their row counts against the design's."""
    from rich.console import Console
    from rich.table import Table

    table = Table("config", "status", title=f"counterprior {facts.version} in {out}")
    for title in ("rows", "planned", "pictures", "kB"):
        table.add_column(title, justify="right")
    for c in facts.configs:
        numbers = (f"{n:,}" for n in (c.rows, c.planned, c.pictures, c.bytes // 1000))
        table.add_row(c.name, c.status, *numbers)
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def print_note(text: str) -> None:
    """What a reader should know though nothing is wrong; on stderr, beside the results."""
    print(f"counterprior: {text}", file=sys.stderr)


def print_mined(finished: Finished, out: Path) -> None:
    """How many captions and pictures came how far, why the others did not, and the answer."""
    from rich.console import Console
    from rich.table import Table

    funnel = finished.funnel
    table = Table("stage", title=f"captions in {out}")
    for title in ("captions", "share"):
        table.add_column(title, justify="right")
    dropped = [(f"  dropped: {reason}", n) for reason, n in funnel.dropped.items() if n]
    stages = [("read", funnel.rows), *dropped, ("passed the quality gate", funnel.passed),
              ("passed the prefilter", funnel.candidates), ("parsed", funnel.parsed),
              ("  parser failed", funnel.errors), ("with a pair", funnel.captions)]  # fmt: skip
    for name, count in stages:
        table.add_row(name, f"{count:,}", f"{count / max(funnel.rows, 1):.2%}")
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print(f"{funnel.pairs:,} pairs; {funnel.model}, {funnel.speedup}")
    if finished.images is not None:
        reasons = ", ".join(f"{name} {n:,}" for name, n in finished.images["reasons"].items())
        console.print(f"{finished.images['addresses']:,} pictures: {reasons}")
        console.print(f"{finished.images['pairs_distinct']:,} pairs with a picture of their own")
    if finished.alignment is not None:
        rate = finished.alignment.single_probe
        low, high = rate.wilson
        console.print(
            f"{finished.alignment.funnel['valid']:,} show the two side by side; first-mentioned on "
            f"the left in {rate.aligned:,} of {rate.n:,}: {rate.rate:.1%} ({low:.1%} to {high:.1%})"
        )
        console.print(f"page: {out / 'index.html'}")
    for warning in finished.warnings:
        print(f"counterprior: {warning}", file=sys.stderr)


def print_flips(found: FlipSet, out: Path) -> None:
    """How many pairs were taken, from which categories, and why others were not."""
    for name, count in found.categories.items():
        print(f"{count:6,}  {name}")
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in found.dropped.items() if count)
    print(f"{found.pairs:,} pairs, {2 * found.pairs:,} pictures in {out}; not taken: {dropped}")


def print_diff(found: ReleaseDiff) -> None:
    """Rows added, removed and edited in each config, then the bump."""
    from rich.console import Console
    from rich.table import Table

    table = Table("config", "columns")
    for title in ("added", "removed", "edited"):
        table.add_column(title, justify="right")
    for config in found.configs:
        columns = [f"+{name}" for name in config.columns_added]
        columns += [f"-{name}" for name in config.columns_removed]
        columns += ["reordered"] * config.reordered
        counts = (f"{len(ids):,}" for ids in (config.added, config.removed, config.edited))
        table.add_row(config.name, " ".join(columns), *counts)
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print(f"{len(found.files)} files differ; the version bump is {found.bump}")


def print_plan(plan: Plan, as_json: bool) -> None:
    """Every file that a push touches, every step that is left, and the release notes."""
    if as_json:
        print(plan.to_json())
        return
    for operation in plan.operations:
        size = f"{operation.bytes:>12,} bytes" if operation.kind != "delete" else ""
        print(f"{operation.kind:<8} {operation.file:<60} {size}".rstrip())
    seen = "private" if plan.private else "public"
    onto = f"{plan.last}, a change that demands {plan.demanded}" if plan.last else "nothing"
    print(f"{plan.repository.name} ({seen}): {plan.version} of {plan.date}, after {onto}")
    print(f"onto commit {plan.head}" if plan.head else "the repository will be made")
    print(f"{plan.title}\n\n{plan.notes}\n")
    print(f"left to do: {', '.join(plan.steps) or f'nothing, {plan.tag} is released'}")


def print_released(plan: Plan, commit: str) -> None:
    """Where the release is, and how a reader pins it."""
    print(f"{plan.repository.name}: {plan.tag} is {commit}, verified from a cold cache. "
          f'Pin it with revision="{plan.tag}".', file=sys.stderr)  # fmt: skip


def print_metrics(metrics: Mapping[str, Any], as_json: bool) -> None:
    """Nested metrics, one number a line with its dotted name; or as JSON."""
    if as_json:
        import json

        print(json.dumps(metrics, indent=2, ensure_ascii=False))
        return
    for name, value in _flattened(metrics, ""):
        print(f"{name:<44} {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _flattened(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], str):
            yield from ((f"{prefix}{name}", item) for item in value)
        elif not isinstance(value, list) or not any(isinstance(v, (dict, list)) for v in value):
            yield prefix + name, "-" if value is None else value


def print_agreement(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """One row a metric, each number with its interval; or as JSON."""
    if as_json:
        import json

        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for row in rows:
        left_out = f"{row['unscored']} without score, {row['undecided']} undecided by people"
        print(f"{row['metric']}: {row['n']} pictures ({left_out})")
        for name, estimate in row["estimates"].items():
            value, ends = estimate["value"], estimate["interval"]
            shown = "-" if value is None else f"{value:.4f}"
            between = f"[{ends[0]:.4f}, {ends[1]:.4f}]" if ends else ""
            print(f"  {name:<12} {shown:>8} {between}")


def print_done(done: Done) -> None:
    """What became of a run's images, what each judge said now, and what all that cost."""
    run = done.run
    made = Counter(image.status for image in run.images().values())
    others = [f"{n:,} {status}" for status, n in sorted(made.items()) if status != "made"]
    usd = sum(Decimal(attempt.usd) for attempt in run.attempts() if attempt.usd)
    cost = [f"{usd:.2f} USD"] if usd else []
    parts = [f"{made['made']:,} images", *others, *cost]
    print_note(f"{run.root}: {'; '.join(parts)}")
    first = next((i for i in run.images().values() if i.status in ("error", "refused")), None)
    if first is not None:
        print_note(f"the first that is {first.status}: {first.case}: {first.message}")
    for log, tally in done.judged:
        counts = ", ".join(f"{n:,} {label}" for label, n in sorted(tally.labels.items()))
        known = f"; {tally.known:,} verdicts were there" if tally.known else ""
        print_note(f"{log.name}: {counts or 'nothing new'}{known}")
    if done.spending != type(done.spending)():
        print_note(f"spent {done.spending}")


def print_results(results: Sequence[Result], groups: bool) -> None:
    """A table of scores for each run and judge, and what there is to know of the judge."""
    from rich.console import Console
    from rich.table import Table

    from ..eval.results.tables import COLUMNS, cells, title

    console = Console(width=None if sys.stdout.isatty() else 120)
    for result in results:
        card = result.card
        table = Table(title=title(result))
        for column in COLUMNS:
            justify = "left" if column in ("score", "group") else "right"
            table.add_column(column, justify=justify)  # type: ignore[arg-type]
        for score in result.scores:
            if groups or "=" not in score.group:
                table.add_row(*cells(score))
        console.print(table)
        said = [f"{card.asked:,} questions", f"{_share(card.parse_rate)} parsed",
                f"first-named {_share(card.first_named)}"]  # fmt: skip
        said += [f"{n:,} {label}" for label, n in card.failures.items()]
        said += [f"{probe}: same answer {_share(found.consistency)} of {found.n:,}"
                 for probe, found in card.probes.items()]  # fmt: skip
        console.print(f"judge: {'; '.join(said)}")
        for question, agreement in card.agreement.items():
            console.print(_confusion(question, agreement))
        for line in _explained(result):
            console.print(line, style="dim", highlight=False)
    for folder, alpha in {result.folder: result.alpha for result in results}.items():
        for question, value in alpha.items():
            print(f"{folder}, {question}: Krippendorff's alpha of all who answered {value:.3f}")


def _confusion(question: str, found: HumanAgreement) -> Table:
    """People's labels against the judge's, with Cohen's kappa."""
    from rich.table import Table

    kappa = f"kappa {_number(found.kappa, '1')} ({_ends(found.low, found.high, '1')})"
    table = Table(title=f"{question}: people (rows) and judge, n = {found.n:,}, {kappa}")
    table.add_column("")
    for label in found.labels:
        table.add_column(label, justify="right")
    for label, row in zip(found.labels, found.matrix, strict=True):
        table.add_row(label, *(f"{count:,}" for count in row))
    return table


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.1%}"


def _explained(result: Result) -> Iterator[str]:
    """What each score means, what its interval can't promise, and what to know of the run."""
    from ..eval.suites import open_suite

    meanings = open_suite(result.run.suite).meanings
    for score in result.scores:
        if score.group == "all" and score.name in meanings:
            yield f"{score.name}: {meanings[score.name]}"
        if score.group == "all" and score.warning:
            yield f"{score.name}: {score.warning}"
    yield from (f"note: {note}" for note in result.notes)


def _number(value: float, unit: str, undefined: str = "undefined") -> str:
    if value != value:
        return undefined
    return f"{value:.1f}" if unit == "%" else f"{value:.3f}"


def _interval(interval: Interval, unit: str) -> str:
    return _ends(interval.low, interval.high, unit)


def _ends(low: float, high: float, unit: str) -> str:
    return "-" if low != low else f"{_number(low, unit)} to {_number(high, unit)}"


def print_checks(checks: Sequence[Check]) -> None:
    """The table of the self-test: truth, what the judge says, and what correction makes of it."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="known truth, as judged, and corrected by labels of a part (percent)")
    titles = ("generator", "judge", "score", "truth", "as judged", "corrected", "95 %", "holds")
    for title in titles:
        table.add_column(title, justify="right" if title in titles[3:7] else "left")
    for c in checks:
        table.add_row(c.trial, c.judge, c.score, _number(c.truth, "%"), _number(c.raw.value, "%"),
                      _number(c.corrected.value, "%"), _interval(c.corrected.interval, "%"),
                      "yes" if c.holds else "NO")  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print(
        f"{sum(c.holds for c in checks)} of {len(checks)} corrected intervals hold the truth"
    )


def print_authored(report: AuthoringReport) -> None:
    """What was written, why the run ended, and what it cost by role and model."""
    from rich.console import Console
    from rich.table import Table

    table = Table("role", "model", title=f"calls for {report.bank}")
    for title in ("calls", "failed", "input tokens", "output tokens", "USD", "unpriced"):
        table.add_column(title, justify="right")
    for a in report.accounts:
        numbers = (a.calls, a.failed, a.input_tokens, a.output_tokens)
        table.add_row(a.role, a.model, *(f"{n:,}" for n in numbers), f"{a.usd:.4f}",
                      f"{a.unpriced:,}")  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    counts = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    console.print(f"{counts}; stopped by {report.stopped}")
