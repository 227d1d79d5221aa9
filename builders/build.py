"""The build: every suite from the banks, seed images, and the checks all rows must pass."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import RunFailed, UsageError
from ..eval.generators import open_generator
from ..progress import Progress, silent
from ..scenes.vector import VectorImage
from ..schema import ROWS, Row, SeededRow
from ..specs import Spec
from .bank import DEFAULT_BANK, BankError, begin_bank, read_entries
from .build_result import (
    Build,
    BuiltConfig,
    ContentReading,
    Erratum,
    ReviewRound,
    SeedCheck,
    read_changes,
)
from .consistency import LICENSE, TEXTS
from .constrained import ConstrainedPair
from .counterfactual import CounterfactualScene
from .drawings import drawing
from .gold import begin_gold
from .seeds import RENDERER, begin_seeds, checked_seeds, described, draw_seeds
from .suite import Banks, Fault
from .suites import SUITES
from .votes import Votes, review_by_people, vote_on, voted

if TYPE_CHECKING:
    from ..eval.studies.seeding import SeedSettings

NO_IMAGES = "none"


@dataclass(frozen=True)
class BuildSettings:
    """Inputs of a build, and how it runs."""

    configs: tuple[str, ...] = ()
    """Names of the configs to build; empty: all."""
    bank: Path = DEFAULT_BANK
    """Folder of the bank files."""
    seed: int = 0
    """Seed of every sampled suite."""
    seed_images: str = "render:"
    """Spec of the generator of seed images, or `none`; unchecked, so only the renderer's."""
    checked_seeds: SeedSettings | None = None
    """Replaces `seed_images`: any generator, and the judge that affirms what it draws."""
    seed_license: str = ""
    """SPDX id of the license of another generator's images."""
    jobs: int = 1
    """Number of processes that draw; the result does not depend on it."""

    @property
    def seed_source(self) -> str:
        """Kind of the generator of seed images, or `none`."""
        checked = self.checked_seeds
        return Spec.parse(checked.generator if checked else self.seed_images).kind


class BuildError(RunFailed):
    """Rows that fail their checks; the message lists them."""


def build(settings: BuildSettings, progress: Progress = silent) -> Build:
    """Builds and checks every config that the settings name.

    Raises BankError for a bank file that can't be used, UsageError for an unknown config or
    generator, and BuildError if a row fails a check.
    """
    config_names = settings.configs or tuple(SUITES)
    if unknown := [name for name in config_names if name not in SUITES]:
        raise UsageError(
            f"no config {unknown[0]!r}: choose from {', '.join(SUITES)}", code="unknown-name"
        )
    _check_seeds(settings)
    banks = Banks.at(settings.bank)
    with drawing(settings.jobs):
        begin_bank(settings.bank)
        changes = read_changes(settings.bank)
        rows = _rows([n for n in SUITES if n in config_names], banks, settings, progress)
        identity, check = _draw(rows, settings, progress)
        rows = {name: [voted(row, banks.votes) for row in rows[name]] for name in rows}
        problems = [
            f"{name}: {fault.row}: {fault.field}: {fault.message}"
            for name in rows
            for fault in suite_faults(name, rows[name], banks)
        ]
    if problems:
        omitted = f"\n... and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise BuildError(
            "rows fail their checks:\n" + "\n".join(problems[:20]) + omitted, code="failed-checks"
        )
    return Build(
        configs=tuple(_built(name, rows[name], banks) for name in rows),
        changes=changes,
        seed=settings.seed,
        seed_images=identity,
        seed_check=check,
        bank_sha256=bank_digest(settings.bank),
        reviews=read_reviews(settings.bank),
        readings=read_readings(settings.bank),
        people=review_by_people(banks.votes, rows),
        errata=tuple(_errata(banks, rows)),
    )


def _rows(
    names: Sequence[str], banks: Banks, settings: BuildSettings, progress: Progress
) -> dict[str, list[Row]]:
    """The rows of each config that the bank has something for, without seed images.

    What is drawn begins first, so that other processes draw while this one makes rows.
    """
    rows: dict[str, list[Row]] = {}

    def make(name: str) -> list[Row]:
        progress("items", len(rows), len(names))
        rows[name] = sampled(name, banks, settings.seed)
        if rows[name] or (SUITES[name].optional and name not in settings.configs):
            return rows[name]
        raise BankError(
            f"{settings.bank}: has no entry for {name}; fill it, or name the configs to build with "
            f"--config",
            code="empty-bank",
        )

    seeded = [row for name in names if issubclass(ROWS[name], SeededRow) for row in make(name)]
    if settings.checked_seeds is None and settings.seed_source != NO_IMAGES:
        begin_seeds(cast(list[SeededRow], seeded), settings.seed_images)
    for name in names:
        begin_gold(_images(name, banks, settings.seed))
    for name in sorted(names, key=lambda name: SUITES[name].images is not None):
        if name not in rows:
            make(name)
    progress("items", len(names), len(names))
    return {name: rows[name] for name in names if rows[name]}


def _check_seeds(settings: BuildSettings) -> None:
    """Raises UsageError, before anything is built, for seed images that can't be released."""
    checked, source = settings.checked_seeds, settings.seed_source
    if source == NO_IMAGES:
        if checked:
            raise UsageError(
                "--seed-judge: there is nothing to judge without --seed-images",
                code="conflicting-options",
            )
        return
    open_generator(checked.generator if checked else settings.seed_images)  # a wrong spec fails now
    if source == RENDERER:
        if settings.seed_license:
            raise UsageError(
                "--seed-license: the renderer's images have their own license",
                code="conflicting-options",
            )
        return
    if checked is None:
        raise UsageError(
            f"--seed-images {settings.seed_images}: only the renderer is sure to draw the prompt; "
            f"add --seed-judge SPEC to check the images of another generator",
            code="missing-option",
        )
    if not re.fullmatch(LICENSE, settings.seed_license):
        raise UsageError(
            "pass --seed-license, the license under which the seed images may be shared, by its "
            "SPDX id, e.g. CC-BY-4.0; the generator's own license must permit it",
            code="missing-option",
        )


def _errata(banks: Banks, configs: Container[str]) -> Iterator[Erratum]:
    """Entries of the configs' banks whose status says that they were changed after a release."""
    banked: dict[str, Sequence[ConstrainedPair | CounterfactualScene]] = {}
    if "t2i_correctness" in configs:
        banked["t2i_correctness"] = [p for domain in banks.pairs.values() for p in domain]
    if "counterfactual" in configs:
        banked["counterfactual"] = [
            scene for laws in banks.laws.values() for law in laws for scene in law.scenes
        ]
    for config, entries in banked.items():
        for entry in sorted(entries, key=lambda entry: entry.id):
            if entry.status != "new":
                yield Erratum(
                    config=config, entry=entry.id, status=entry.status, reason=entry.erratum
                )


def _built(name: str, rows: list[Row], banks: Banks) -> BuiltConfig:
    suite = SUITES[name]
    return BuiltConfig(
        name=name,
        rows=rows,
        planned=suite.rows + sum(suite.beyond(row) or suite.added(row, banks) for row in rows)
        if suite.rows
        else len(rows),
        added=sum(suite.added(row, banks) for row in rows),
        breakdown=suite.breakdown,
        **{**stated_facts(name, rows), "license": _config_license(suite.license, rows)},
    )


def stated_facts(name: str, rows: list[Row]) -> dict[str, Any]:
    """Returns source, summary, composition and license of a config as its documents state them.

    The license is left out for rows with seed images: it depends on the generator that drew them.
    """
    suite = SUITES[name]
    facts = {"source": suite.source, "summary": suite.summary, "composition": suite.composition}
    if any(isinstance(row, SeededRow) for row in rows):  # who drew the images decides
        return facts
    return {**facts, "license": _config_license(suite.license, rows)}


def _config_license(usual: str | None, rows: list[Row]) -> str:
    """SPDX expression of the rows of a config; `usual` where each row has the suite's."""
    drawn = [row for row in rows if isinstance(row, SeededRow) and row.seed_source != NO_IMAGES]
    if usual and all(row.seed_source == RENDERER for row in drawn):
        return usual
    return " AND ".join(sorted({term for row in rows for term in row.license.split(" AND ")}))


def _draw(
    rows: dict[str, list[Row]], settings: BuildSettings, progress: Progress
) -> tuple[dict[str, str], SeedCheck | None]:
    """Adds the seed images in place; returns the identity of the generator that drew them, and how
    a judge chose them."""
    seeded = [name for name in rows if isinstance(rows[name][0], SeededRow)]
    if settings.seed_source == NO_IMAGES or not seeded:
        return {}, None
    seeds = cast(list[SeededRow], [row for name in seeded for row in rows[name]])
    check: SeedCheck | None = None
    if settings.checked_seeds is None:
        drawn, spec = _draw_unchecked(seeds, settings, progress), settings.seed_images
    else:
        drawn, check = checked_seeds(seeds, settings.checked_seeds, progress)
        spec = settings.checked_seeds.generator
    terms = _image_license(settings.seed_license)
    remaining = iter(drawn)
    for name in seeded:
        config_rows = islice(remaining, len(rows[name]))
        rows[name] = [as_released(row, row.seed_source, terms) for row in config_rows]
    return open_generator(spec).identity(), check


def _image_license(of_images: str) -> str:
    """SPDX expression of rows with the images of another generator than the renderer."""
    return " AND ".join(sorted({TEXTS, of_images} - {""}))


def _draw_unchecked(
    rows: list[SeededRow], settings: BuildSettings, progress: Progress
) -> list[SeededRow]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("seed images", done, len(rows))

    advance(0)
    return draw_seeds(rows, settings.seed_images, advance)


def suite_faults(
    name: str, rows: list[Any], banks: Banks, complete: bool = True
) -> Iterator[Fault]:
    """Yields the faults of one config: ids, the suite's own checks, the number of rows.

    For some of the rows alone (`complete` is false) checks that need all rows are skipped.
    """
    ids: set[str] = set()
    for row in rows:
        if row.id in ids:
            yield Fault(row.id, "id", "is used twice")
        ids.add(row.id)
        if isinstance(row, SeededRow) and (row.seed_image is None) == (
            row.seed_source != NO_IMAGES
        ):
            image = "no image" if row.seed_image is None else "an image"
            yield Fault(row.id, "seed_source", f"is {row.seed_source!r}, and the row has {image}")
        vote = vote_on(row, banks.votes)
        if vote not in ("", "accept") and SUITES[name].group is not None:  # ours to revise
            yield Fault(row.id, "review", f"people who read it say {vote}: revise its bank entry")
    suite = SUITES[name]
    yield from (fault for fault in suite.faults(rows, banks) if fault.row or complete)
    own = sum(not (suite.beyond(row) or suite.added(row, banks)) for row in rows)
    if suite.rows is not None and own > suite.rows:
        yield Fault("", "", f"has {own} rows, the suite has {suite.rows}")


def row_checks(bank: Path | None = None) -> Callable[[str, list[Row], bool], Iterator[Fault]]:
    """Returns the content checks for a released config, by the bank that it was built from.

    For some of the rows alone (the last argument is false) checks that need all rows are skipped. A
    config that this package doesn't build has no rules.
    """
    return partial(_faults_by, Banks.at(bank))


def _faults_by(banks: Banks, name: str, rows: list[Row], complete: bool) -> Iterator[Fault]:
    return suite_faults(name, rows, banks, complete) if name in SUITES else iter(())


def rebuilt(bank: Path | None = None) -> Callable[[str, int | None], list[Row] | None]:
    """Returns a function (config, seed) -> rows built from a bank, without seed images.

    It returns None for a config that this package doesn't build, and for a sampled config whose
    seed is secret.
    """
    return partial(_rebuilt_by, Banks.at(bank))


def _rebuilt_by(banks: Banks, name: str, seed: int | None) -> list[Row] | None:
    if name not in SUITES:
        return None
    begin_gold(_images(name, banks, seed or 0))
    rows = sampled(name, banks, seed or 0)
    if seed is None and rows != sampled(name, banks, 1):
        return None
    return rows


def is_addition(bank: Path | None = None) -> Callable[[Row], bool]:
    """Returns whether a row is of an addition to a bank, see `frozen`."""
    return partial(_is_addition_to, Banks.at(bank))


def _is_addition_to(banks: Banks, row: Row) -> bool:
    return row.suite in SUITES and SUITES[row.suite].added(row, banks)


def sampled(name: str, banks: Banks, seed: int) -> list[Row]:
    """The rows of a config, without seed images."""
    # Seeded by suite: a config is the same whether it is built alone or with the others.
    suite = SUITES[name]
    return suite.build(banks, random.Random(f"{seed}/{suite.seeded_as or name}"))


def _images(name: str, banks: Banks, seed: int) -> list[VectorImage]:
    """The gold images that `sampled` draws."""
    suite = SUITES[name]
    rng = random.Random(f"{seed}/{suite.seeded_as or name}")
    return list(suite.images(banks, rng)) if suite.images else []


def released_with(votes: Votes) -> Callable[[Row, str, str], Row]:
    """Returns `as_released`, which also marks the rows that people accepted."""
    return partial(_released_with, votes)


def _released_with(votes: Votes, row: Row, source: str, terms: str) -> Row:
    return voted(as_released(row, source, terms), votes)


def as_released(row: Row, source: str, terms: str) -> Row:
    """A row of `rebuilt` as it is with seed images from `source`, but for the images.

    terms: SPDX expression of rows with images of another generator than the renderer.
    """
    if not isinstance(row, SeededRow) or source == NO_IMAGES:
        return row
    license_terms = SUITES[row.suite].license if source == RENDERER else terms
    return described(row, source).model_copy(update={"license": license_terms})


def read_reviews(bank: Path) -> tuple[ReviewRound, ...]:
    """The rounds of review of a bank. Raises BankError."""
    return tuple(read_entries(bank / "reviews.yaml", ReviewRound))


def read_readings(bank: Path) -> tuple[ContentReading, ...]:
    """The readings of a bank's rows; none without the file. Raises BankError."""
    file = bank / "content_readings.yaml"
    return tuple(read_entries(file, ContentReading)) if file.exists() else ()


def bank_digest(bank: Path) -> str:
    """SHA-256 over the names and bytes of all bank files. Raises BankError if there are none."""
    digest = hashlib.sha256()
    kinds = ("*.yaml", "*.jsonl", "*.svg")
    files = sorted(
        (path for kind in kinds for path in bank.rglob(kind)),
        key=lambda path: path.relative_to(bank).as_posix(),
    )
    if not files:
        raise BankError(f"{bank}: contains no bank file", code="empty-bank")
    for path in files:
        digest.update(path.relative_to(bank).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
