"""The manifest of a release: everything its documents state, in one file, `manifest.json`.

README card, datasheet, Croissant, citation and changelog are rendered from it alone, so they
can't disagree about a number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..builders.build_result import (
    Build,
    Composition,
    ContentReading,
    Erratum,
    Holdout,
    PeopleReview,
    ReviewRound,
    SeedCheck,
)
from ..release import Change, ReleaseError, combined_rows_digest
from ..schema import Row, Struct, image_columns
from ..storage import write_whole
from .baselines import Baseline, of_rows
from .parquet import WrittenParquet

MANIFEST = "manifest.json"

REPO_ID = "counterprior/counterprior"
"""Where the maintainers publish; `push` can use another repository."""


HUMAN = "human"
"""In `review` of a row that people accepted as it is."""


class ConfigManifest(Struct):
    """One config as released."""

    name: str
    """Config name."""
    status: Literal["complete", "preview"]
    """`preview` while rows or images are missing."""
    rows: int
    """Rows in the file."""
    planned: int
    """Rows of the complete config."""
    elsewhere: int = 0
    """Rows in the other part of a hold-out."""
    added: int = 0
    """How many of the rows, the last ones, are of additions to the frozen draw (v1)."""
    source: str
    """Paper and section that define it."""
    summary: str
    """One sentence."""
    license: str
    """SPDX license expression of its rows."""
    pictures: int
    """Rows with an embedded image."""
    breakdown: dict[str, dict[str, int]]
    """Row counts by value, for the columns worth counting by."""
    composition: Composition | None
    """How the datasheet tabulates the rows; None if the card's table is enough."""
    tabulated: dict[str, dict[str, int]]
    """That table, line by line; empty without one."""
    reviewed: dict[str, int]
    """Row counts by what checked them."""
    example: dict[str, str]
    """A few fields of one row."""
    file: str
    """Path of the parquet file."""
    bytes: int
    """Size of the file."""
    sha256: str
    """Digest of the file."""
    rows_sha256: str
    """Logical digest, independent of the parquet writer."""


class CardSample(Struct):
    """A seed image that the card shows."""

    file: str
    """Path of the PNG."""
    caption: str
    """The edit instruction for it."""


class Manifest(Struct):
    """Everything that the documents of a release state."""

    repo_id: str
    """Dataset repository on the Hub."""
    changes: list[Change]
    """Released versions, newest first; the first is this one."""
    seed: int | None
    """Seed of the sampled suites; None if it would let readers rebuild held-out rows."""
    seed_images: dict[str, str]
    """Identity of the generator of the seed images; empty without any."""
    seed_check: SeedCheck | None = None
    """How a judge chose them, over all rows of the build; None without a judge."""
    bank_sha256: str
    """Digest of the bank that the rows were made from."""
    made_with: dict[str, str]
    """Versions of the packages that decide the bytes."""
    configs: list[ConfigManifest]
    """In the order of the card."""
    samples: list[CardSample]
    """Images in the card."""
    reviews: list[ReviewRound]
    """Rounds of review of the bank."""
    readings: list[ContentReading] = Field(default_factory=list)
    """Readings of drawn rows, of the configs in this release."""
    people: PeopleReview | None = None
    """What people said of the rows; None if nobody said anything."""
    errata: list[Erratum]
    """Entries revised or retired since they were first released."""
    holdout: Holdout | None = None
    """The hold-out; None without held-out rows."""
    links: dict[str, str] = Field(default_factory=dict)
    """Pages of the package (source, documentation), by name, as its metadata has them."""
    baselines: list[Baseline] = Field(default_factory=list)
    """Scores of published studies on these rows."""

    @property
    def private(self) -> bool:
        """Whether these are the rows that are held out."""
        return self.holdout is not None and self.holdout.private

    @property
    def version(self) -> str:
        return self.changes[0].version

    @property
    def date(self) -> str:
        return self.changes[0].date

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def url(self) -> str:
        return f"https://huggingface.co/datasets/{self.repo_id}"

    @property
    def languages(self) -> list[str]:
        """BCP 47 codes of the texts, English first."""
        codes = {code for config in self.configs for code in config.breakdown.get("language", {})}
        return ["en", *sorted(codes - {"en"})]

    @property
    def rows(self) -> int:
        return sum(config.rows for config in self.configs)

    @property
    def rows_sha256(self) -> str:
        """The digest of all rows: unlike that of the release, it stays when only texts change."""
        return combined_rows_digest({c.name: c.rows_sha256 for c in self.configs})

    @property
    def read_by_people(self) -> dict[str, int]:
        """Config -> rows that people accepted as they are; only configs that have such rows."""
        return {c.name: n for c in self.configs if (n := c.reviewed.get(HUMAN, 0))}


def package_links() -> dict[str, str]:
    """Name -> URL of each page that the metadata of the installed package names."""
    entries = metadata.metadata("counterprior").get_all("Project-URL") or []
    return {
        name.strip(): url.strip() for name, _, url in (entry.partition(",") for entry in entries)
    }


def collect(
    build: Build,
    written: dict[str, WrittenParquet],
    samples: list[CardSample],
    baselines: Sequence[Baseline] = (),
) -> Manifest:
    """Returns the manifest of a build whose parquet files have been written.

    baselines: of any rows; only those of the build's own rows are recorded.
    """
    private = build.holdout is not None and build.holdout.private
    return Manifest(
        repo_id=f"{REPO_ID}-holdout" if private else REPO_ID,
        changes=list(build.changes),
        seed=build.seed,
        seed_images=build.seed_images,
        seed_check=build.seed_check,
        bank_sha256=build.bank_sha256,
        made_with={n: metadata.version(n) for n in ("counterprior", "pyarrow", "pillow")},
        configs=[
            ConfigManifest(
                name=config.name,
                planned=config.planned,
                elsewhere=config.elsewhere,
                added=config.added,
                source=config.source,
                summary=config.summary,
                license=config.license,
                composition=config.composition,
                **counted(
                    config.rows,
                    config.planned - config.elsewhere,
                    config.breakdown,
                    config.composition,
                ),
                **written[config.name]._asdict(),
            )
            for config in build.configs
        ],
        samples=samples,
        reviews=list(build.reviews),
        readings=readings_of(build.readings, [config.name for config in build.configs]),
        people=build.people,
        errata=list(build.errata),
        holdout=build.holdout,
        links=package_links(),
        baselines=of_rows(baselines, {n: file.rows_sha256 for n, file in written.items()}),
    )


def readings_of(
    readings: Iterable[ContentReading], configs: Collection[str]
) -> list[ContentReading]:
    """The readings of rows of these configs."""
    return [reading for reading in readings if reading.config in configs]


def counted(
    rows: Sequence[Row], planned: int, breakdown: Iterable[str], composition: Composition | None
) -> dict[str, Any]:
    """Counts a config's rows for its entry; `planned` of them belong in this folder."""
    columns = image_columns(rows[0].suite)
    images = sum(getattr(row, column) is not None for row in rows for column in columns)
    lacking = len(rows) < planned or images < len(rows) * len(columns)
    return {
        "status": "preview" if lacking else "complete",
        "rows": len(rows),
        "pictures": images,
        "breakdown": {
            column: dict(sorted(Counter(str(getattr(row, column)) for row in rows).items()))
            for column in breakdown
        },
        "tabulated": tabulate(rows, composition) if composition else {},
        "reviewed": dict(sorted(Counter(by for row in rows for by in row.review).items())),
        "example": {
            name: value
            for name, value in rows[0]
            if name.endswith(("prompt", "instruction", "caption")) and isinstance(value, str)
        },
    }


def tabulate(rows: Sequence[Row], composition: Composition) -> dict[str, dict[str, int]]:
    """Table lines by value of the composition's column; the last line counts all rows."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(str(getattr(row, composition.by)), []).append(row)
    values = {c: sorted({str(getattr(row, c)) for row in rows}) for c in composition.counts}

    def line(group: Sequence[Row]) -> dict[str, int]:
        counts = {"rows": len(group)}
        for column in composition.distinct:
            counts[f"different {column}"] = len({getattr(row, column) for row in group})
        for column in composition.filled:
            counts[f"with {column}"] = sum(bool(getattr(row, column)) for row in group)
        for column, distinct_values in values.items():
            counted = Counter(str(getattr(row, column)) for row in group)
            counts |= {f"{column} {name or 'none'}": counted[name] for name in distinct_values}
        return counts

    return {**{name: line(some) for name, some in sorted(lines.items())}, "all": line(rows)}


def write_manifest(manifest: Manifest, root: Path) -> None:
    """Writes `manifest.json`, keys in the order in which the documents show them."""
    text = json.dumps(manifest.model_dump(), indent=2, ensure_ascii=False)
    write_whole(root / MANIFEST, text + "\n")


def read_manifest(root: Path) -> Manifest:
    """Reads the manifest of a release folder. Raises ReleaseError if it can't be used."""
    path = root / MANIFEST
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return Manifest.model_validate(data)
    except FileNotFoundError:
        raise ReleaseError(
            f"{path}: no such file; is {root} a release made by `build`?", code="no-such-file"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ReleaseError(
            f"{path}: not a manifest of this version ({error}); build the release again",
            code="another-version",
        ) from None
