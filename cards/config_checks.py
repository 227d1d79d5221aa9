"""What is wrong with the rows of one config of a release: all that needs its rows, read once."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..builders.build_result import ContentReading, PeopleReview, ReviewRound
from ..release import Problem, ReleaseError, iter_records, row_problems
from ..schema import (
    CANARY,
    ROWS,
    Row,
    SeededRow,
    arrow_schema,
    image_columns,
    record_line,
    to_record,
)
from ..storage import collector_paused
from .manifest import MANIFEST, ConfigManifest, counted

Rebuild = Callable[[str, int | None], list[Row] | None]
"""Given a config and its seed, what the bank gives, without seed images; None if nobody knows."""

StatedFacts = Callable[[str, list[Row]], Mapping[str, Any]]
"""Given a config and all its rows, fields of its `ConfigManifest` that the bank decides."""

KeptSeeds = Callable[[Sequence[Mapping[str, Any]]], list[bytes | None]]
"""Given records, what earlier runs drew as the seed image of each, a sample of which is drawn
again; None where nothing is known."""

CheckRows = Callable[[str, list[Row], bool], Iterable[tuple[str, str, str]]]
"""Given a config, its rows and whether they are complete, lists their faults: row id, field and
message."""


# Functions, not lambdas: an `Origin` is sent to other processes.
def _nothing_stated(name: str, rows: list[Row]) -> Mapping[str, Any]:
    return {}


def _nothing_kept(records: Sequence[Mapping[str, Any]]) -> list[bytes | None]:
    return [None] * len(records)


def nothing_drawn() -> str:
    """No text about drawings."""
    return ""


def _not_counted(counts: Any) -> None:
    pass


@dataclass(frozen=True)
class Origin:
    """The bank that a release is compared with."""

    sha256: str
    """Its digest."""
    rebuild: Rebuild
    """Rebuilds the rows of a config from it."""
    as_released: Callable[[Row, str, str], Row]
    """A rebuilt row as it is with seed images from a source, under the license of its config."""
    stated_facts: StatedFacts = _nothing_stated
    """Facts that the manifest states about a config."""
    reviews: tuple[ReviewRound, ...] | None = None
    """Reviews of the bank; None if unknown."""
    readings: tuple[ContentReading, ...] | None = None
    """Readings of the bank's rows; None if unknown."""
    people: Callable[[Collection[str]], PeopleReview | None] | None = None
    """Returns what people said of the rows of some configs; None if unknown."""
    is_addition: Callable[[Row], bool] | None = None
    """Whether a row is of an addition to the bank; None if unknown."""
    drawn: Callable[[], str] = nothing_drawn
    """How the rebuilt images came about."""
    kept_seeds: KeptSeeds = _nothing_kept
    """The drawings that need no decoding if a release has them."""
    draw_beside: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Within its context, another process draws; it gives counts of what it drew."""
    count_drawn: Callable[[Any], None] = _not_counted
    """Adds those counts to what this process drew."""


@dataclass(frozen=True)
class ConfigFaults:
    """What is wrong with a config, by what it is compared with."""

    name: str
    """The config."""
    digest: list[Problem] = field(default_factory=list)
    """With its checksums."""
    images: list[Problem] = field(default_factory=list)
    """Images that can't be decoded, or have another digest than their row says."""
    rows: list[Problem] = field(default_factory=list)
    """With schema, content rules and manifest."""
    bank: list[Problem] = field(default_factory=list)
    """With the rows that the bank gives."""
    is_compared: bool = True
    """Whether the bank gives rows to compare with: not if their seed is secret."""
    kept: int = 0
    """Seed images that are kept drawings, byte by byte: not decoded."""
    drawn: Any = None
    """Counts of what another process drew for it; None for none."""


@dataclass(frozen=True)
class ConfigChecks:
    """How each config of a release is checked. Other processes can do it if they can import the
    functions: they open the bank anew, each the parts that its configs need."""

    root: Path
    """Folder of the release."""
    seed: int | None
    """Seed of its sampled configs; None if it is secret."""
    check_rows: CheckRows
    """The content rules."""
    origin: Origin | None
    """The bank that gives its rows; None if they are not compared."""
    kept_seeds: KeptSeeds | None = None
    """Drawings that need no decoding; None: every seed image is decoded."""
    draw_beside: Callable[[], AbstractContextManager[Any]] = nullcontext
    """See `Origin`."""

    def check(
        self, name: str, config: ConfigManifest | None, entry: Mapping[str, Any] | None
    ) -> ConfigFaults:
        """All that is wrong with a config, whose rows are read once.

        config: what the manifest says of it; entry: what the checksums say of its file. None if
        they don't list it.
        """
        records, lines = list[dict[str, Any]](), list[bytes]()
        unreadable: ReleaseError | None = None
        if name in ROWS:
            try:
                records = list(iter_records(self.root, name))
                lines = [record_line(record) for record in records]
            except ReleaseError as error:
                unreadable = error
            except TypeError as error:  # values that no column of ours has, such as dates
                unreadable = ReleaseError(f"config {name}: {error}", code="wrong-type")
                unreadable.__cause__ = error
        digest = [] if entry is None else row_problems(name, entry, unreadable or records, lines)
        if config is None:
            return ConfigFaults(name, digest)
        images, kept = self._image_problems(config, records)
        rows = list(
            _config_problems(self.root, config, self.check_rows, unreadable or records, lines)
        )
        bank = None if self.origin is None else self._bank_problems(config, records, unreadable)
        return ConfigFaults(name, digest, images, rows, bank or [], bank is not None, kept)

    def _image_problems(
        self, config: ConfigManifest, records: Sequence[dict[str, Any]]
    ) -> tuple[list[Problem], int]:
        """Images that have another digest than their row says, can't be decoded or aren't RGB; and
        how many are kept drawings, which can be.

        Those that the bank gives are compared with it byte by byte, and decoded if they differ.
        """
        if config.name not in ROWS or not image_columns(config.name):
            return [], 0
        decoded = self.origin is None or self.seed is None
        kept: Sequence[bytes | None] = [None] * len(records)
        if issubclass(ROWS[config.name], SeededRow):
            decoded = True  # the bank does not give them
            kept = kept if self.kept_seeds is None else self.kept_seeds(records)
        problems, count = list[Problem](), 0
        for number, (record, kept_image) in enumerate(zip(records, kept, strict=True)):
            is_kept = kept_image is not None and _image_bytes(record) == [kept_image]
            count += is_kept
            label = str(record.get("id") or number)
            problems += (
                Problem(config.file, message, row=label, field=column)
                for column, message in _image_faults(
                    config, record, decoded=decoded and not is_kept
                )
            )
        return problems, count

    def _bank_problems(
        self, config: ConfigManifest, records: list[dict[str, Any]], unreadable: object
    ) -> list[Problem] | None:
        """Where a config is not what the bank gives; None if the bank gives nothing to compare."""
        assert self.origin is not None, "see check"
        expected = self.origin.rebuild(config.name, self.seed)
        if expected is None:
            return None
        problems = list[Problem]()
        for name, right in self.origin.stated_facts(config.name, expected).items():
            if (stated := getattr(config, name)) != right:
                message = f"says {_short(stated)}, the bank gives {_short(right)}"
                problems.append(Problem(MANIFEST, message, row=config.name, field=name))
        if not unreadable:  # which is named by the other checks
            problems += differences(config, records, expected, self.origin)
        return problems


def checked_elsewhere(
    checks: ConfigChecks,
    name: str,
    config: ConfigManifest | None,
    entry: Mapping[str, Any] | None,
) -> ConfigFaults:
    """`ConfigChecks.check` in a process of its own, which draws by itself."""
    with collector_paused(), checks.draw_beside() as counts:
        return replace(checks.check(name, config, entry), drawn=counts)


def unknown_config(name: str) -> Problem:
    """The problem of a release with a config that this package does not know."""
    message = f"config {name!r} is unknown to this version of counterprior"
    return Problem(MANIFEST, message, field="configs")


def _config_problems(
    root: Path,
    config: ConfigManifest,
    check_rows: CheckRows,
    records: Sequence[dict[str, Any]] | ReleaseError,
    lines: Sequence[bytes],
) -> Iterator[Problem]:
    """Where rows are not as schema, content rules and manifest say; `lines` are their
    `record_line`s."""
    if config.name not in ROWS:
        yield unknown_config(config.name)
        return
    import pyarrow.parquet as pq

    if isinstance(records, ReleaseError):
        yield Problem(config.file, f"can't be read: {records.__cause__}")
        return
    schema = pq.read_schema(root / config.file)
    expected = arrow_schema(config.name)
    for name in expected.names:
        if name not in schema.names:
            yield Problem(config.file, "column is missing", field=name)
        elif schema.field(name).type != expected.field(name).type:
            message = f"column is {schema.field(name).type}, not {expected.field(name).type}"
            yield Problem(config.file, message, field=name)
    for name in schema.names:
        if name not in expected.names:
            yield Problem(config.file, "column is unknown", field=name)
    if schema.metadata != expected.metadata:
        yield Problem(config.file, "footer lacks the `datasets` features", field="huggingface")
    images = image_columns(config.name)
    unseen = [  # columns of which a line may not show all
        name
        for name in schema.names
        if name in images
        or name not in expected.names
        or schema.field(name).type != expected.field(name).type
    ]
    rows = []
    for number, (record, line) in enumerate(zip(records, lines, strict=True)):
        label = str(record.get("id") or number)
        try:
            rows.append(ROWS[config.name].model_validate(record))
        except ValidationError as error:
            for detail in error.errors():
                field = ".".join(map(str, detail["loc"])) or "id"
                yield Problem(config.file, detail["msg"], row=label, field=field)
        # Once in its line is in its own column, and in no other.
        is_clean = line.decode().lower().count(CANARY) == 1 and record.get("canary") == CANARY
        if not is_clean or any(_holds_canary(record.get(name)) for name in unseen):
            yield from _canary_problems(config, record, label)
    if rows:
        for row, field, message in check_rows(config.name, rows, not config.elsewhere):
            yield Problem(config.file, message, row=row, field=field)
        yield from _fact_problems(config, rows, len(records))


def differences(
    config: ConfigManifest, released: list[dict[str, Any]], expected: list[Row], origin: Origin
) -> Iterator[Problem]:
    """Where the rows of a config are not those that the bank gives, field by field."""
    drawn = {*image_columns(config.name), "image_sha256"}
    by_id = {row.id: row for row in expected}
    places = {row.id: place for place, row in enumerate(expected)}
    if origin.is_addition is not None:
        kept = [by_id[r["id"]] for r in released if r.get("id") in by_id]
        if config.added != (added := sum(map(origin.is_addition, kept))):
            message = f"says {config.added}, the bank gives {added}"
            yield Problem(MANIFEST, message, row=config.name, field="added")
    last = -1
    for record in released:
        label = str(record.get("id"))
        if label not in by_id:
            yield Problem(config.file, "the bank gives no such row", row=label, field="id")
            for name, message in _undecodable(config, record):
                yield Problem(config.file, message, row=label, field=name)
            continue
        if places[label] < last:
            yield Problem(config.file, "stands in another place than in the build", row=label)
        last = max(last, places[label])
        source = str(record.get("seed_source") or "")
        right = to_record(origin.as_released(by_id[label], source, config.license))
        for name, value in right.items():
            if name not in drawn and record.get(name) != value:
                message = f"is {_short(record.get(name))}, the bank gives {_short(value)}"
                yield Problem(config.file, message, row=label, field=name)
        other = [
            name
            for name in image_columns(config.name)
            if right[name] and (record.get(name) or {}).get("bytes") != right[name]["bytes"]
        ]
        undecodable = dict(_undecodable(config, record)) if other else {}
        for name in other:
            message = undecodable.get(name, "is not the image that the bank gives")
            if name in undecodable or not _same_image(record.get(name), right[name]):
                yield Problem(config.file, message, row=label, field=name)
    missing = len(expected) - len(released) - config.elsewhere
    if missing:
        yield Problem(config.file, f"lacks {missing} rows that the bank gives", row=config.name)


def _same_image(loaded: Any, expected: dict[str, Any]) -> bool:
    """Whether two encoded images have the same pixels; encoders differ between versions."""
    from ..images import ImageError, opened, pixels_digest

    if not isinstance(loaded, dict) or not isinstance(loaded.get("bytes"), bytes):
        return False
    if loaded["bytes"] == expected["bytes"]:
        return True
    digests = []
    for data in (loaded["bytes"], expected["bytes"]):
        try:
            with opened(io.BytesIO(data)) as image:
                digests.append(pixels_digest(image))
        except ImageError:
            return False
    return digests[0] == digests[1]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _image_bytes(record: Mapping[str, Any]) -> list[bytes]:
    """The encoded images of a record."""
    return [
        value["bytes"] for value in record.values() if isinstance(value, dict) and "bytes" in value
    ]


def _image_faults(
    config: ConfigManifest, record: dict[str, Any], *, decoded: bool
) -> Iterator[tuple[str, str]]:
    for name in image_columns(config.name):
        image = record.get(name)
        if image is None:
            continue
        if hashlib.sha256(image["bytes"]).hexdigest() != record.get("image_sha256"):
            yield "image_sha256", "is not the digest of the image"
    if decoded:
        yield from _undecodable(config, record)


def _undecodable(config: ConfigManifest, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Column of each image of a row that can't be decoded or isn't RGB, and why."""
    from ..images import ImageError, opened

    for name in image_columns(config.name):
        if (image := record.get(name)) is None:
            continue
        try:
            with opened(io.BytesIO(image["bytes"])) as opened_image:
                opened_image.load()
                mode = opened_image.mode
        except ImageError as error:
            yield name, str(error)
        else:
            if mode != "RGB":
                yield name, f"is {mode}, not RGB"


def _canary_problems(
    config: ConfigManifest, record: dict[str, Any], label: str
) -> Iterator[Problem]:
    """The canary is in its own column, unchanged, and in no other."""
    if record.get("canary") != CANARY:
        yield Problem(config.file, f"must be {CANARY}", row=label, field="canary")
    for name, value in record.items():
        if name != "canary" and _holds_canary(value):
            yield Problem(config.file, "holds the canary; remove it", row=label, field=name)


def _holds_canary(value: Any) -> bool:
    """Whether the canary is in a text, at any depth and in any letter case."""
    if isinstance(value, str):
        return CANARY in value.lower()
    if isinstance(value, dict):
        return any(map(_holds_canary, value.values()))
    return isinstance(value, list) and any(map(_holds_canary, value))


def _fact_problems(config: ConfigManifest, rows: list[Row], count: int) -> Iterator[Problem]:
    """Where the manifest and the rows disagree."""
    planned = config.planned - config.elsewhere
    manifest = counted(rows, planned, config.breakdown, config.composition)
    manifest["rows"] = count
    for name, value in manifest.items():
        if getattr(config, name) != value:
            message = f"says {getattr(config, name)}, but the rows give {value}"
            yield Problem(MANIFEST, message, row=config.name, field=name)
