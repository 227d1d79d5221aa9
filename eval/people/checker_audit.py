"""`counterprior audit sample` and `analyze`: a checker's verdicts against human annotators.

The sample holds the checker's verdicts for the analysis; `audit serve` never shows them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from ...errors import UsageError
from ...human_labels import check_labels, read_labels
from ...parsing import RowError, parse, read_rows, write_rows
from ...storage import write_json
from ..judges.checker.analyze import analyze
from .strata import Stratum, stratified

BINS = 5
"""Number of equal bins of confidence."""
SEED = 42
"""As published."""


class AuditCandidate(BaseModel, frozen=True):
    """A checked image, as `counterprior spatial check` or the published evaluation writes it."""

    method: str
    """Name of the generator, from `METHOD=FILE`."""
    sample_id: str = Field(min_length=1)
    prompt_id: str
    relation: str
    object_a: str
    object_b: str
    verdict_raw: Literal["PASS", "FAIL", "UNDECIDABLE"]
    conf: float = Field(ge=0, le=1)

    @property
    def stratum(self) -> tuple[str, str, str]:
        """Method, relation and verdict."""
        return self.method, self.relation, self.verdict_raw

    @property
    def bin(self) -> int:
        """Confidence bin, 0 to `BINS` - 1."""
        return min(BINS - 1, int(BINS * self.conf))


class _ImageRow(BaseModel, frozen=True):
    sample_id: str
    image_path: str
    prompt: str


class _DrawnRow(BaseModel, frozen=True):
    sample_id: str
    weight: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Images that it represents; published samples don't say."""


def read_candidates(specs: Iterable[str]) -> list[AuditCandidate]:
    """Every checked image of the files, each `METHOD=FILE` or `FILE`.

    Raises RowError where a sample occurs twice.
    """
    candidates: dict[str, AuditCandidate] = {}
    for spec in specs:
        name, _, file = spec.rpartition("=")
        path = Path(file)
        method = name or path.parent.name or path.stem
        for number, row in read_rows(path):
            candidate = parse(AuditCandidate, {**row, "method": method}, path, number)
            if candidate.sample_id in candidates:
                raise RowError(
                    f"{path}:{number}: sample_id: {candidate.sample_id!r} occurs twice",
                    code="duplicate-id",
                )
            candidates[candidate.sample_id] = candidate
    return list(candidates.values())


def draw(
    candidates: Sequence[AuditCandidate], n: int, seed: int = SEED
) -> list[tuple[AuditCandidate, float]]:
    """Draws `n` candidates in random order, each with its weight (images it represents).

    Strata are method x relation x verdict; within a stratum the confidence bins take turns. The
    draw does not depend on the order of the candidates. Raises UsageError for fewer candidates
    than `n`.
    """
    if not 0 < n <= len(candidates):
        raise UsageError(
            f"cannot draw {n} of {len(candidates)} images: choose a smaller --n",
            code="too-few-items",
        )
    rng = random.Random(seed)
    strata: dict[Stratum, list[AuditCandidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.sample_id):
        strata.setdefault(candidate.stratum, []).append(candidate)
    drawn = stratified(strata, n, rng, partial(_by_turns, rng=rng))
    rng.shuffle(drawn)
    return drawn


def _by_turns(
    stratum: Sequence[AuditCandidate], n: int, rng: random.Random
) -> list[AuditCandidate]:
    """Draws `n` of a stratum: one of each confidence bin in turn, at random within a bin."""
    bins: dict[int, list[AuditCandidate]] = {}
    for candidate in stratum:
        bins.setdefault(candidate.bin, []).append(candidate)
    for members in bins.values():
        rng.shuffle(members)
    turns = zip_longest(*(reversed(bins[number]) for number in sorted(bins)))
    return [candidate for turn in turns for candidate in turn if candidate is not None][:n]


def sample(
    verdicts: Iterable[str], n: int, seed: int = SEED, manifests: Sequence[Path] = ()
) -> list[dict[str, Any]]:
    """Returns the rows of the audit, in the order in which annotators see them.

    verdicts: files, see `read_candidates`; manifests: rows of sample_id, image_path and prompt, for
    `audit serve`. Raises RowError for an image that none of the manifests lists.
    """
    images = {}
    for path in manifests:
        for number, line in read_rows(path):
            listed = parse(_ImageRow, line, path, number)
            images[listed.sample_id] = (str(path.parent / listed.image_path), listed.prompt)
    rows = []
    for row, weight in draw(read_candidates(verdicts), n, seed):
        relation = row.relation.replace("_", " ")
        image, prompt = images.get(row.sample_id, ("", f"{row.object_a} {relation} {row.object_b}"))
        verdict = row.model_dump(include={"method", "relation", "verdict_raw", "conf"})
        head = {"sample_id": row.sample_id, "image": image, "prompt": prompt}
        rows.append({**head, **verdict, "weight": weight})
    if manifests and (unlisted := [row["sample_id"] for row in rows if not row["image"]]):
        raise RowError(
            f"no manifest lists {len(unlisted)} of the images, the first {unlisted[0]!r}",
            code="unknown-reference",
        )
    return rows


def analyze_files(
    verdicts: Sequence[str], labels: Path, out: Path | None, drawn: Path | None = None
) -> dict[str, Any]:
    """Compares the checker with human annotators, over all runs together.

    drawn: file of `audit sample`, to weight each image by the number it represents; a
        published sample, without weights, only lists the drawn images. Raises RowError for labels
        of images in no run, or not in the sample.
    """
    candidates = read_candidates(verdicts)
    human_labels = read_labels(labels)
    weights = None
    if drawn is not None:
        rows = [parse(_DrawnRow, row, drawn, number) for number, row in read_rows(drawn)]
        check_labels(human_labels, {row.sample_id for row in rows})
        weights = {row.sample_id: row.weight for row in rows if row.weight is not None}
        if weights and len(weights) < len(rows):
            raise RowError(
                f"{drawn}: weight: {len(rows) - len(weights)} rows have none", code="missing-field"
            )
    result = analyze([candidate.model_dump() for candidate in candidates], human_labels, weights)
    if out:
        write_json(out, result)
    return result


def write_sample(
    verdicts: Iterable[str], n: int, out: Path, seed: int = SEED, manifests: Sequence[Path] = ()
) -> int:
    """Writes the rows that `sample` draws; returns how many."""
    rows = sample(verdicts, n, seed, manifests)
    write_rows(out, rows)
    return len(rows)
