"""Rows of a config, from a release folder or the Hub, with the digest that says which rows."""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ...errors import DataError, UsageError
from ...release import (
    ReleaseError,
    fetch_checksums,
    iter_records,
    load,
    means_folder,
    no_release,
    parquet_path,
    published_file,
    warn_if_unknown,
)
from ...schema import ROWS, Entity, Row, image_columns, rows_digest
from ..core import Case
from ..store.spool import ChosenRows, SpooledRows
from ..suites import SUITES


class Rows(NamedTuple):
    """The scored rows of one config."""

    rows: Sequence[Row]
    """In the order of the release, retired ones left out."""
    digest: str
    """Logical digest of the whole config."""
    commit: str = ""
    """Commit of the repository that they came from; empty for a folder or file."""
    added: int = 0
    """How many of them, the last ones, the release has in addition to its frozen rows (v1)."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rows:
        """Rows that are in no release."""
        return cls(rows, rows_digest([row.model_dump() for row in rows]))

    @property
    def added_ids(self) -> frozenset[str]:
        """Ids of the rows that were added to the frozen ones."""
        total = len(self.rows)
        return frozenset(self.rows[number].id for number in range(total - self.added, total))


_log = logging.getLogger(__name__)

HELD = 5_000
"""Rows of a config up to which they stay in memory, 1.4 kB each."""
SMALL = 1_000_000
"""Bytes of a config's file up to which its rows are kept for whoever reads them next."""
AT_PLACES = "?places=true"
"""Ending of a release whose prompts are to name a place."""
RELEASE, FROZEN, ADDED = "release", "v1", "added"
"""Field by which the rows that a release began with are chosen, and those that it has since."""
_HIDDEN = {"canary", "license", "provenance", "review", "seed_image", "image", "status"}


def row_fields(row: Row) -> dict[str, str]:
    """Fields of a row as text, by name: `object_a`, `relation`, `left`, ...

    An entity is its name under the field's own name, and has its attributes beside it (`left_kind`,
    `left_look`). Lists and questions are JSON; what is not there is empty.
    """
    texts: dict[str, str] = {}
    for name, value in row:
        if name in _HIDDEN:
            continue
        if isinstance(value, Entity):
            texts[name] = value.name
            texts |= {
                f"{name}_{attribute}": text for attribute, text in value if attribute != "name"
            }
        elif isinstance(value, BaseModel | list | tuple):
            texts[name] = json.dumps(value, default=dict, ensure_ascii=False)
        else:
            texts[name] = "" if value is None else str(value)
    return texts


def read_rows(data: str, config: str, revision: str | None = None) -> Rows:
    """The rows of a release folder or a dataset repository, checked against its checksums.

    `data` may end in ``@TAG`` for a repository, or be a file of the user's own that the suite
    reads. With `AT_PLACES` behind it, its scenes are at places, if the suite knows any.

    Raises ReleaseError where there is no such release or config, or the rows are not those that it
    published, and UsageError for a suite that knows no places.
    """
    if data.endswith(AT_PLACES):
        plain = read_rows(data.removesuffix(AT_PLACES), config, revision)
        placed = Rows.of([SUITES[config].at_place(row) for row in plain.rows])
        return placed._replace(commit=plain.commit, added=plain.added)
    root, commit = Path(data), ""
    file_rows = SUITES[config].read_file(data) if config in SUITES else None
    if file_rows is not None:
        if not file_rows:
            raise UsageError(f"{data}: no rows: write one a line", code="nothing-to-do")
        return Rows.of(file_rows)
    if root.is_dir():
        expected = published_file(root, config, data)
        rows, digest = _rows_of_folder(root, config, data)
        if digest != expected.get("rows_sha256"):
            raise ReleaseError(
                f"{data}, {config}: rows differ from the release's checksums", code="changed-file"
            )
        warn_if_unknown(data, config, digest)
    elif means_folder(data):
        raise UsageError(f"{no_release(data)}: `--data NAMESPACE/NAME@vX.Y.Z`", code="no-such-file")
    else:
        repo, tag = release_at(data, revision)
        fetched, commit = fetch_checksums(repo, tag)
        expected = published_file(fetched, config, data)
        rows, digest = _rows_of(_from_hub(repo, config, commit), config, data)
    numbers = [number for number, row in enumerate(rows) if row.status != "retired"]
    active = ChosenRows(rows, numbers)
    if not active:
        why = f"all of its {len(rows):,} rows are retired" if rows else "it has no rows"
        raise ReleaseError(
            f"{data}, {config}: nothing to draw: {why}; name another release or version",
            code="nothing-to-do",
        )
    frozen = len(rows) - int(expected.get("added", 0))
    return Rows(active, digest, commit, sum(number >= frozen for number in numbers))


def release_at(data: str, revision: str | None = None) -> tuple[str, str | None]:
    """The folder or repository of a release, and its tag or commit, None for a folder and the
    newest commit. An `@` in the path of a folder names no tag, and places are left out.

    >>> release_at("counterprior/counterprior@v1.0.0")
    ('counterprior/counterprior', 'v1.0.0')
    """
    data = data.removesuffix(AT_PLACES)
    if Path(data).is_dir():
        return data, revision
    repo, _, tag = data.partition("@")
    return repo, revision or tag or None


def _rows_of_folder(root: Path, config: str, data: str) -> tuple[Sequence[Row], str]:
    """As `_rows_of`. Of a small file they are kept while it is the same, as the steps of a study
    read what those before them did."""
    path = root / parquet_path(config)
    if image_columns(config) or not path.is_file():
        return _rows_of(iter_records(root, config), config, data)
    file = path.stat()
    if file.st_size > SMALL:
        return _rows_of(iter_records(root, config), config, data)
    as_it_is = (file.st_dev, file.st_ino, file.st_mtime_ns, file.st_size)
    return _kept_rows(root, config, data, as_it_is)


@lru_cache(maxsize=4)
def _kept_rows(
    root: Path, config: str, data: str, as_it_is: tuple[int, ...]
) -> tuple[Sequence[Row], str]:
    return _rows_of(iter_records(root, config), config, data)


def _rows_of(
    records: Iterator[dict[str, Any]], config: str, data: str
) -> tuple[Sequence[Row], str]:
    """The rows and their digest. Few rows without images are held, as reading them anew takes time;
    others lie in a file. Raises ReleaseError for a row that does not fit."""

    def read(record: dict[str, Any]) -> Row:
        try:
            return ROWS[config].model_validate(record)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "the row"
            raise ReleaseError(
                f"{data}, {config}, row {str(record.get('id'))[:80]!r}: {field}: "
                f"{first['msg'][:160]}: the release was changed; build it or download it again",
                code="changed-file",
            ) from None

    records = _each_once(records, config, data)
    if not image_columns(config):
        few = list(islice(records, HELD + 1))
        if len(few) <= HELD:
            return [read(record) for record in few], rows_digest(few)
        records = chain(few, records)
    spooled = SpooledRows(records, read)
    return spooled, spooled.digest()


def _each_once(
    records: Iterable[dict[str, Any]], config: str, data: str
) -> Iterator[dict[str, Any]]:
    """The records. Raises ReleaseError for an id that an earlier one has: it would be drawn
    twice and counted once."""
    ids = set[Any]()
    for number, record in enumerate(records, 1):
        name = record.get("id")
        if name in ids:
            raise ReleaseError(
                f"{data}, {config}, row {number}: id: {str(name)[:80]!r} is there twice: the "
                f"release was changed; build it or download it again",
                code="changed-file",
            )
        ids.add(name)
        yield record


def _from_hub(repo: str, config: str, commit: str) -> Iterator[dict[str, Any]]:
    import datasets

    dataset = load(repo, config, revision=commit)
    for column in image_columns(config):
        dataset = dataset.cast_column(column, datasets.Image(decode=False))
    yield from dataset


def sample_rows(
    rows: Sequence[Row], limit: int | None, together: Callable[[Row], str]
) -> Sequence[Row]:
    """At most `limit` rows spread over the config, the same ones always; all where None.

    Rows that are scored together stay together. At least one such group is taken, and as many as
    fit. Logs how many rows these are where they are not `limit`.
    """
    if limit is None or limit >= len(rows):
        return rows
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(together(row), []).append(number)
    count = max(1, limit // max(map(len, groups.values())))
    rng = random.Random(0)
    chosen = rng.sample(list(groups), min(count, len(groups)))
    taken = sum(len(groups[name]) for name in chosen)
    others = sorted(groups.keys() - set(chosen))
    rng.shuffle(others)
    for name in others:  # where groups differ in size, more of them fit
        if taken + len(groups[name]) <= limit:
            chosen.append(name)
            taken += len(groups[name])
    if taken != limit:
        _log.warning(
            "--limit %s: %s rows, because rows that are scored together stay together",
            f"{limit:,}",
            f"{taken:,}",
        )
    return ChosenRows(rows, sorted(number for name in chosen for number in groups[name]))


class RowChoice(NamedTuple):
    """The rows and prompts that a user names: ``FIELD=VALUE``, or a file of ids."""

    file: Path | None
    """Lists ids; None for all prompts of the rows."""
    fields: Mapping[str, frozenset[str]]
    """Field of a row -> the texts that it may have, as `row_fields` gives them; with `!` behind the
    field, those that it may not have. All must fit."""
    asked: tuple[str, str] = ("--where", "--ids")
    """Where the user names fields, and a file, as messages begin."""

    @classmethod
    def of(
        cls, texts: Sequence[str] | None, asked: tuple[str, str] = ("--where", "--ids")
    ) -> RowChoice:
        """Reads what was asked for; several values of a field stand between commas. Raises
        UsageError for two files, and for a field that is to have each of two texts."""
        file, fields = None, dict[str, frozenset[str]]()
        for text in texts or ():
            name, equals, values = text.partition("=")
            if equals and not Path(text).exists():  # `domain!=maps` is the field `domain!`
                if name in fields and not name.endswith("!"):
                    raise UsageError(
                        f"{asked[0]} {text}: {name} is chosen twice: write {name}=VALUE,VALUE for "
                        f"rows that have any of them",
                        code="conflicting-options",
                    )
                wanted = frozenset((values, *values.split(",")))
                fields[name] = fields.get(name, frozenset()) | wanted
            elif file is not None:
                raise UsageError(
                    f"{file} and {text}: give one file of ids", code="conflicting-options"
                )
            else:
                file = Path(text)
        return cls(file, fields, asked)

    @property
    def name(self) -> str:
        """What was chosen, as runs record it; empty for all."""
        parts = [f"{name}={','.join(sorted(texts))}" for name, texts in self.fields.items()]
        if self.file is not None:
            ids = " ".join(sorted(read_only(self.file, self.asked[1])))
            parts.append(hashlib.sha256(ids.encode()).hexdigest()[:12])
        return " ".join(["only", *sorted(parts)]) if parts else ""

    def rows(self, listed: Rows) -> Sequence[Row]:
        """The rows whose fields fit; `RELEASE` is a field of every row. Raises UsageError for an
        unknown field, and where none fits; it names the fields or texts that there are."""
        where, rows, added = self.asked[0], listed.rows, listed.added_ids
        for choice, wanted in self.fields.items():
            name, negated = choice.removesuffix("!"), choice.endswith("!")
            known = [*(known for known in row_fields(rows[0]) if known != "seeds"), RELEASE]
            if name not in known:
                raise UsageError(
                    f"{where} {choice}=: a row of {rows[0].suite} has no such field: choose from "
                    f"{', '.join(known)}",
                    code="unknown-name",
                )
            texts = (
                [ADDED if row.id in added else FROZEN for row in rows]
                if name == RELEASE
                else [row_fields(row).get(name, "") for row in rows]
            )
            numbers = [number for number, text in enumerate(texts) if (text in wanted) != negated]
            if not numbers:
                there = [repr(text) for text in sorted(set(texts))]
                more = f" and {len(there) - 12:,} more" if len(there) > 12 else ""
                has = "has another text than" if negated else "has"
                raise UsageError(
                    f"{where} {choice}=: no row {has} {' or '.join(map(repr, sorted(wanted)))}: "
                    f"choose from {', '.join(there[:12])}{more}",
                    code="nothing-to-do",
                )
            rows = ChosenRows(rows, numbers)
        return rows


def read_only(path: Path, asked: str = "--ids") -> frozenset[str]:
    """Ids of prompts (row and variant) or cases, one a line, e.g. of a short form.

    asked: where the user names the file, as messages begin. Raises DataError for a file that can't
    be read, and for an empty one.
    """
    try:
        ids = frozenset(path.read_text("utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        code = "no-such-file" if isinstance(error, FileNotFoundError) else "unreadable-file"
        raise DataError(f"{asked} {path}: {reason}", code=code) from None
    if not ids:
        raise DataError(f"{asked} {path}: no id: write one a line", code="nothing-to-do")
    return ids


def only_cases(
    path: Path, limit: int | None, cases: Iterable[Case], asked: str = "--ids"
) -> list[Case]:
    """The cases whose ids, or those of their prompts, a file lists.

    asked: where the user names the file, as messages begin. Raises UsageError for ids that no case
    has, and for a sample of rows besides.
    """
    if limit is not None:
        raise UsageError(
            f"{asked} names the prompts: leave out --limit", code="conflicting-options"
        )
    ids = read_only(path, asked)
    chosen = [case for case in cases if case.item in ids or case.id in ids]
    unknown = sorted(ids - {case.item for case in chosen} - {case.id for case in chosen})
    if unknown:
        raise UsageError(
            f"{asked} {path}: {len(unknown):,} of {len(ids):,} ids are of no prompt, the first "
            f"{unknown[0]!r}",
            "take a list of the same suite and release",
            code="unknown-reference",
        )
    return chosen


def random_rank(cluster: str) -> tuple[str, str]:
    """Place of a cluster in the random order, the same always: by a digest of its name."""
    return hashlib.sha256(f"order {cluster}".encode()).hexdigest(), cluster


def in_random_order(rows: Sequence[Row], cluster_of: Callable[[Row], str]) -> Sequence[Row]:
    """The rows, those of a cluster together, clusters in random order."""
    ranks = [(*random_rank(cluster_of(row)), number) for number, row in enumerate(rows)]
    return ChosenRows(rows, (number for *_, number in sorted(ranks)))
