"""Is a release folder what it says it is? Every problem names file, row and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib import metadata, util
from itertools import zip_longest
from pathlib import Path

from ..cpus import spawned
from ..extras import install_command
from ..progress import Progress, silent
from ..release import (
    CHECKSUMS,
    UNVOUCHED,
    Problem,
    digests_remembered,
    listed_configs,
    read_checksums,
    refuse_pipes,
    verify,
    verify_files,
)
from ..schema import ROWS, SeededRow, image_columns
from ..storage import collector_paused
from .config_checks import (
    CheckRows,
    ConfigChecks,
    ConfigFaults,
    Origin,
    checked_elsewhere,
    nothing_drawn,
    unknown_config,
)
from .croissant_records import record_problems
from .documents import render_documents
from .manifest import MANIFEST, Manifest, read_manifest, readings_of

LARGE = 20_000_000
"""Bytes of rows from which on several processes check a release sooner than one."""


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
    rows, not a sample, and every seed image is decoded. With several `jobs`, configs are checked in
    processes of their own, which must be able to import `check_rows` and what `origin` calls.
    Raises ReleaseError if `root` has no readable manifest or checksums.
    """
    refuse_pipes(root)
    manifest = read_manifest(root)
    if not _is_large(manifest) or quick:
        jobs = 1  # other processes would start in vain
    skipped = "" if origin is None else not_comparable(manifest, origin)
    compared_with = None if skipped else origin
    checks = ConfigChecks(
        root,
        manifest.seed,
        check_rows,
        # Reviews and counts of drawings belong to the whole release: they stay here.
        compared_with and replace(compared_with, people=None, drawn=nothing_drawn),
        None if origin is None or every else origin.kept_seeds,
        nullcontext if origin is None else origin.draw_beside,
    )
    croissant, by_config = list[Problem](), list[ConfigFaults]()
    with collector_paused(), digests_remembered(), _beside(jobs - 1) as pool:
        begun = None
        if pool is not None:
            begun = pool.submit(_croissant_problems, root, manifest, every=every)
        problems = verify_files(root)
        stated, notes = _stated_problems(root, manifest)
        if not quick:
            if begun is None:
                croissant = _croissant_problems(root, manifest, progress, every=every)
            by_config = _check_configs(pool, checks, manifest, progress)
        if begun is not None:
            croissant = begun.result()
    for faults in by_config:
        if origin is not None and faults.drawn is not None:
            origin.count_drawn(faults.drawn)
    of_files = {faults.name: faults.digest for faults in by_config}
    problems += [problem for name in ROWS for problem in of_files.get(name, ())]
    problems += [*stated, *croissant, *(p for faults in by_config for p in faults.images)]
    if (root / ".gitattributes").exists():
        message = "is the Hub's own file and would change how it stores the others: remove it"
        problems.append(Problem(".gitattributes", message))
    for config in manifest.configs:
        if config.elsewhere and manifest.holdout is None:
            message = f"says {config.elsewhere}, but without a hold-out all rows are here"
            problems.append(Problem(MANIFEST, message, config.name, "elsewhere"))
    problems += [problem for faults in by_config for problem in faults.rows]
    compared = ""
    if compared_with is not None and not quick:
        problems += origin_problems(manifest, compared_with)
        problems += [problem for faults in by_config for problem in faults.bank]
        compared = _comparison(manifest, by_config[: len(manifest.configs)], compared_with)
    if skipped:
        notes.append(skipped)
    # An image that can't be decoded may be a fault of several checks.
    return ReleaseReport(str(root), tuple(dict.fromkeys(problems)), tuple(notes), compared)


def _is_large(manifest: Manifest) -> bool:
    return sum(config.bytes for config in manifest.configs) > LARGE


@contextmanager
def _beside(processes: int) -> Iterator[ProcessPoolExecutor | None]:
    """So many other processes; None for none."""
    if not processes:
        yield None
        return
    pool = spawned(processes)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt waits for nothing
        raise
    pool.shutdown()


def _croissant_problems(
    root: Path, manifest: Manifest, progress: Progress = silent, *, every: bool = False
) -> list[Problem]:
    """Where Croissant records are not the rows; none without mlcroissant, which a note says."""
    if util.find_spec("mlcroissant") is None:
        return []
    with collector_paused():
        return list(record_problems(root, manifest, progress, every=every))


def _check_configs(
    pool: ProcessPoolExecutor | None,
    checks: ConfigChecks,
    manifest: Manifest,
    progress: Progress,
) -> list[ConfigFaults]:
    """The faults of each config of the manifest, then of others that the checksums list.

    Other processes begin with the first config. This one takes those whose images it draws, for
    which it has processes of its own, and then the last that nobody has begun.
    """
    listed = listed_configs(checks.root)
    stated = [(config.name, config, listed.get(config.name)) for config in manifest.configs]
    names = {config.name for config in manifest.configs}
    asked = [*stated, *((name, None, entry) for name, entry in listed.items() if name not in names)]
    begun: dict[int, Future[ConfigFaults]] = {}
    order = list(range(len(asked)))
    if pool is not None:
        own = [number for number in order if _is_drawn(asked[number][0])]
        for number in order:
            if number not in own:
                begun[number] = pool.submit(checked_elsewhere, checks, *asked[number])
        order = [*own, *reversed(begun)]
    checked: dict[int, ConfigFaults] = {}
    for done, number in enumerate(order):
        progress("rows", done, len(order))
        if number not in begun or begun[number].cancel():
            checked[number] = checks.check(*asked[number])
        else:
            checked[number] = begun[number].result()
    progress("rows", len(order), len(order))
    return [checked[number] for number in range(len(asked))]


def _is_drawn(name: str) -> bool:
    """Whether a bank gives the images of a config, which it has to draw."""
    return name in ROWS and bool(image_columns(name)) and not issubclass(ROWS[name], SeededRow)


def integrity(
    root: Path, manifest: Manifest, load: Callable[[], Iterable[Problem]] = tuple, jobs: int = 1
) -> tuple[list[Problem], list[str]]:
    """Whether bytes, rows, checksums, manifest, documents and Croissant agree.

    load: further checks. With several `jobs`, another process reads a large release by Croissant
    meanwhile. Returns what is wrong and what could not be checked.
    """
    with _beside(int(_is_large(manifest) and jobs > 1)) as pool:
        begun = pool and pool.submit(_croissant_problems, root, manifest)
        stated, notes = _stated_problems(root, manifest)
        problems = [*verify(root), *stated]
        loaded = list(load())
        croissant = begun.result() if begun else _croissant_problems(root, manifest)
    return [*problems, *croissant, *loaded], notes


def _stated_problems(root: Path, manifest: Manifest) -> tuple[list[Problem], list[str]]:
    """Where checksums and documents say something else than the manifest, and which of them can't
    be compared."""
    problems, notes = list(_checksum_problems(root, manifest)), list[str]()
    made_with = manifest.made_with["counterprior"]
    if made_with == metadata.version("counterprior"):
        problems += _document_problems(root, manifest)
    else:
        notes.append(f"documents not compared: counterprior {made_with} rendered them")
    if util.find_spec("mlcroissant") is None:
        notes.append(f"Croissant records not iterated: {install_command('croissant')}")
    return problems, notes


def not_comparable(manifest: Manifest, origin: Origin) -> str:
    """Why rows can't be compared with a bank; empty if they can."""
    bank = f"bank {manifest.bank_sha256[:12]}"
    if origin.sha256 != manifest.bank_sha256:
        return f"rows not compared with the {bank} that they are of; give it with --bank"
    made_with = manifest.made_with["counterprior"]
    if made_with != metadata.version("counterprior"):
        return f"rows not compared with their {bank}: counterprior {made_with} built them"
    return ""


def origin_problems(manifest: Manifest, origin: Origin) -> Iterator[Problem]:
    """Where the manifest does not state the reviews of the bank."""
    if origin.reviews is not None and manifest.reviews != list(origin.reviews):
        yield Problem(MANIFEST, "are not those of the bank", field="reviews")
    names = [config.name for config in manifest.configs]
    if origin.readings is not None and manifest.readings != readings_of(origin.readings, names):
        yield Problem(MANIFEST, "are not those of the bank", field="readings")
    if origin.people is not None and manifest.people != origin.people(names):
        yield Problem(MANIFEST, "is not that of the bank", field="people")


def _comparison(manifest: Manifest, checked: Sequence[ConfigFaults], origin: Origin) -> str:
    """What was compared with what, as the report says it."""
    skipped = [faults.name for faults in checked if not faults.is_compared]
    without = f" (not {', '.join(skipped)}: their seed is secret)" if skipped else ""
    text = (
        f"rows compared with bank {manifest.bank_sha256[:12]}{without}, seed images not"
        f"{origin.drawn()}"
    )
    if kept := sum(faults.kept for faults in checked):
        text += f"; {kept:,} seed images are kept drawings, the others were decoded"
    return text


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
    if unknown := [config.name for config in manifest.configs if config.name not in ROWS]:
        yield unknown_config(unknown[0])  # whose columns nobody can render
        return
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
