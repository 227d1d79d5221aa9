"""Prints what commands found or did to a release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .console import WRONG, console, print_json, print_note, table

if TYPE_CHECKING:
    from ..builders.census import BankCensus, WorldsCensus
    from ..cards.diff import ReleaseDiff
    from ..cards.manifest import Manifest
    from ..cards.pull_request import PullRequest
    from ..cards.push_plan import Plan
    from ..cards.validate import ReleaseReport


def print_report(report: ReleaseReport, as_json: bool) -> None:
    """Prints problems and notes; ends the command with exit code 1 if there are problems."""
    print(report.to_json() if as_json else report.text())
    if report.problems:
        raise SystemExit(WRONG)


def print_census(found: BankCensus, worlds: WorldsCensus, as_json: bool) -> None:
    """Prints counts of constrained pairs by domain, of the bank and of a release; then of drawn
    worlds."""
    if as_json:
        print_json({**asdict(found), "worlds": asdict(worlds)})
        return
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
    title = f"constrained pairs on {found.facts} fact tables; in a release"
    shown = table("domain", *numbers, numbers=numbers, title=title)
    for domain, pairs in found.bank.items():
        rows = found.release[domain]
        counts = (pairs.pairs, pairs.families, pairs.derived, pairs.text_bound)
        shown.add_row(
            domain, *map(str, (*counts, rows.pairs, rows.families, rows.text_bound, rows.drawn))
        )
    console(width=110).print(shown)
    print_note(
        f"a release has at most {found.family_rows} rows of a family and {found.domain_families} "
        f"families of a domain: {found.release['all'].pairs} of {found.planned} rows, "
        f"{found.missing} missing; {found.retired} entries are retired; "
        f"{found.release['all'].twins} rows are twins, {found.release['all'].unordered} have a "
        f"prompt without order"
    )
    why = "".join(f"; {reason} {count}" for reason, count in found.undrawn.items())
    print_note(f"{found.release['all'].drawn} rows have gold images{why}")
    for which, listed in (("registered", found.registry), ("cited by a release", found.cited)):
        print_note(
            f"{listed.standards} standards {which}: {listed.sections} with a section or entry, "
            f"{listed.addresses} with an address, {listed.titles} by title alone"
        )

    _print_worlds(worlds)


def _print_worlds(found: WorldsCensus) -> None:
    """Prints for each discipline in how many groups a question tells the worlds apart."""
    seen = {part: {one.question: one for one in told} for part, told in found.looked_at.items()}
    questions = list(seen.get("all", {}))
    if questions:
        titles = ("drawn", "seen", *(name.replace("_", " ") for name in questions), "unsure")
        title = "groups of altered worlds whose question tells drawn worlds apart, as a reader said"
        shown = table("discipline", *titles, numbers=titles, title=title)
        for part, drawn in found.drawn.items():
            told = [seen[part][name] for name in questions] if part in seen else []
            counts = [max(one.groups for one in told), *(one.told for one in told)] if told else [0]
            unsure = [sum(one.unsure for one in told)] if told else []
            shown.add_row(part, *map(str, (drawn, *counts, *unsure)))
        console(width=120).print(shown)
    left = f"; drawn, and not released: {', '.join(found.unreleased)}" if found.unreleased else ""
    print_note(f"{found.drawn['all']} groups of altered worlds have gold images{left}")


def print_configs(facts: Manifest, out: Path) -> None:
    """Prints a table of configs: their status, rows made and planned, images and size."""
    numbers = ("rows", "planned", "images", "kB")
    title = f"counterprior {facts.version} in {out}"
    shown = table("config", "status", *numbers, numbers=numbers, title=title)
    for config in facts.configs:
        counts = config.rows, config.planned, config.pictures, config.bytes // 1000
        shown.add_row(config.name, config.status, *(f"{count:,}" for count in counts))
    console(width=100).print(shown)


def print_seeds(facts: Manifest) -> None:
    """Prints how many seed images a judge kept and refused; nothing where nobody judged."""
    if facts.seed_check is None:
        return
    check = facts.seed_check
    why = "".join(f"; {reason} {count:,}" for reason, count in check.refused.items())
    print_note(
        f"seed images: {check.kept:,} of {check.scenes:,} scenes have one, of {check.drawn:,} "
        f"drawn{why}. Rows of the others have none"
    )


def print_diff(found: ReleaseDiff, as_json: bool) -> None:
    """Prints rows added, removed and edited in each config, then the version bump."""
    if as_json:
        print(found.to_json())
        return
    numbers = ("added", "removed", "edited")
    shown = table("config", "columns", *numbers, numbers=numbers)
    for config in found.configs:
        columns = [f"+{name}" for name in config.columns_added]
        columns += [f"-{name}" for name in config.columns_removed]
        columns += ["reordered"] * config.reordered
        counts = (f"{len(ids):,}" for ids in (config.added, config.removed, config.edited))
        shown.add_row(config.name, " ".join(columns), *counts)
    output = console(width=100)
    output.print(shown)
    output.print(f"{len(found.files)} files differ; the version bump is {found.bump}")


def print_plan(plan: Plan, as_json: bool) -> None:
    """Prints every file that a push touches, the release notes, and the steps that are left."""
    if as_json:
        print(plan.to_json())
        return
    for operation in plan.operations:
        size = f"{operation.bytes:>12,} bytes" if operation.kind != "delete" else ""
        print(f"{operation.kind:<8} {operation.file:<60} {size}".rstrip())
    seen = "private" if plan.private else "public"
    after = f"{plan.last}, a change that demands {plan.demanded}" if plan.last else "nothing"
    print(f"{plan.repository.name} ({seen}): {plan.version} of {plan.date}, after {after}")
    print(f"onto commit {plan.head}" if plan.head else "the repository will be created")
    print(f"{plan.title}\n\n{plan.notes}\n")
    print(f"left to do: {', '.join(plan.steps) or f'nothing, {plan.tag} is released'}")


def print_released(plan: Plan, commit: str) -> None:
    """Prints where the release is, and how a reader pins it."""
    print_note(
        f"{plan.repository.name}: {plan.tag} is {commit}, verified from a cold cache. "
        f'Pin it with revision="{plan.tag}".'
    )


def print_pull_request(found: PullRequest, files: int) -> None:
    """Prints where a model's results are proposed."""
    what = "opened" if found.opened else "already there"
    print_note(f"{found.model}: {files} result files, {what}: {found.url}")
