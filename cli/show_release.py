"""Prints the census, differences, checks and pushes of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, NoReturn

from .console import UNPROVEN, WRONG, console, new_table, print_json, print_note

if TYPE_CHECKING:
    from ..builders.census import BankCensus, WorldsCensus
    from ..cards.diff import ReleaseDiff
    from ..cards.manifest import Manifest
    from ..cards.pull_request import PullRequest
    from ..cards.push_plan import Plan
    from ..cards.validate import ReleaseReport


def print_report(report: ReleaseReport, as_json: bool) -> None:
    """Prints problems and notes; ends the command with exit code 1 if there are problems, with 3 if
    there is none but nothing outside vouches for what was checked."""
    print(report.to_json() if as_json else report.text())
    if report.problems:
        raise SystemExit(WRONG)
    if report.anchor == "":
        raise SystemExit(UNPROVEN)


def print_bank_faults(faults: Sequence[str], as_json: bool) -> NoReturn:
    """Prints the faults of a bank, and ends the command with exit code 1."""
    if as_json:
        print_json({"faults": faults})
    for fault in faults:
        print_note(fault)
    raise SystemExit(WRONG)


def print_census(census: BankCensus, worlds: WorldsCensus, as_json: bool) -> None:
    """Prints counts of constrained pairs by domain, of the bank and of a release; then of drawn
    worlds."""
    if as_json:
        print_json({**asdict(census), "worlds": asdict(worlds), "faults": []})
    else:
        _print_counts(census)
        _print_worlds(worlds)


def _print_counts(census: BankCensus) -> None:
    numbers = (
        "pairs",
        "families",
        "code-derived",
        "text-bound",
        "rows",
        "families ",
        "text ",
        "drawn",
    )
    title = f"constrained pairs on {census.facts} fact tables; in a release"
    table = new_table("domain", *numbers, numbers=numbers, title=title)
    for domain, pairs in census.bank.items():
        rows = census.release[domain]
        counts = (pairs.pairs, pairs.families, pairs.derived, pairs.text_bound)
        table.add_row(
            domain, *map(str, (*counts, rows.pairs, rows.families, rows.text_bound, rows.drawn))
        )
    console(width=110).print(table)
    print_note(
        f"a release has at most {census.family_rows} rows of a family and {census.domain_families} "
        f"families of a domain: {census.release['all'].pairs} of {census.planned} rows, "
        f"{census.missing} missing; {census.retired} entries are retired; "
        f"{census.release['all'].twins} rows are twins, {census.release['all'].unordered} have a "
        f"prompt without order"
    )
    why = "".join(f"; {reason} {count}" for reason, count in census.undrawn.items())
    print_note(f"{census.release['all'].drawn} rows have gold images{why}")
    for which, listed in (("registered", census.registry), ("cited by a release", census.cited)):
        print_note(
            f"{listed.standards} standards {which}: {listed.sections} with a section or entry, "
            f"{listed.addresses} with an address, {listed.titles} by title alone"
        )


def _print_worlds(census: WorldsCensus) -> None:
    """Prints, for each discipline, the number of groups that each question tells apart."""
    answers = {
        discipline: {count.question: count for count in counts}
        for discipline, counts in census.looked_at.items()
    }
    questions = list(answers.get("all", {}))
    if questions:
        titles = ("drawn", "seen", *(name.replace("_", " ") for name in questions), "unsure")
        title = "groups of altered worlds whose question tells drawn worlds apart, as a reader said"
        table = new_table("discipline", *titles, numbers=titles, title=title)
        for discipline, drawn in census.drawn.items():
            by_question = answers.get(discipline, {})
            in_order = [by_question[name] for name in questions] if by_question else []
            counts = [max((answer.groups for answer in in_order), default=0)]
            counts += [answer.told for answer in in_order]
            unsure = [sum(answer.unsure for answer in in_order)] if in_order else []
            table.add_row(discipline, *map(str, (drawn, *counts, *unsure)))
        console(width=120).print(table)
    unreleased = (
        f"; drawn, and not released: {', '.join(census.unreleased)}" if census.unreleased else ""
    )
    print_note(f"{census.drawn['all']} groups of altered worlds have gold images{unreleased}")


def print_configs(facts: Manifest, out: Path) -> None:
    """Prints a table of configs: their status, rows made and planned, images and size."""
    numbers = ("rows", "planned", "images", "kB")
    title = f"counterprior {facts.version} in {out}"
    table = new_table("config", "status", *numbers, numbers=numbers, title=title)
    for config in facts.configs:
        counts = config.rows, config.planned, config.pictures, config.bytes // 1000
        table.add_row(config.name, config.status, *(f"{count:,}" for count in counts))
    console(width=100).print(table)


def print_seeds(facts: Manifest) -> None:
    """Prints how many seed images a judge kept and refused; nothing without a judge."""
    if facts.seed_check is None:
        return
    check = facts.seed_check
    why = "".join(f"; {reason} {count:,}" for reason, count in check.refused.items())
    print_note(
        f"seed images: {check.kept:,} of {check.scenes:,} scenes have one, of {check.drawn:,} "
        f"drawn{why}. Rows of the others have none"
    )


EXAMPLES = 3
"""Rows of which the prompt is printed, for each config and kind of change."""


def print_diff(difference: ReleaseDiff, as_json: bool) -> None:
    """Prints rows added, removed and edited in each config, then the version bump."""
    if as_json:
        print(difference.to_json())
        return
    numbers = ("added", "removed", "edited")
    table = new_table("config", "columns", *numbers, numbers=numbers)
    for config in difference.configs:
        columns = [f"+{name}" for name in config.columns_added]
        columns += [f"-{name}" for name in config.columns_removed]
        columns += ["reordered"] * config.reordered
        counts = (f"{len(ids):,}" for ids in (config.added, config.removed, config.edited))
        table.add_row(config.name, " ".join(columns), *counts)
    output = console(width=100)
    output.print(table)
    for config in difference.configs:
        for change in ("removed", "edited", "added"):
            ids = getattr(config, change)
            for row in ids[:EXAMPLES]:
                output.print(
                    f"{change} {row}: {config.prompts[row]}", highlight=False, markup=False
                )
                for column, (was, now) in config.edits.get(row, {}).items():
                    before, after = (shorten(text, 160, placeholder="...") for text in (was, now))
                    text = f"  {column}: {before} -> {after}"
                    output.print(text, highlight=False, markup=False)
            if ids[EXAMPLES:]:
                output.print(f"... and {len(ids) - EXAMPLES:,} more {change} in {config.name}")
    displaced = sum(len(config.removed) for config in difference.configs)
    edited = sum(len(config.edited) for config in difference.configs)
    output.print(
        f"{len(difference.files)} files differ; {displaced:,} published rows are displaced and "
        f"{edited:,} edited; the version bump is {difference.bump}"
    )


def print_plan(plan: Plan, as_json: bool) -> None:
    """Prints every file that a push touches, the release notes, and the steps that are left."""
    if as_json:
        print(plan.to_json())
        return
    for operation in plan.operations:
        size = f"{operation.bytes:>12,} bytes" if operation.kind != "delete" else ""
        print(f"{operation.kind:<8} {operation.file:<60} {size}".rstrip())
    visibility = "private" if plan.private else "public"
    after = f"{plan.last}, a change that demands {plan.demanded}" if plan.last else "nothing"
    print(f"{plan.repository.name} ({visibility}): {plan.version} of {plan.date}, after {after}")
    print(f"onto commit {plan.head}" if plan.head else "the repository will be created")
    print(f"{plan.title}\n\n{plan.notes}\n")
    print(f"left to do: {', '.join(plan.steps) or f'nothing, {plan.tag} is released'}")


def print_digest(folder: Path, manifest: Manifest) -> None:
    """Prints the digests of a whole release and of its rows, for those who verify it."""
    from ..release import release_digest

    print_note(f"{folder}: sha256 {release_digest(folder)}; of its rows {manifest.rows_sha256}")


def print_released(plan: Plan, commit: str) -> None:
    """Prints where the release is, and how a reader pins it."""
    from ..release import release_digest

    print_note(
        f"{plan.repository.name}: {plan.tag} is {commit}, verified from a cold cache. "
        f'Pin it with revision="{plan.tag}". Its sha256 is {release_digest(plan.folder)}.'
    )


def print_pull_request(pull_request: PullRequest, files: int) -> None:
    """Prints where a model's results are proposed."""
    state = "opened" if pull_request.opened else "already there"
    print_note(f"{pull_request.model}: {files} result files, {state}: {pull_request.url}")
