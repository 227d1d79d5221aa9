"""Do a public release and a private folder make up the full build, split as the salt says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..builders.manifest import Division, Holdout
from ..release import Problem, ReleaseError, iter_records, verify
from ..schema import ROWS, Row
from .facts import MANIFEST, Facts, read_facts
from .validate import CheckRows, Report

Divide = Callable[[Mapping[str, Sequence[Row]], float], Division]
"""Splits a full build at a fraction, under a salt that it knows."""

RowsById = dict[str, dict[str, Row]]
"""Config -> id -> row."""


def verify_holdout(public: Path, private: Path, divide: Divide, check_rows: CheckRows) -> Report:
    """Everything that tells the two folders from a full build that was split under the salt.

    The rows of both are put together and split again: that must give the two folders and their
    commitments. Raises ReleaseError where one of them is no release, or not that part of one.
    """
    facts, hidden = _facts(public, False), _facts(private, True)
    commitment = _commitment(facts)
    problems = [p for root in (public, private) for p in _of(root, verify(root))]
    if _commitment(hidden).model_copy(update={"private": False}) != commitment:
        problems.append(
            Problem(f"{private}/{MANIFEST}", "commits to another split", field="holdout")
        )
    if problems:
        return Report(f"{public} and {private}", tuple(problems))
    parts = _rows(public, facts), _rows(private, hidden)
    problems += [*_overlaps(*parts, private), *_counts(public, facts, parts[1])]
    problems += _counts(private, hidden, parts[0])
    whole = {
        name: [*rows.values(), *parts[1].get(name, {}).values()] for name, rows in parts[0].items()
    }
    problems += _split_again(public, parts, commitment, divide(whole, commitment.fraction))
    problems += [
        Problem(f"{public} + {private}/{name}", message, row, field)
        for name, rows in whole.items()
        for row, field, message in check_rows(name, rows, True)
    ]
    return Report(f"{public} and {private}", tuple(problems))


def _facts(root: Path, private: bool) -> Facts:
    facts = read_facts(root)
    if facts.holdout is None or facts.private != private:
        wanted = "private" if private else "public"
        raise ReleaseError(f"{root}: is not the {wanted} part of a release built with --holdout")
    return facts


def _commitment(facts: Facts) -> Holdout:
    assert facts.holdout is not None, "see _facts"
    return facts.holdout


def _of(root: Path, problems: Sequence[Problem]) -> Iterator[Problem]:
    for problem in problems:
        yield Problem(f"{root}/{problem.file}", problem.message, problem.row, problem.field)


def _rows(root: Path, facts: Facts) -> RowsById:
    try:
        return {
            config.name: {
                record["id"]: ROWS[config.name].model_validate(record)
                for record in iter_records(root, config.name)
            }
            for config in facts.configs
        }
    except (KeyError, ValueError) as error:
        raise ReleaseError(f"{root}: `counterprior validate` it first ({error})") from None


def _overlaps(public: RowsById, private: RowsById, root: Path) -> Iterator[Problem]:
    for name, rows in private.items():
        for row in sorted(rows.keys() & public.get(name, {}).keys()):
            yield Problem(f"{root}/{name}", "stands in the public release too", row)
        if name not in public:
            yield Problem(f"{root}/{name}", "is no config of the public release")


def _counts(root: Path, facts: Facts, other: RowsById) -> Iterator[Problem]:
    for config in facts.configs:
        found = len(other.get(config.name, {}))
        if config.elsewhere != found:
            message = f"says {config.elsewhere}, the other folder has {found}"
            yield Problem(f"{root}/{MANIFEST}", message, config.name, "elsewhere")


def _split_again(
    root: Path, parts: tuple[RowsById, RowsById], commitment: Holdout, division: Division
) -> Iterator[Problem]:
    """What differs from the split that the salt makes of the two together."""
    made = division.commitment
    if made.salt_sha256 != commitment.salt_sha256:
        yield Problem(f"{root}/{MANIFEST}", "is not of this salt", field="holdout.salt_sha256")
        return
    for rows, private in zip(parts, (False, True), strict=True):
        for name in rows:
            for row in sorted(rows[name]):
                if (row in division.held.get(name, ())) != private:
                    side = "held out" if private else "public"
                    yield Problem(f"{root}/{name}", f"is {side}, the salt says otherwise", row)
    for field in ("held_out_sha256", "full_hmac"):
        if getattr(made, field) != getattr(commitment, field):
            message = "differs from the rows of both folders: some are missing, added or edited"
            yield Problem(f"{root}/{MANIFEST}", message, field=f"holdout.{field}")
