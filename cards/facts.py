"""The facts of a release: everything its documents state, in one file, ``manifest.json``.

README card, datasheet, Croissant, citation and changelog are rendered from it and from nothing
else, so a number can't stand in one of them and not in the others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from ..builders.manifest import Build, Change, Composition, Erratum, Holdout, ReviewRound
from ..release import ReleaseError
from ..schema import Row, Struct, image_columns
from .parquet import WrittenParquet

MANIFEST = "manifest.json"

REPO_ID = "counterprior/counterprior"
"""Where the maintainers publish; `push` may be told another."""


class ConfigFacts(Struct):
    """One config as released."""

    name: str
    """Config name."""
    status: Literal["complete", "preview"]
    """`preview` while fewer rows than planned are made, or pictures are lacking."""
    rows: int
    """Rows in the file."""
    planned: int
    """Rows when complete."""
    elsewhere: int = 0
    """Rows in the other folder of a hold-out."""
    source: str
    """Paper and section that defines it."""
    summary: str
    """One sentence."""
    license: str
    """SPDX expression of its rows."""
    pictures: int
    """Rows with an embedded picture."""
    breakdown: dict[str, dict[str, int]]
    """Rows by value of the columns that a reader would count by."""
    composition: Composition | None
    """How the datasheet tabulates the rows; None where the card says enough."""
    tabulated: dict[str, dict[str, int]]
    """Line and column of that table; empty where there is none."""
    reviewed: dict[str, int]
    """Rows by what checked them."""
    example: dict[str, str]
    """A few fields of one row."""
    file: str
    """Path of the parquet file."""
    bytes: int
    """Size of the file."""
    arrow_bytes: int
    """Size in memory."""
    sha256: str
    """Of the file."""
    rows_sha256: str
    """Logical digest, independent of the parquet writer."""


class Sample(Struct):
    """A seed picture that the card shows."""

    file: str
    """Path of the PNG."""
    caption: str
    """The instruction that goes with it."""


class Facts(Struct):
    """Everything that the documents of a release state."""

    repo_id: str
    """Dataset repository on the Hub."""
    changes: list[Change]
    """Released versions, newest first; the first is this one."""
    seed: int | None
    """Seed of the sampled suites; None where it would rebuild what is held out."""
    seed_images: dict[str, str]
    """Identity of the generator of the seed pictures; empty where there are none."""
    bank_sha256: str
    """Digest of the bank that the rows were made from."""
    made_with: dict[str, str]
    """Versions of what decides the bytes."""
    configs: list[ConfigFacts]
    """In the order of the card."""
    samples: list[Sample]
    """Pictures in the card."""
    reviews: list[ReviewRound]
    """Rounds of review of the bank."""
    errata: list[Erratum]
    """Entries revised or retired since they were first released."""
    holdout: Holdout | None = None
    """Where a share of the rows is held out."""

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
    def rows(self) -> int:
        return sum(config.rows for config in self.configs)


def collect(build: Build, written: dict[str, WrittenParquet], samples: list[Sample]) -> Facts:
    """The facts of a build whose parquet files have been written."""
    private = build.holdout is not None and build.holdout.private
    return Facts(
        repo_id=f"{REPO_ID}-holdout" if private else REPO_ID,
        changes=list(build.changes),
        seed=build.seed,
        seed_images=build.seed_images,
        bank_sha256=build.bank_sha256,
        made_with={n: metadata.version(n) for n in ("counterprior", "pyarrow", "pillow")},
        configs=[
            ConfigFacts(
                name=config.name,
                planned=config.planned,
                elsewhere=config.elsewhere,
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
        errata=list(build.errata),
        holdout=build.holdout,
    )


def counted(
    rows: Sequence[Row], planned: int, breakdown: Iterable[str], composition: Composition | None
) -> dict[str, Any]:
    """The facts that follow from the rows of a config; `planned` of them belong in this folder."""
    columns = image_columns(rows[0].suite)
    pictures = sum(getattr(row, column) is not None for row in rows for column in columns)
    lacking = len(rows) < planned or pictures < len(rows) * len(columns)
    return {
        "status": "preview" if lacking else "complete",
        "rows": len(rows),
        "pictures": pictures,
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
    """Lines of the table by value of the composition's column, and of all rows in the last."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(str(getattr(row, composition.by)), []).append(row)
    values = {c: sorted({str(getattr(row, c)) for row in rows}) for c in composition.counts}

    def line(some: Sequence[Row]) -> dict[str, int]:
        counts = {"rows": len(some)}
        for column in composition.distinct:
            counts[f"different {column}"] = len({getattr(row, column) for row in some})
        for column in composition.filled:
            counts[f"with {column}"] = sum(bool(getattr(row, column)) for row in some)
        for column, names in values.items():
            found = Counter(str(getattr(row, column)) for row in some)
            counts |= {f"{column} {name}": found[name] for name in names}
        return counts

    return {**{name: line(some) for name, some in sorted(lines.items())}, "all": line(rows)}


def write_facts(facts: Facts, root: Path) -> None:
    text = json.dumps(facts.model_dump(), indent=2, ensure_ascii=False)
    (root / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_facts(root: Path) -> Facts:
    """The manifest of a release folder. Raises ReleaseError where it can't be used."""
    path = root / MANIFEST
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return Facts.model_validate(data)
    except FileNotFoundError:
        raise ReleaseError(f"{path}: not there; is {root} a release made by `build`?") from None
    except ValueError as error:
        raise ReleaseError(f"{path}: can't be used ({error})") from None
