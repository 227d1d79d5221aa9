"""The hold-out: a salted share of every config's rows that stays out of the public release.

Rows that share content stay together, even across configs: the HMAC-SHA256 of what they share,
keyed by the maintainer's salt, decides for all of them. So the same salt gives the same hold-out
whatever else is built, a larger share holds out a superset, and an id says nothing to anyone
without the salt. Everything depends on the salt: it is read from a file and written nowhere.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError
from ..schema import Row, canonical, row_digest, rows_digest, to_record
from .build_result import Build, BuiltConfig, Division, Holdout
from .suite import Group
from .suites import SUITES

SMALLEST_SALT = 16
"""Bytes."""

MAKE_SALT = 'python -c "import secrets; print(secrets.token_hex(32))" > holdout.salt'

REBUILDABLE = (
    "note: anybody can rebuild the held-out rows from the shipped bank; a hold-out is secret only "
    "with a --bank (or, for sampled suites, a large --seed) of your own: docs/release.md"
)
"""Shown to anyone who builds a hold-out from the shipped bank."""

_BANK_GROUPS = {"t2i_correctness": "pair", "counterfactual": "scene"}
"""Kind of the group of a bank entry, in the configs that have errata."""


@dataclass(frozen=True)
class Secret:
    """Share and salt that decide which rows are held out."""

    fraction: float
    """Share of the groups, above 0 and below 1."""
    salt: bytes = field(repr=False)
    """At least `SMALLEST_SALT` bytes that only the maintainer has."""

    def __post_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise UsageError(
                f"--holdout {self.fraction}: must be a share above 0 and below 1",
                code="out-of-range",
            )

    def holds(self, group: Group) -> bool:
        """Whether the rows of a group are held out."""
        drawn = int.from_bytes(_keyed(self.salt, "group", canonical(group)))
        return drawn < self.fraction * 2**256

    def takes(self, row: Row) -> bool:
        """Whether a row is held out."""
        group = SUITES[row.suite].group
        return group is not None and self.holds(group(row))


def read_salt(path: Path) -> bytes:
    """The salt in a file, without the white space around it. Errors never show it.

    Raises UsageError if there is no file, or it holds fewer than `SMALLEST_SALT` bytes.
    """
    try:
        salt = path.read_bytes().strip()
    except OSError as error:
        reason = error.strerror
        raise UsageError(
            f"--salt-file {path}: {reason}; make one with `{MAKE_SALT}`", code="unreadable-file"
        ) from None
    if len(salt) < SMALLEST_SALT:
        raise UsageError(
            f"--salt-file {path}: holds {len(salt)} bytes, a salt that can't be guessed has at "
            f"least {SMALLEST_SALT}; make one with `{MAKE_SALT}`",
            code="out-of-range",
        )
    return salt


def read_secret(
    fraction: float | None, salt_file: Path | None, out: Path, holdout_out: Path | None
) -> tuple[Secret | None, tuple[Path, ...]]:
    """The secret of a build and the folders it writes, the public one first.

    Raises UsageError for options that don't go together, for a salt that `read_salt` rejects or
    that would be lost, and for a private folder that would be published with the public one.
    """
    if fraction is None or salt_file is None:
        if (fraction, salt_file, holdout_out) != (None, None, None):
            together = "--holdout FRACTION and --salt-file FILE go together"
            raise UsageError(
                f"{together}; make a salt with `{MAKE_SALT}`", code="conflicting-options"
            )
        return None, (out,)
    outs = out, holdout_out or out.with_name(f"{out.name}-holdout")
    public, private = (path.resolve() for path in outs)
    if public == private or public in private.parents or private in public.parents:
        raise UsageError(
            f"--holdout-out {outs[1]}: must lie outside {out}, which is published",
            code="would-overwrite",
        )
    if {public, private} & set(salt_file.resolve().parents):
        raise UsageError(
            f"--salt-file {salt_file}: lies in a folder that is written anew; move it",
            code="would-overwrite",
        )
    return Secret(fraction, read_salt(salt_file)), outs


def divider(salt: bytes) -> Callable[[Mapping[str, Sequence[Row]], float], Division]:
    """Returns `divide` under a salt, as a function of rows and fraction."""
    return lambda rows, fraction: divide(rows, Secret(fraction, salt))


def divide(rows: Mapping[str, Sequence[Row]], secret: Secret) -> Division:
    """Divides the rows of a full build, and commits to that choice."""
    held = {name: [row for row in some if secret.takes(row)] for name, some in rows.items()}
    records = [to_record(row) for some in held.values() for row in some]
    digests = sorted(_keyed(secret.salt, "row", row_digest(r).encode()) for r in records)
    full = {name: rows_digest(map(to_record, some)) for name, some in sorted(rows.items())}
    return Division(
        held={name: frozenset(row.id for row in some) for name, some in held.items()},
        commitment=Holdout(
            fraction=secret.fraction,
            salt_sha256=hashlib.sha256(b"counterprior hold-out salt\0" + secret.salt).hexdigest(),
            held_out_sha256=hashlib.sha256(b"".join(digests)).hexdigest(),
            full_hmac=_keyed(secret.salt, "full", canonical(full)).hex(),
        ),
    )


def _keyed(salt: bytes, purpose: str, message: bytes) -> bytes:
    """Returns an HMAC-SHA256; `purpose` keeps the uses of the salt apart."""
    return hmac.digest(salt, f"counterprior hold-out {purpose}\0".encode() + message, "sha256")


def split(build: Build, secret: Secret | None) -> tuple[Build, ...]:
    """The public and the private part of a full build; without a secret the build alone.

    Raises UsageError if a config would lose all of its rows, or nothing is held out.
    """
    if secret is None:
        return (build,)
    division = divide({config.name: config.rows for config in build.configs}, secret)
    entries = _held_entries(build, secret)
    if not any(division.held.values()):
        raise UsageError(
            f"--holdout {secret.fraction}: holds out no row; choose a larger share",
            code="too-few-items",
        )
    public = replace(
        build,
        configs=tuple(_part(c, division.held[c.name], private=False) for c in build.configs),
        # The seed, with a bank, rebuilds what is held out.
        seed=None,
        errata=tuple(e for e in build.errata if (e.config, e.entry) not in entries),
        holdout=division.commitment,
    )
    if empty := [config.name for config in public.configs if not config.rows]:
        raise UsageError(
            f"--holdout {secret.fraction}: leaves no row of {empty[0]}; choose a smaller share",
            code="too-few-items",
        )
    private = replace(
        build,
        configs=tuple(
            _part(c, division.held[c.name], private=True)
            for c in build.configs
            if division.held[c.name]
        ),
        errata=tuple(e for e in build.errata if (e.config, e.entry) in entries),
        holdout=division.commitment.model_copy(update={"private": True}),
    )
    return public, private


def _part(config: BuiltConfig, held: frozenset[str], private: bool) -> BuiltConfig:
    rows = [row for row in config.rows if (row.id in held) == private]
    added = config.rows[len(config.rows) - config.added :]
    return replace(
        config,
        rows=rows,
        elsewhere=len(config.rows) - len(rows),
        added=sum((row.id in held) == private for row in added),
    )


def _held_entries(build: Build, secret: Secret) -> set[tuple[str, str]]:
    """Config and entry of the errata on the private side: that of the entry's row; by the entry
    itself where it has none, as a retired one."""
    groups: dict[tuple[str, str], Group] = {}
    for config in build.configs:
        for row in config.rows:
            if (group := SUITES[row.suite].group) is not None:
                groups[config.name, row.provenance.entry] = group(row)
    return {
        (e.config, e.entry)
        for e in build.errata
        if secret.holds(groups.get((e.config, e.entry), (_BANK_GROUPS[e.config], e.entry)))
    }
