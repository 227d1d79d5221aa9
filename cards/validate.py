"""Is a release folder what it says it is? Every problem names file, row and field."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import metadata, util
from itertools import zip_longest
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from pydantic import ValidationError

from ..builders.build_result import ContentReading, PeopleReview, ReviewRound
from ..cpus import spawned
from ..extras import install_command
from ..progress import Progress, silent
from ..release import (
    CHECKSUMS,
    UNVOUCHED,
    Problem,
    ReleaseError,
    iter_records,
    read_checksums,
    refuse_pipes,
    verify,
    verify_files,
)
from ..schema import CANARY, ROWS, Row, SeededRow, arrow_schema, image_columns, to_record
from .croissant_records import record_problems
from .documents import render_documents
from .manifest import MANIFEST, ConfigManifest, Manifest, counted, read_manifest, readings_of

LARGE = 20_000_000
"""Bytes of rows from which on several processes check a release sooner than one."""
P = ParamSpec("P")
T = TypeVar("T")

Rebuild = Callable[[str, int | None], list[Row] | None]
"""Given a config and its seed, what the bank gives, without seed images; None if nobody knows."""

StatedFacts = Callable[[str, list[Row]], Mapping[str, Any]]
"""Given a config and all its rows, fields of its `ConfigManifest` that the bank decides."""

CheckRows = Callable[[str, list[Row], bool], Iterable[tuple[str, str, str]]]
"""Given a config, its rows and whether they are complete, lists their faults: row id, field and
message."""


@dataclass(frozen=True)
class ReleaseReport:
    """Problems of a release, and the checks that were skipped."""

    checked: str
    """Folder or repository."""
    problems: tuple[Problem, ...]
    """Empty if the release is valid."""
    notes: tuple[str, ...] = ()
    """Checks that were skipped, and why."""
    compared: str = ""
    """With which bank the rows were compared; empty for none."""
    anchor: str | None = None
    """What outside the release says the same; empty if nothing does, None if nobody looked."""
    sha256: str = ""
    """Digest of the release; empty if nobody looked."""

    def text(self) -> str:
        """One line per problem and note, then the result."""
        lines = [*map(str, self.problems), *(f"note: {note}" for note in self.notes)]
        sound = f"self-consistent, but {UNVOUCHED}" if self.anchor == "" else "valid"
        result = f"{len(self.problems)} problems" if self.problems else sound
        if self.anchor:
            result += f"; {self.anchor}"
        if self.sha256:
            result += f"; sha256 {self.sha256}"
        if self.compared:
            result += f"; {self.compared}"
        return "\n".join([*lines, f"{self.checked}: {result}"])

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(asdict(self), indent=1)


@dataclass(frozen=True)
class Origin:
    """The bank that a release is compared with."""

    sha256: str
    """Its digest."""
    rebuild: Rebuild
    """Rebuilds the rows of a config from it."""
    as_released: Callable[[Row, str, str], Row]
    """A rebuilt row as it is with seed images from a source, under the license of its config."""
    stated_facts: StatedFacts = lambda name, rows: {}
    """Facts that the manifest states about a config."""
    reviews: tuple[ReviewRound, ...] | None = None
    """Reviews of the bank; None if unknown."""
    readings: tuple[ContentReading, ...] | None = None
    """Readings of the bank's rows; None if unknown."""
    people: Callable[[Collection[str]], PeopleReview | None] | None = None
    """Returns what people said of the rows of some configs; None if unknown."""
    is_addition: Callable[[Row], bool] | None = None
    """Whether a row is of an addition to the bank; None if unknown."""
    drawn: Callable[[], str] = lambda: ""
    """How the rebuilt images came about."""


def validate(
    root: Path,
    check_rows: CheckRows,
    origin: Origin | None = None,
    progress: Progress = silent,
    *,
    quick: bool = False,
    every: bool = False,
    jobs: int = 1,
) -> ReleaseReport:
    """Everything that is wrong with a release folder.

    `check_rows` applies the content rules, which belong to the builders. `origin` is the bank: its
    rows are built again and compared field by field. `quick` skips what takes minutes, which is
    every comparison row by row, but says what could not be checked. `every`: Croissant reads all
    rows, not a sample. With several `jobs`, what needs no bank is checked in processes of its own.
    Raises ReleaseError if `root` has no readable manifest or checksums.
    """
    refuse_pipes(root)
    manifest = read_manifest(root)
    if not _is_large(manifest) or quick:
        jobs = 1  # other processes would start in vain
    skipped = "" if origin is None else not_comparable(manifest, origin)
    # Whether the bank's own drawings are compared, byte by byte: equal ones need no decoding.
    drawn_again = origin is not None and not skipped and manifest.seed is not None
    with _beside(jobs - 1) as later:
        integral = later(
            integrity, root, manifest, progress if jobs == 1 else silent, quick=quick, every=every
        )
        pictured = [
            later(_image_problems, root, config, decoded=not drawn_again or _seeded(config))
            for config in (() if quick else manifest.configs)
            if config.name in ROWS and image_columns(config.name)
        ]
        row_problems, compared = list[Problem](), ""
        if not quick:
            for config in _each("rows", manifest, progress):
                row_problems += _config_problems(root, config, check_rows)
            if origin is not None and not skipped:
                origin_faults, compared = origin_problems(root, manifest, origin, progress)
                row_problems += origin_faults
        problems, notes = integral()
        problems += [problem for result in pictured for problem in result()]
    if (root / ".gitattributes").exists():
        message = "is the Hub's own file and would change how it stores the others: remove it"
        problems.append(Problem(".gitattributes", message))
    for config in manifest.configs:
        if config.elsewhere and manifest.holdout is None:
            message = f"says {config.elsewhere}, but without a hold-out all rows are here"
            problems.append(Problem(MANIFEST, message, config.name, "elsewhere"))
    if skipped:
        notes.append(skipped)
    return ReleaseReport(str(root), (*problems, *row_problems), tuple(notes), compared)


def _is_large(manifest: Manifest) -> bool:
    return sum(config.bytes for config in manifest.configs) > LARGE


class _Later(Protocol):
    """Calls a function of this module, perhaps in another process; what it returns gives the
    result, or raises what the function raised."""

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> Callable[[], T]: ...


@contextmanager
def _beside(processes: int) -> Iterator[_Later]:
    """Calls in so many other processes; without any, at once."""
    if not processes:

        def at_once(
            function: Callable[P, T], /, *args: P.args, **options: P.kwargs
        ) -> Callable[[], T]:
            result = function(*args, **options)
            return lambda: result

        yield at_once
        return
    pool = spawned(processes)

    def beside(function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Callable[[], T]:
        return pool.submit(function, *args, **options).result

    try:
        yield beside
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt waits for nothing
        raise
    pool.shutdown()


def _each(stage: str, manifest: Manifest, progress: Progress) -> Iterator[ConfigManifest]:
    """The configs one by one, with their number reported as the progress of a stage."""
    count = len(manifest.configs)
    for number, config in enumerate(manifest.configs):
        progress(stage, number, count)
        yield config
    progress(stage, count, count)


def integrity(
    root: Path,
    manifest: Manifest,
    progress: Progress = silent,
    *,
    quick: bool = False,
    every: bool = False,
) -> tuple[list[Problem], list[str]]:
    """Whether bytes, rows, checksums, manifest, documents and Croissant agree.

    Returns what is wrong and what could not be checked. `quick` reads no row; `every`: Croissant
    reads all, not a sample.
    """
    problems = verify_files(root) if quick else verify(root)
    notes = []
    problems += _checksum_problems(root, manifest)
    made_with = manifest.made_with["counterprior"]
    if made_with == metadata.version("counterprior"):
        problems += _document_problems(root, manifest)
    else:
        notes.append(f"documents not compared: counterprior {made_with} rendered them")
    if util.find_spec("mlcroissant") is None:
        notes.append(f"Croissant records not iterated: {install_command('croissant')}")
    elif not quick:
        problems += record_problems(root, manifest, progress, every=every)
    return problems, notes


def _config_problems(
    root: Path, config: ConfigManifest, check_rows: CheckRows
) -> Iterator[Problem]:
    if config.name not in ROWS:
        yield Problem(
            MANIFEST,
            f"config {config.name!r} is unknown to this version of counterprior",
            field="configs",
        )
        return
    import pyarrow.parquet as pq

    try:
        records = list(iter_records(root, config.name))
    except ReleaseError as error:
        yield Problem(config.file, f"can't be read: {error.__cause__}")
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
    rows = []
    for number, record in enumerate(records):
        label = str(record.get("id") or number)
        try:
            rows.append(ROWS[config.name].model_validate(record))
        except ValidationError as error:
            for detail in error.errors():
                field = ".".join(map(str, detail["loc"])) or "id"
                yield Problem(config.file, detail["msg"], row=label, field=field)
        yield from _canary_problems(config, record, label)
    if rows:
        for row, field, message in check_rows(config.name, rows, not config.elsewhere):
            yield Problem(config.file, message, row=row, field=field)
        yield from _fact_problems(config, rows, len(records))


def not_comparable(manifest: Manifest, origin: Origin) -> str:
    """Why rows can't be compared with a bank; empty if they can."""
    bank = f"bank {manifest.bank_sha256[:12]}"
    if origin.sha256 != manifest.bank_sha256:
        return f"rows not compared with the {bank} that they are of; give it with --bank"
    made_with = manifest.made_with["counterprior"]
    if made_with != metadata.version("counterprior"):
        return f"rows not compared with their {bank}: counterprior {made_with} built them"
    return ""


def origin_problems(
    root: Path, manifest: Manifest, origin: Origin, progress: Progress = silent
) -> tuple[list[Problem], str]:
    """Where rows are not those that the bank gives, and what was compared with what."""
    problems: list[Problem] = []
    skipped = []
    if origin.reviews is not None and manifest.reviews != list(origin.reviews):
        problems.append(Problem(MANIFEST, "are not those of the bank", field="reviews"))
    names = [config.name for config in manifest.configs]
    if origin.readings is not None and manifest.readings != readings_of(origin.readings, names):
        problems.append(Problem(MANIFEST, "are not those of the bank", field="readings"))
    if origin.people is not None and manifest.people != origin.people(names):
        problems.append(Problem(MANIFEST, "is not that of the bank", field="people"))
    for config in _each("rows by the bank", manifest, progress):
        expected = origin.rebuild(config.name, manifest.seed)
        if expected is None:
            skipped.append(config.name)
            continue
        for name, right in origin.stated_facts(config.name, expected).items():
            if (stated := getattr(config, name)) != right:
                message = f"says {_short(stated)}, the bank gives {_short(right)}"
                problems.append(Problem(MANIFEST, message, row=config.name, field=name))
        with suppress(ReleaseError):  # named elsewhere
            released = list(iter_records(root, config.name))
            problems += differences(config, released, expected, origin)
    without = f" (not {', '.join(skipped)}: their seed is secret)" if skipped else ""
    return (
        problems,
        f"rows compared with bank {manifest.bank_sha256[:12]}{without}, seed images not"
        f"{origin.drawn()}",
    )


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


def _seeded(config: ConfigManifest) -> bool:
    """Whether a generator drew the images of a config, so that the bank does not give them."""
    return issubclass(ROWS[config.name], SeededRow)


def _image_problems(root: Path, config: ConfigManifest, *, decoded: bool) -> list[Problem]:
    """Images of a config's rows that have another digest than the row says and, if they are
    `decoded`, can't be, or aren't RGB; none for a file that can't be read, which is named
    elsewhere."""
    problems = list[Problem]()
    with suppress(ReleaseError):
        for number, record in enumerate(iter_records(root, config.name)):
            label = str(record.get("id") or number)
            problems += (
                Problem(config.file, message, row=label, field=field)
                for field, message in _image_faults(config, record, decoded=decoded)
            )
    return problems


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


def _checksum_problems(root: Path, manifest: Manifest) -> Iterator[Problem]:
    checksums = read_checksums(root)
    if checksums.get("version") != manifest.version:
        yield Problem(CHECKSUMS, f"is of version {checksums.get('version')}", field="version")
    for config in manifest.configs:
        entry = checksums["files"].get(config.file, {})
        for name in ("sha256", "bytes", "rows", "rows_sha256", "added"):
            stated = entry.get(name, 0 if name == "added" else None)
            if stated != getattr(config, name):
                message = f"says {stated}, but {MANIFEST} says {getattr(config, name)}"
                yield Problem(CHECKSUMS, message, row=config.file, field=name)


def _document_problems(root: Path, manifest: Manifest) -> Iterator[Problem]:
    """The first line of each document that differs from what the manifest renders."""
    for name, expected in render_documents(manifest).items():
        try:
            text = (root / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            yield Problem(name, f"can't be read: {error}")
            continue
        lines = zip_longest(text.splitlines(), expected.splitlines())
        for number, (line, rendered) in enumerate(lines, 1):
            if line != rendered:
                message = f"says {_cut(line)}, but {MANIFEST} renders {_cut(rendered)}"
                yield Problem(name, message, field=f"line {number}")
                break


def _cut(line: str | None) -> str:
    """A line as errors quote it; `nothing` for a missing one."""
    if line is None:
        return "nothing"
    return repr(line if len(line) <= 100 else line[:100] + "...")
