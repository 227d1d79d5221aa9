"""What the command line prints: progress, tables, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cards.diff import ReleaseDiff
    from .cards.facts import Facts

WRONG = 1
USAGE = 2
INTERRUPTED = 130


@contextmanager
def failing() -> Iterator[None]:
    """Turn what a user can mend into one line on stderr and an exit code."""
    from .builders.bank import BankError
    from .builders.build import BuildError
    from .release import ReleaseError

    try:
        yield
    except (BankError, BuildError) as error:
        _stop(str(error), WRONG)
    except (ReleaseError, ValueError) as error:
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
        counts = (f"{len(ids):,}" for ids in (config.added, config.removed, config.edited))
        table.add_row(config.name, " ".join(columns), *counts)
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print(f"{len(found.files)} files differ; the version bump is {found.bump}")


def print_metrics(metrics: Mapping[str, Any], as_json: bool) -> None:
    """Nested metrics, one number a line with its dotted name; or as JSON."""
    if as_json:
        import json

        print(json.dumps(metrics, indent=2, ensure_ascii=False))
        return
    for name, value in _flattened(metrics, ""):
        shown = f"{value:.4f}" if isinstance(value, float) else str(value)
        print(f"{name:<44} {shown}")


def _flattened(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
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
