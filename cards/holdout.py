"""Do a public release and its private part make up the full build, split as the salt says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..builders.build_result import Division, Holdout
from ..release import Problem, ReleaseError, iter_records, verify
from ..schema import ROWS, Row
from .config_checks import CheckRows
from .manifest import MANIFEST, Manifest, read_manifest
from .validate import ReleaseReport

Divide = Callable[[Mapping[str, Sequence[Row]], float], Division]
"""Splits a full build at a fraction; it knows the salt."""

RowsById = dict[str, dict[str, Row]]
"""Config -> id -> row."""


def verify_holdout(
    public: Path, private: Path, divide: Divide, check_rows: CheckRows
) -> ReleaseReport:
    """Every difference between the two folders and a full build split under the salt.

    The rows of both are merged and split again, which must reproduce the folders and their
    commitments. Raises ReleaseError if a folder is not a release, or not the right part of one.
    """
    manifest, hidden = _read_part(public, False), _read_part(private, True)
    commitment = _commitment(manifest)
    problems = [p for root in (public, private) for p in _of(root, verify(root))]
    if _commitment(hidden).model_copy(update={"private": False}) != commitment:
        problems.append(
            Problem(f"{private}/{MANIFEST}", "commits to another split", field="holdout")
        )
    if problems:
        return ReleaseReport(f"{public} and {private}", tuple(problems))
    sides = _rows(public, manifest), _rows(private, hidden)
    problems += [*_overlaps(*sides, private), *_counts(public, manifest, sides[1])]
    problems += _counts(private, hidden, sides[0])
    merged = {
        name: [*rows.values(), *sides[1].get(name, {}).values()] for name, rows in sides[0].items()
    }
    problems += _split_again(public, sides, commitment, divide(merged, commitment.fraction))
    problems += [
        Problem(f"{public} + {private}/{name}", message, row, field)
        for name, rows in merged.items()
        for row, field, message in check_rows(name, rows, True)
    ]
    return ReleaseReport(f"{public} and {private}", tuple(problems))


def _read_part(root: Path, private: bool) -> Manifest:
    manifest = read_manifest(root)
    if manifest.holdout is None or manifest.private != private:
        wanted = "private" if private else "public"
        raise ReleaseError(
            f"{root} is not the {wanted} part of a release built with --holdout",
            code="not-a-release",
        )
    return manifest


def _commitment(manifest: Manifest) -> Holdout:
    assert manifest.holdout is not None, "see _read_part"
    return manifest.holdout


def _of(root: Path, problems: Sequence[Problem]) -> Iterator[Problem]:
    for problem in problems:
        yield Problem(f"{root}/{problem.file}", problem.message, problem.row, problem.field)


def _rows(root: Path, manifest: Manifest) -> RowsById:
    try:
        return {
            config.name: {
                record["id"]: ROWS[config.name].model_validate(record)
                for record in iter_records(root, config.name)
            }
            for config in manifest.configs
        }
    except (KeyError, ValueError) as error:
        raise ReleaseError(
            f"{root}: run `counterprior validate` on it first ({error})", code="not-validated"
        ) from None


def _overlaps(public: RowsById, private: RowsById, root: Path) -> Iterator[Problem]:
    for name, rows in private.items():
        for row in sorted(rows.keys() & public.get(name, {}).keys()):
            yield Problem(f"{root}/{name}", "is in the public release too", row)
        if name not in public:
            yield Problem(f"{root}/{name}", "is not a config of the public release")


def _counts(root: Path, manifest: Manifest, other_rows: RowsById) -> Iterator[Problem]:
    for config in manifest.configs:
        actual = len(other_rows.get(config.name, {}))
        if config.elsewhere != actual:
            message = f"says {config.elsewhere}, but the other folder has {actual}"
            yield Problem(f"{root}/{MANIFEST}", message, config.name, "elsewhere")


def _split_again(
    root: Path, sides: tuple[RowsById, RowsById], commitment: Holdout, division: Division
) -> Iterator[Problem]:
    """Differences from the split of all rows under the salt."""
    expected = division.commitment
    if expected.salt_sha256 != commitment.salt_sha256:
        yield Problem(
            f"{root}/{MANIFEST}", "was made with another salt", field="holdout.salt_sha256"
        )
        return
    for rows, private in zip(sides, (False, True), strict=True):
        for name in rows:
            for row in sorted(rows[name]):
                if (row in division.held.get(name, ())) != private:
                    side = "held out" if private else "public"
                    yield Problem(f"{root}/{name}", f"is {side}, but the salt says otherwise", row)
    for field in ("held_out_sha256", "full_hmac"):
        if getattr(expected, field) != getattr(commitment, field):
            message = "does not match the rows of both folders: some are missing, added or edited"
            yield Problem(f"{root}/{MANIFEST}", message, field=f"holdout.{field}")
