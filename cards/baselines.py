"""Baselines on the card: the headline scores of published studies that ran exactly these rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import UsageError
from ..eval.publishing.publication import PublishedHeadline, read_publication
from ..release import ReleaseError
from ..schema import Struct


class Baseline(Struct):
    """One generator under one judge, as a publication has it."""

    config: str
    """Config that it ran."""
    rows_sha256: str
    """Logical digest of the rows that it ran."""
    generator: str
    """Its name in the publication."""
    judge: str
    """Likewise."""
    headline: PublishedHeadline
    """The config's first score."""
    study: str
    """The publication on the Hub, NAMESPACE/NAME@TAG."""


def read_baselines(folders: Sequence[Path]) -> list[Baseline]:
    """Every complete run of the publications, in their order.

    folders: publications as they are on the Hub, e.g. after `hf download`. A run of a part of the
    rows (`--limit`, `--where`) is no baseline. Raises UsageError for a publication that has no
    version yet, since nobody could check its numbers, and for one without a complete run.
    """
    baselines = []
    for folder in folders:
        publication = read_publication(folder)
        if not publication.changes:
            raise UsageError(
                f"{folder} is not published: push it with `counterprior publish`, and give the "
                f"folder as downloaded from the Hub",
                code="not-published",
            )
        complete = [run for run in publication.runs if run.is_whole]
        if not complete:
            raise UsageError(
                f"{folder}: all its runs are of samples (--limit, --where): run all rows",
                code="sampled-run",
            )
        baselines += [
            Baseline(
                config=run.suite,
                rows_sha256=run.rows_sha256,
                generator=run.generator,
                judge=judge.name,
                headline=judge.headline,
                study=publication.address,
            )
            for run in complete
            for judge in run.judges
        ]
    return baselines


def of_rows(baselines: Sequence[Baseline], digests: Mapping[str, str]) -> list[Baseline]:
    """The baselines of a release's configs; digests: config -> logical digest of its rows.

    Raises ReleaseError for a baseline that ran other rows of one of them, and where there are
    baselines but none of these configs.
    """
    matching = [baseline for baseline in baselines if baseline.config in digests]
    for baseline in matching:
        if baseline.rows_sha256 != digests[baseline.config]:
            raise ReleaseError(
                f"{baseline.study}: {baseline.generator} ran other rows of {baseline.config} than "
                f"this build has: run it again on this build",
                code="different-rows",
            )
    if baselines and not matching:
        raise ReleaseError(
            f"{baselines[0].study} has no run of a config of this build", code="nothing-to-do"
        )
    return matching
