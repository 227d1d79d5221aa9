"""A publication: images, verdicts and scores of evaluations as one dataset, and how to read it.

README.md           the card, rendered from publication.json
publication.json    what it holds: runs, generators, judges with their cards, headline scores
checksums.json      SHA-256 of every file, as in a release
study.yaml          the study file, where there was one
images/             every case with its embedded image, clip or text, or why there is none
verdicts/           every verdict that the scores stand on
scores/             every score
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ...errors import UsageError
from ...release import CHECKSUMS, Change, ReleaseError, fetch_checksums, read_checksums, sha256_file
from ...schema import SPLIT, Struct
from ...storage import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

PUBLICATION = "publication.json"
STUDY = "study.yaml"
FORMAT = 1
"""Version of the layout; others are refused."""
HOLDOUT = "holdout"
"""Key of a run's `release` where its rows are the secret part of a hold-out."""
UNSHIPPED = "0.0.0"
"""Version of a publication that was never pushed."""

Column = Literal["string", "int64", "float64", "bool", "list", "image", "video"]
"""Type of a column; a `list` is of strings."""

RUN_COLUMNS: dict[str, Column] = {"suite": "string", "generator": "string"}
JUDGE_COLUMNS: dict[str, Column] = {"judge": "string", "judge_id": "string"}

COLUMNS: dict[str, dict[str, Column]] = {
    "images": {
        **RUN_COLUMNS,
        "case": "string",
        "prompt": "string",
        "image": "image",
        "status": "string",
        "message": "string",
        "sha256": "string",
        "pixels_sha256": "string",
        "width": "int64",
        "height": "int64",
        "row": "string",
        "variant": "string",
        "seed": "int64",
        "number": "int64",
        "clusters": "list",
        "groups": "string",
        "weights": "string",
        "source": "string",
        "report": "string",
        "video": "video",
        "frames": "int64",
        "rate": "float64",
        "text": "string",
        "right_labels": "string",
    },
    "verdicts": {
        **RUN_COLUMNS,
        **JUDGE_COLUMNS,
        "case": "string",
        "image_sha256": "string",
        "question": "string",
        "probe": "string",
        "label": "string",
        "raw": "string",
        "number": "float64",
        "probabilities": "string",
        "mass": "float64",
        "labels": "list",
        "answers": "string",
        "sided": "bool",
        "key": "string",
        "usd": "string",
        "frame": "int64",
    },
    "scores": {
        **RUN_COLUMNS,
        **JUDGE_COLUMNS,
        "score": "string",
        "group": "string",
        "value": "float64",
        "low": "float64",
        "high": "float64",
        "unit": "string",
        "n": "int64",
        "excluded": "string",
        "cases": "int64",
        "null": "float64",
        "wide_low": "float64",
        "wide_high": "float64",
        "these_items_low": "float64",
        "these_items_high": "float64",
        "effective_n": "float64",
        "bounds_low": "float64",
        "bounds_high": "float64",
        "p_value": "float64",
        "warning": "string",
    },
}
"""Config -> column -> what it holds. Mappings are JSON texts; undefined numbers are null."""

CONFIGS = tuple(COLUMNS)


class PublishedHeadline(Struct):
    """The score that a suite is ranked by."""

    score: str
    """Metric, e.g. `hom`."""
    better: str
    """`higher` or `lower`."""
    value: float | None
    """In `unit`; None where it is undefined."""
    low: float | None
    """Ends of its 95 % interval: `low` and `high`."""
    high: float | None
    unit: str
    """`%` or `1`."""
    n: int
    """Items that count."""
    excluded: dict[str, int]
    """Items that don't, by label."""
    marks: list[str] = Field(default_factory=list)
    """Reservations about the judge, names of `results.marks.MARKS`."""


class PublishedJudge(Struct):
    """One judge of one run."""

    name: str
    """In a few words; unique in the run."""
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$")]
    """Name of its folder in the run: tells two apart whose names are alike."""
    identity: dict[str, str]
    """Kind, model, server, revision, settings."""
    card: dict[str, Any]
    """Its behavior, as in `JudgeCard`; undefined numbers are None."""
    verdicts: int
    """Number of its verdicts."""
    verdicts_sha256: str
    """Logical digest of its verdicts."""
    scores_sha256: str
    """Logical digest of its scores."""
    headline: PublishedHeadline
    """Score in the card's table."""
    notes: list[str]
    """Reservations about the scores."""
    check: dict[str, Any] = Field(default_factory=dict)
    """Result on gold images, as in `JudgeCheck`, by which its scores exclude pairs; empty if it was
    not checked."""


class PublishedRun(Struct):
    """One generator on one suite."""

    suite: str
    """Config of the release."""
    generator: str
    """Name of the generator, unique in the suite."""
    identity: dict[str, str]
    """Identity of the generator."""
    data: str
    """Address of the release, NAMESPACE/NAME@TAG; empty for a folder."""
    release: dict[str, str]
    """Version and bank digest of that folder, if known."""
    rows_sha256: str
    """Logical digest of the config."""
    rows: int
    """Rows that were run."""
    seeds: int
    """Images of each prompt."""
    limit: int | None
    """Rows that were sampled; None for all."""
    images: dict[str, int]
    """Status -> number of cases; `made`, or the reason of a missing image."""
    images_sha256: str
    """Logical digest of the cases and of the judged bytes, whatever format is published."""
    judges: list[PublishedJudge]
    """Its judges."""
    clips: int = 0
    """Number of images that are clips."""
    texts: int = 0
    """Number of cases with a text in place of an image."""
    where: str = ""
    """Subset of the cases that was run, such as `only pair_type=A-A`; empty for all."""

    @property
    def is_whole(self) -> bool:
        """Whether all rows and cases of its suite were run."""
        return self.limit is None and not self.where

    @property
    def name(self) -> str:
        """Unique in the publication."""
        return f"{self.suite}/{self.generator}"

    @property
    def cases(self) -> int:
        """Number of cases."""
        return sum(self.images.values())


class PublishedFile(Struct):
    """One parquet file."""

    config: Literal["images", "verdicts", "scores"]
    """Config that the file belongs to."""
    file: Annotated[str, Field(pattern=rf"^(images|verdicts|scores)/{SPLIT}-\d+-of-\d+\.parquet$")]
    """Path in the publication."""
    rows: int
    """Rows in it."""
    bytes: int
    """Size of the file."""
    runs: list[str]
    """Names of the runs in the file."""


class Publication(Struct):
    """Everything that a publication's card states."""

    format: Literal[1] = 1
    """Version of the layout."""
    repo_id: str = ""
    """Dataset repository; empty before it was pushed."""
    changes: list[Change] = Field(default_factory=list)
    """Released versions, newest first; the first is this one."""
    license: str
    """License of the images by the publisher, an identifier of the Hub, e.g. `cc-by-4.0`."""
    image_format: Literal["png", "webp"]
    """`png`: the judged files as they are; `webp`: encoded anew."""
    quality: int | None
    """Quality of WebP, 1 to 100; None if no pixel is changed."""
    made_with: dict[str, str]
    """Versions of the packages that computed the scores and wrote the files."""
    made_from: str
    """Digest of everything that it was made from."""
    runs: list[PublishedRun]
    """Runs by generator, then suite."""
    files: list[PublishedFile]
    """Files by config, in order."""

    @property
    def version(self) -> str:
        return self.changes[0].version if self.changes else UNSHIPPED

    @property
    def date(self) -> str:
        return self.changes[0].date if self.changes else ""

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def address(self) -> str:
        """Repository and version; empty before it was pushed."""
        return f"{self.repo_id}@{self.tag}" if self.changes else ""

    @property
    def secret(self) -> bool:
        """Whether it shows prompts that are held out of a public release."""
        return any(HOLDOUT in run.release for run in self.runs)

    @property
    def lossy(self) -> bool:
        """Whether the published pixels are not the judged ones."""
        return self.quality is not None

    def of(self, config: str) -> list[PublishedFile]:
        """The files of a config."""
        return [file for file in self.files if file.config == config]

    def facts(self) -> dict[str, Any]:
        """Content without version and repository."""
        return self.model_dump(exclude={"repo_id", "changes", "made_from", "made_with"})


def features(config: str) -> dict[str, Any]:
    """The features of a config in the JSON form of a parquet footer."""

    def feature(column: Column) -> dict[str, Any]:
        if column in ("image", "video"):
            return {"_type": column.capitalize()}
        value = {"dtype": "string" if column == "list" else column, "_type": "Value"}
        return {"feature": value, "_type": "Sequence"} if column == "list" else value

    return {name: feature(column) for name, column in COLUMNS[config].items()}


def arrow_schema(config: str) -> pa.Schema:
    """Arrow schema of a config, with the footer metadata from which `datasets` reads features."""
    import pyarrow as pa

    file = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    special = {"list": pa.list_(pa.string()), "image": file, "video": file}
    fields = [
        (name, special[column] if column in special else pa.type_for_alias(column))
        for name, column in COLUMNS[config].items()
    ]
    metadata = {"huggingface": json.dumps({"info": {"features": features(config)}})}
    return pa.schema(fields, metadata=metadata)


def shard_path(config: str, number: int, of: int) -> str:
    """Path of one of a config's files, relative to the publication.

    >>> shard_path("images", 0, 2)
    'images/test-00000-of-00002.parquet'
    """
    return f"{config}/{SPLIT}-{number:05}-of-{of:05}.parquet"


def read_publication(root: Path) -> Publication:
    """Reads `publication.json` of a folder. Raises ReleaseError if it can't be used."""
    path = root / PUBLICATION
    try:
        return Publication.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ReleaseError(
            f"{path}: no such file; is {root} made by `counterprior publish`?", code="no-such-file"
        ) from None
    except ValueError as error:
        problem = " ".join(str(error).split())[:300]
        raise ReleaseError(
            f"{path}: not of this version ({problem}); publish it again", code="another-version"
        ) from None


def write_publication(publication: Publication, root: Path) -> None:
    """Writes `publication.json`, keys in the order in which the card shows them."""
    text = json.dumps(publication.model_dump(), indent=1, ensure_ascii=False)
    write_whole(root / PUBLICATION, text + "\n")


def iter_rows(
    root: Path, files: Sequence[PublishedFile], columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of some files of a publication, images as encoded bytes, few in memory at a time.

    columns: only these; all where None. Raises ReleaseError for a file that can't be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        path = root / file.file
        try:
            with pq.ParquetFile(path) as opened:
                for batch in opened.iter_batches(batch_size=128, columns=columns):
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise ReleaseError(
                f"{path}: not a readable parquet file ({error})", code="unreadable-file"
            ) from error


HUB = "hub:"
"""What a publication on the Hub begins with, as the generator that reads its images."""


class PublishedAt(NamedTuple):
    """Where on the Hub a publication is."""

    repository: str
    """NAMESPACE/NAME; any other text where the address has another form."""
    revision: str
    """Tag, branch or commit; empty if none was named."""


def published_at(address: str) -> PublishedAt:
    """Reads an address of a publication, with `hub:` or without.

    >>> published_at("hub:someone/results@v1.0.0")
    PublishedAt(repository='someone/results', revision='v1.0.0')
    """
    repository, _, revision = address.removeprefix(HUB).partition("@")
    return PublishedAt(repository, revision)


def fetch_publication(where: str, generator: str = "") -> tuple[Path, Publication]:
    """A publication, in a folder or as NAMESPACE/NAME@TAG; its images, checked by their checksums.

    generator: only the images of this one are fetched and checked; all where empty. A commit may
    stand in place of a tag, a branch may not: what it means changes. Raises ReleaseError where it
    isn't what was published, UsageError for another text.
    """
    folder = Path(where)
    if folder.is_dir():
        publication = read_publication(folder)
        wanted = wanted_files(publication, generator)
    else:
        folder, publication, wanted = _downloaded(where, generator)
    listed: Mapping[str, Any] = read_checksums(folder)["files"]
    for name in (PUBLICATION, *wanted):
        path = folder / name
        if name not in listed or not path.is_file() or sha256_file(path) != listed[name]["sha256"]:
            raise ReleaseError(
                f"{where}: {name} is not what {CHECKSUMS} lists; fetch it again",
                code="changed-file",
            )
    return folder, publication


def wanted_files(publication: Publication, generator: str = "") -> list[str]:
    """The files with images of a generator; all of them for an empty name."""
    run_names = {run.name for run in publication.runs if generator in ("", run.generator)}
    return [file.file for file in publication.of("images") if run_names & set(file.runs)]


def _downloaded(where: str, generator: str) -> tuple[Path, Publication, list[str]]:
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, RemoteEntryNotFoundError

    repo, revision = published_at(where)
    if repo.count("/") != 1 or not revision or revision in ("main", "master"):
        raise UsageError(
            f"there is no publication at {where}: name a folder that `counterprior publish` made, "
            f"or NAMESPACE/NAME@TAG",
            code="no-such-file",
        )
    _, commit = fetch_checksums(repo, revision)
    place: dict[str, Any] = {"repo_type": "dataset", "revision": commit}
    try:
        root = Path(hf_hub_download(repo, PUBLICATION, **place)).parent
        publication = read_publication(root)
        wanted = wanted_files(publication, generator)
        snapshot_download(repo, allow_patterns=wanted or [PUBLICATION], **place)
    except RemoteEntryNotFoundError:
        raise ReleaseError(
            f"{where} is not a publication: it has no {PUBLICATION}", code="not-a-publication"
        ) from None
    except (OSError, HfHubHTTPError) as error:
        line = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ReleaseError(
            f"{where}: can't be fetched ({line}); try again", code="server-unreachable"
        ) from error
    return root, publication, wanted
