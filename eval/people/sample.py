"""`counterprior audit sample`: which images people should look at."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...errors import UsageError
from ...tables import RowError, parse, read_rows

BINS = 5
"""Confidence is cut into so many equal bins."""
SEED = 42
"""As published."""


class VerdictRow(BaseModel):
    """A checked image, as `counterprior check` or the published evaluation writes it."""

    model_config = ConfigDict(frozen=True)

    sample_id: str = Field(min_length=1)
    prompt_id: str
    relation: str
    object_a: str
    object_b: str
    verdict_raw: Literal["PASS", "FAIL", "UNDECIDABLE"]
    conf: float = Field(ge=0, le=1)


class _ImageRow(BaseModel):
    model_config = ConfigDict(frozen=True)

    sample_id: str
    image_path: str
    prompt: str


@dataclass(frozen=True)
class AuditCandidate:
    """A checked image and the method that made it."""

    method: str
    """Generator, by the name its file was given."""
    row: VerdictRow
    """What the checker said."""

    @property
    def stratum(self) -> tuple[str, str, str]:
        """Method, relation and verdict."""
        return self.method, self.row.relation, self.row.verdict_raw

    @property
    def bin(self) -> int:
        """Confidence bin, 0 to `BINS` - 1."""
        return min(BINS - 1, int(BINS * self.row.conf))


@dataclass(frozen=True)
class SampleSettings:
    """What `counterprior audit sample` is asked for."""

    verdicts: tuple[str, ...]
    """Files of verdicts, each `METHOD=FILE` or `FILE`."""
    n: int
    """Images to draw."""
    seed: int = SEED
    """Of the draw."""
    manifests: tuple[Path, ...] = ()
    """Rows of sample_id, image_path and prompt, for `audit serve`."""


def read_candidates(specs: Iterable[str]) -> list[AuditCandidate]:
    """Every checked image of the files. Raises RowError where a sample occurs twice."""
    found: dict[str, AuditCandidate] = {}
    for spec in specs:
        name, _, file = spec.rpartition("=")
        path = Path(file)
        method = name or path.parent.name or path.stem
        for number, row in read_rows(path):
            one = parse(VerdictRow, row, path, number)
            if one.sample_id in found:
                raise RowError(f"{path}:{number}: sample_id: {one.sample_id!r} occurs twice")
            found[one.sample_id] = AuditCandidate(method, one)
    return list(found.values())


def draw(
    candidates: Sequence[AuditCandidate], n: int, seed: int = SEED
) -> list[tuple[AuditCandidate, float]]:
    """`n` candidates in random order, each with its weight (images it stands for).

    Strata (method x relation x verdict) get equal shares as far as they reach, so that rare ones
    are seen; within a stratum the confidence bins take turns. The draw does not depend on the
    order of the candidates. Raises UsageError for fewer candidates than `n`.
    """
    if not 0 < n <= len(candidates):
        raise UsageError(f"cannot draw {n} of {len(candidates)} images: choose a smaller --n")
    rng = random.Random(seed)
    strata: dict[tuple[str, ...], list[AuditCandidate]] = {}
    for candidate in sorted(candidates, key=lambda c: c.row.sample_id):
        strata.setdefault(candidate.stratum, []).append(candidate)
    names = sorted(strata)
    share = _shares({name: len(strata[name]) for name in names}, n, rng)
    drawn = []
    for name in names:
        chosen = _by_turns(strata[name], share[name], rng)
        drawn += [(one, len(strata[name]) / share[name]) for one in chosen]
    rng.shuffle(drawn)
    return drawn


def _shares(
    sizes: Mapping[tuple[str, ...], int], n: int, rng: random.Random
) -> dict[tuple[str, ...], int]:
    """Equal shares of n; what a small stratum cannot fill goes to the others."""
    share = dict.fromkeys(sizes, 0)
    left = n
    while left:
        open_ = [name for name in sizes if share[name] < sizes[name]]
        each, rest = divmod(left, len(open_))
        extra = set(rng.sample(open_, rest)) if not each else set()
        for name in open_:
            more = min(each or int(name in extra), sizes[name] - share[name])
            share[name] += more
            left -= more
    return share


def _by_turns(
    stratum: Sequence[AuditCandidate], n: int, rng: random.Random
) -> list[AuditCandidate]:
    """`n` of a stratum: one of each confidence bin in turn, at random within a bin."""
    bins: dict[int, list[AuditCandidate]] = {}
    for candidate in stratum:
        bins.setdefault(candidate.bin, []).append(candidate)
    for members in bins.values():
        rng.shuffle(members)
    chosen: list[AuditCandidate] = []
    while len(chosen) < n:
        for number in sorted(bins):
            if bins[number] and len(chosen) < n:
                chosen.append(bins[number].pop())
    return chosen


def run_sample(settings: SampleSettings) -> list[dict[str, Any]]:
    """The rows of the audit, in the order in which people see them.

    What the checker said is in them for the analysis; `audit serve` never shows it.
    """
    shown = _shown(settings.manifests)
    rows = []
    for candidate, weight in draw(read_candidates(settings.verdicts), settings.n, settings.seed):
        row = candidate.row
        relation = row.relation.replace("_", " ")
        image, prompt = shown.get(row.sample_id, ("", f"{row.object_a} {relation} {row.object_b}"))
        rows.append(
            {
                "sample_id": row.sample_id,
                "image": image,
                "prompt": prompt,
                "method": candidate.method,
                "relation": row.relation,
                "verdict_raw": row.verdict_raw,
                "conf": row.conf,
                "weight": weight,
            }
        )
    if settings.manifests and (bare := [row["sample_id"] for row in rows if not row["image"]]):
        raise RowError(f"no manifest lists {len(bare)} of the images, the first {bare[0]!r}")
    return rows


def _shown(manifests: Iterable[Path]) -> dict[str, tuple[str, str]]:
    found = {}
    for path in manifests:
        for number, row in read_rows(path):
            one = parse(_ImageRow, row, path, number)
            found[one.sample_id] = (str(path.parent / one.image_path), one.prompt)
    return found


class _DrawnRow(BaseModel):
    model_config = ConfigDict(frozen=True)

    sample_id: str
    weight: float = Field(gt=0, allow_inf_nan=False)


def read_weights(path: Path) -> dict[str, float]:
    """Sample -> images that it stands for, from what `audit sample` wrote."""
    rows = (parse(_DrawnRow, row, path, number) for number, row in read_rows(path))
    return {row.sample_id: row.weight for row in rows}
