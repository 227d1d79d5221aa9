"""A run: one generator on one suite, as a folder that every step adds to and none rewrites.

run.json            what was asked for, and the digest of cases.jsonl; a resumed run must ask for
                    the same
cases.jsonl         every image to make: file name, prompt, seed, source
images.jsonl        what became of each, in the order it happened
images/             the images and clips that the run made itself
frames/             of clips, those that were judged, by the clip's SHA-256
texts/              the texts of captioners and round trips, in place of images
sources/            the images that edits start from
checked.txt         which of its files were last seen to be the recorded ones
manifest.jsonl      images of a spatial suite, as `spatial detect` reads them
ledgers/            the paid calls of its judges, and what everything cost
verdicts/JUDGE/     judge.json and verdicts.jsonl, one folder a judge

A shard of a run writes `images.I-of-N.jsonl` and `verdicts.I-of-N.jsonl`, see `store.shards`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import DataError, RunFailed, UsageError
from ...images import ImageError
from ...parsing import Digest, Dollars, parse_as, write_rows
from ...printable import shortened
from ...storage import Lock, holds_only_locks, whole_file, write_json
from ..core import OBSERVED, Case, describe
from ..roundtrips.routes import TRIP
from ..store.answers import AnswerLog, answerer_folder
from ..store.cases import CaseFile, read_cases
from ..store.shards import RunLock, RunShard, shard_name, shard_of_row
from ..store.shared import RecordParser, is_digest, is_text
from ..store.verdicts import VerdictLog

HEADER = "run.json"
CASES = "cases.jsonl"
CHECKED = "checked.txt"
"""Own files that were read and are as recorded, by what they were then; see `Replacement`."""
FORMAT = 2
"""Version of the run folder; older ones can't be resumed."""
LEDGERS = "ledgers"
IMAGES = "images"
"""Stem of the logs of images."""
TEXTS = "texts"
"""Folder of the texts that a captioner or a round trip made in place of images."""
REPLACED = "is not the recorded one any more"
"""Message about an image whose file has other bytes by now."""


class RunError(RunFailed, ValueError):
    """A run folder that can't be used as asked; the message says what to do."""


@dataclass(frozen=True)
class RunHeader:
    """Content of `run.json`: suite, data, sample and generator."""

    suite: str
    """Config."""
    data: str
    """Release folder or repository, as given."""
    rows_sha256: str
    """Logical digest of the config."""
    rows: int
    """Rows that are run."""
    seeds: int
    """Images of each prompt."""
    limit: int | None
    """Rows that were sampled; None for all."""
    generator: Mapping[str, str]
    """Identity of the generator."""
    where: str = ""
    """Name of its subset of cases; all if empty."""
    common_seeds: tuple[int, ...] = ()
    """Seeds of every prompt; each has its own if empty."""
    format: int = FORMAT
    """Version of the folder's layout."""
    case_count: int = 0
    """Lines of the file of cases, which is written whole; 0 until then, and in older runs."""
    cases_sha256: Digest = ""
    """SHA-256 of the file of cases."""
    commit: str = ""
    """Commit of the repository of the rows when the run was started; empty for others."""
    added: int = 0
    """How many of the rows the release has in addition to its frozen ones (v1)."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of one case: an image, a clip or a text, or why there is none."""

    case: str
    """Id of the case."""
    status: str
    """`made`, or why there is none: `missing`, `refused`, `error`."""
    file: str = ""
    """Path, relative to the run where the run made it."""
    sha256: Digest = ""
    """SHA-256 of the file."""
    message: str = ""
    """Description of the failure."""
    report: str = ""
    """Backend metadata (usage, revised prompt) as JSON; empty without any."""
    usd: Dollars = ""
    """Cost in US dollars; empty if free or unknown."""
    stamp: tuple[int, int] | None = None
    """Size and modification time (ns) of a file elsewhere, to notice that it was replaced."""
    frames: int = 0
    """Number of frames of a clip; 0 for an image."""
    fps: float = 0.0
    """Frames per second of a clip; `rate` in its record."""

    @property
    def is_text(self) -> bool:
        """Whether a text was made in place of an image."""
        return self.status == "made" and self.stamp is None and self.file.endswith(".txt")

    def to_record(self) -> dict[str, Any]:
        record = {name: value for name, value in asdict(self).items() if value}
        if self.fps:
            record["rate"] = record.pop("fps")
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> CaseResult:
        """The inverse of `to_record`. Raises DataError for anything else, and for a file that lies
        outside the run and was never found there."""
        image = parse_as(cls, _with_field_names(record), place)
        leads_out = image.file.startswith("/") or ".." in image.file.split("/")
        if "\0" in image.file or (image.stamp is None and leads_out):
            raise DataError(
                f"{place}: file: {image.file!r} lies outside the run", code="outside-folder"
            )
        return image

    @classmethod
    def parser(cls) -> Callable[[dict[str, Any]], CaseResult]:
        """As `AlikePayload.parser`."""
        own = {"case": is_text, "file": _is_inside, "sha256": is_digest}
        images = RecordParser(cls, own)

        def parse(record: dict[str, Any]) -> CaseResult:
            return images.parsed(_with_field_names(record), lambda: cls.from_record(record, ""))

        return parse


def _with_field_names(record: dict[str, Any]) -> dict[str, Any]:
    if "rate" not in record:
        return record
    return {"fps" if name == "rate" else name: value for name, value in record.items()}


def _is_inside(file: Any) -> bool:
    """Whether a path certainly lies inside the run."""
    return type(file) is str and file[:7] == "images/" and ".." not in file and "\0" not in file


def image_path(root: Path, image: CaseResult) -> Path:
    """Where an image of a run lies. Raises DataError where a link leads out of the run."""
    path = root / image.file
    if image.stamp is None and _leads_out(root, image.file):
        raise DataError(
            f"{path} leads out of the run: put the image itself there", code="outside-folder"
        )
    return path


def _leads_out(root: Path, file: str) -> bool:
    """Whether a path below a folder leads out of it."""
    place = str(root)
    for part in file.split("/"):
        place = f"{place}/{part}"
        if part in ("", "..") or os.path.islink(place):
            break
    else:  # resolving takes several times as long as looking for links
        return False
    return not (root / file).resolve().is_relative_to(root.resolve())


def recorded_bytes(root: Path, image: CaseResult) -> bytes:
    """The bytes of an image, clip or text, for who is about to judge them: a verdict on others
    would stand under the digest of these.

    Raises ImageError where they can't be read, or are not the recorded ones any more.
    """
    try:
        data = image_path(root, image).read_bytes()
    except FileNotFoundError:
        raise ImageError("does not exist", code="no-such-file") from None
    except OSError as error:
        raise ImageError(f"can't be read: {error.strerror}", code="unreadable-image") from None
    if hashlib.sha256(data).hexdigest() != image.sha256:
        raise ImageError(REPLACED, code="changed-file")
    return data


def differs(root: Path, image: CaseResult) -> bool:
    """Whether an image's file does not hold the recorded bytes, or can't be read."""
    try:
        with image_path(root, image).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() != image.sha256
    except OSError:
        return True


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Size and modification time (ns) of a file; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


@dataclass
class Run:
    """A run folder."""

    root: Path
    """The folder."""
    header: RunHeader
    """Suite, data, sample and generator."""
    shard: RunShard | None = None
    """Shard that this process adds to; None for the entire run."""
    _held: Mapping[str, CaseResult] | None = field(default=None, repr=False)
    _logs: dict[Path, VerdictLog] = field(default_factory=dict, repr=False)
    _has_checked_cases: bool = field(default=False, repr=False)

    @classmethod
    def start(
        cls, root: Path, header: RunHeader, cases: Iterable[Case], shard: RunShard | None = None
    ) -> Run:
        """A new run, or the one that is there if it is of the same. Raises RunError if not."""
        if (root / HEADER).exists():
            run = cls.open(root, shard)
            difference = _difference(run.header, header)
            if difference and run._may_be_found_by(header):
                run.header = replace(run.header, generator=header.generator)
                run._write_header()
            elif difference:
                raise RunError(
                    f"{root} is of another run: {difference}. Choose another --out",
                    code="another-run",
                )
        else:
            if root.exists() and not holds_only_locks(root):
                raise RunError(
                    f"{root} is not empty and not a run: choose another --out",
                    code="folder-not-empty",
                )
            run = cls(root, header, shard)
            run._write_header()
        run._keep_cases(cases)
        return run

    def _may_be_found_by(self, header: RunHeader) -> bool:
        """Whether another spec may look for its images: no folder has had any so far, so there is
        nothing that the other would contradict."""
        others = replace(self.header, generator=header.generator)
        kinds = {side.generator.get("kind") for side in (self.header, header)}
        is_same = kinds == {"folder"} and not _difference(others, header)
        return is_same and not any(image.status == "made" for image in self.images().values())

    def _write_header(self) -> None:
        plain = asdict(self.header)
        unset = {k for k in _LATER if not plain[k]}
        write_json(self.root / HEADER, {k: v for k, v in plain.items() if k not in unset})

    def _keep_cases(self, cases: Iterable[Case]) -> None:
        """Writes the file of cases where it is not there, as after a kill, or not as recorded."""
        path, recorded = self.root / CASES, self.header.cases_sha256
        if recorded and path.exists() and _digest_of(path) == recorded:
            return
        if recorded or not _ends_with_line(path):
            write_rows(path, map(_plain, cases))
        digest = _digest_of(path)
        if recorded and digest != recorded:
            raise RunError(
                f"{path} was changed, and the cases of {self.header.data} are others today: "
                f"restore it from a backup, or choose another --out",
                code="changed-file",
            )
        with path.open("rb") as file:
            count = sum(1 for _ in file)
        self.header = replace(self.header, case_count=count, cases_sha256=digest)
        self._write_header()

    def _check_cases(self) -> None:
        """Raises DataError where the file of cases is not as it was written: fewer cases would give
        wrong numbers, and nobody would see it."""
        path = self.root / CASES
        if self._has_checked_cases or not path.exists():
            return
        if self.header.cases_sha256 and _digest_of(path) != self.header.cases_sha256:
            with path.open("rb") as file:
                count = sum(1 for line in file if line.endswith(b"\n"))
            raise DataError(
                f"{path} is not as it was written: it has {count:,} of {self.header.case_count:,} "
                f"cases; run the command that made the run again, or restore the file",
                code="changed-file",
            )
        self._has_checked_cases = True

    @classmethod
    def open(cls, root: Path, shard: RunShard | None = None) -> Run:
        """A run that was started. Raises RunError where there is none, or an older one."""
        try:
            plain = json.loads((root / HEADER).read_text("utf-8"))
        except FileNotFoundError:
            raise RunError(
                f"{root} is not a run: make one with `counterprior generate`", code="not-a-run"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{root / HEADER} is damaged: {error}", code="damaged-file") from None
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise RunError(
                f"{root} was made by another version: make it again in another --out",
                code="another-version",
            )
        return cls(root, parse_as(RunHeader, plain, str(root / HEADER)), shard)

    def lock(self) -> RunLock:
        """Held while something is added. Raises InUseError where another process adds the same."""
        return RunLock(self.root, self.shard)

    def starting(self) -> Lock:
        """Held for a moment by one shard after the other, for what all of them write alike."""
        return Lock(self.root / "start.lock", f"the run {self.root}", wait=True)

    def held(self) -> Run:
        """The run with its images, and its cases once they are asked for, in memory: for who looks
        at all of them often and adds nothing."""
        images = {case: of_case[-1] for case, of_case in self.results.read().items()}
        run = replace(self, _held=images)
        run._check_cases()
        return run

    def cases(self) -> Sequence[Case]:
        """Every case, in the order of the config."""
        if self._held is not None:
            return self._held_cases
        self._check_cases()
        return CaseFile(self.root / CASES)

    def count_cases(self) -> int:
        """Number of its cases. Raises DataError where their file is not as it was written."""
        self._check_cases()
        return self.header.case_count or len(self.cases())

    @cached_property
    def _held_cases(self) -> list[Case]:
        return read_cases(self.root / CASES)

    @cached_property
    def _held_present(self) -> dict[str, str]:
        return dict(self.iter_present())

    def own_cases(self) -> CaseFile:
        """The cases of this process' shard; all where there is none."""
        self._check_cases()
        return CaseFile(self.root / CASES, self.shard)

    @cached_property
    def results(self) -> AnswerLog[CaseResult]:
        """Results of the cases so far, as this process has read or recorded them."""
        return AnswerLog(self.root, IMAGES, CaseResult, key="case", shard=self.shard)

    def images(self) -> Mapping[str, CaseResult]:
        """Case -> its result so far."""
        return self.results if self._held is None else self._held

    def image_path(self, image: CaseResult) -> Path:
        """Where the image lies. Raises DataError where a link leads out of the run."""
        return image_path(self.root, image)

    def replaced(self) -> list[str]:
        """Cases whose file was replaced since it was recorded, or removed where it lies elsewhere.

        What was recorded of an own file that is gone stands.
        """
        made = (image for image in self.images().values() if image.status == "made")
        if self._held is not None:
            return [image.case for image in made if image.case not in self._held_present]
        is_replaced = self.replacement()
        replaced = [image.case for image in made if is_replaced(image)]
        is_replaced.keep()
        return replaced

    def present(self, cases: Iterable[Case] | None = None) -> dict[str, str]:
        """Case -> SHA-256 of its image, where there is one and it is still the recorded one.

        cases: only these are looked at; all where None.
        """
        if cases is None and self._held is not None:
            return self._held_present
        return dict(self.iter_present(cases))

    def iter_present(self, cases: Iterable[Case] | None = None) -> Iterator[tuple[str, str]]:
        """Yields the items of `present`."""
        images, replaced = self.images(), self.replacement()
        case_ids = images if cases is None else (case.id for case in cases if case.id in images)
        for image in (images[name] for name in case_ids):
            if image.status == "made" and not replaced(image):
                yield image.case, image.sha256
        if cases is None:
            replaced.keep()

    def replacement(self) -> Replacement:
        """Returns a check whether an image's file has other bytes than the recorded ones."""
        return Replacement(self)

    def notes(self, cases: Iterable[Case] | None = None) -> list[str]:
        """Notes about the images: repeated ones, and remarks of the backend that made them."""
        reports = {i.report for i in self.images().values() if '"note"' in i.report}
        noted = sorted({str(json.loads(report).get("note", "")) for report in reports} - {""})
        return [*noted, *self._repeats(cases)]

    def _repeats(self, cases: Iterable[Case] | None) -> list[str]:
        made_by = self.header.generator
        if TRIP in (made_by["kind"], made_by.get("inner_kind")):  # what comes back is measured
            return []
        made = (image for image in self.images().values() if image.status == "made")
        digests = {image.case: image.sha256 for image in made if not image.is_text}
        if len(set(digests.values())) == len(digests):  # as usual; the cases need not be read
            return []
        same: dict[str, list[tuple[str, str, int]]] = {}
        meanings: dict[str, set[tuple[str, str]]] = {}
        for case in self.cases() if cases is None else cases:
            if case.id in digests:
                same.setdefault(digests[case.id], []).append((case.prompt, case.source, case.seed))
                # Both instructions of a row may ask for the same edit, in either order of mention.
                meaning = case.row if case.source else case.prompt
                meanings.setdefault(digests[case.id], set()).add((meaning, case.source))
        total = sum(map(len, same.values()))
        groups = [requests for requests in same.values() if len(requests) > 1]
        # Two questions about one image are cases of one seed.
        seeds = (Counter((prompt, source) for prompt, source, _ in set(asked)) for asked in groups)
        of_seeds = sum(n for counts in seeds for n in counts.values() if n > 1)
        of_prompts = sum(len(same[digest]) for digest, asked in meanings.items() if len(asked) > 1)
        who = describe(self.header.generator)
        notes = []
        if of_seeds:
            notes.append(
                f"{who} does not use its seeds: {of_seeds:,} of {total:,} images are byte for byte "
                f"those of another seed of the same prompt, so n counts copies"
            )
        if of_prompts:
            notes.append(
                f"{of_prompts:,} of {total:,} images are byte for byte those of another prompt: "
                f"{who} may not read its prompts, or files are named wrongly"
            )
        return notes

    def unmade(self) -> str:
        """How many images could not be made, and why the first; empty if none failed."""
        failed = [image for image in self.images().values() if image.status == "error"]
        if not failed:
            return ""
        count = f"{len(failed):,} image{'s' * (len(failed) > 1)}"
        return f"{count} could not be made, the first: {shortened(failed[0].message)}"

    def judges(self) -> list[VerdictLog]:
        """Every judge that has judged here, by name."""
        folders = sorted(path.parent for path in (self.root / "verdicts").glob("*/judge.json"))
        return [VerdictLog.open(folder) for folder in folders]

    def judge(self, identity: Mapping[str, str]) -> VerdictLog:
        """A judge's verdicts, in a folder that is made where it isn't there."""
        folder = answerer_folder(self.root / "verdicts", identity)
        if folder not in self._logs:  # read once: a race asks for one case after the other
            self._logs[folder] = VerdictLog.start(folder, identity, self.shard)
        return self._logs[folder]

    def chosen_judges(self, names: Sequence[str]) -> list[VerdictLog]:
        """The judges that the names choose, all without names, none of them empty.

        A name is a judge's kind, `kind:model`, description or folder; it also chooses a judge that
        had nothing to judge. Raises RunError where nobody has judged, UsageError for a name of none
        or of several.
        """
        judges = [judge for judge in self.judges() if names or not judge.is_empty]
        without_image = "" if names else self._nothing_to_judge()
        if without_image or not judges:
            raise RunError(
                without_image
                or f"{self.root}: nobody has judged it; run `counterprior judge {self.root} "
                f"--judge ...`",
                code="nothing-judged",
            )
        choices = ", ".join(judge.name for judge in judges)
        chosen = []
        for name in names:
            matches = [judge for judge in judges if name in judge.names]
            if len(matches) != 1:
                problem = "has no judge" if not matches else "has several judges"
                raise UsageError(
                    f"{self.root} {problem} {name!r}: choose from {choices}", code="unknown-name"
                )
            chosen += matches
        return chosen or judges

    def _nothing_to_judge(self) -> str:
        """Why no judge can help, where no image was made; else empty."""
        images = self.images()
        if not images or any(image.status == "made" for image in images.values()):
            return ""
        counts = Counter(image.status for image in images.values())
        statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()))
        first = next(iter(images.values()))
        return f"{self.root}: no image to judge ({statuses}); the first: {first.message}"

    def check_complete(self) -> None:
        """Raises RunError where images were never made, as after a kill of `generate`; of a shard,
        where its own were not."""
        cases, images = self.cases() if self.shard is None else self.own_cases(), self.images()
        waiting = [case for case in cases if case.id not in images]
        if waiting:
            raise RunError(
                f"{self.root}: {len(waiting):,} of {len(cases):,} images were never made"
                f"{self.lacking(waiting)}; run `counterprior generate` again first",
                code="incomplete-run",
            )

    def check_files(self) -> None:
        """Raises RunError for a run that came without its images, as from a publication."""
        if (self.root / "images").is_dir():
            return
        made = [image for image in self.images().values() if image.status == "made"]
        if made and all(image.stamp is None and not image.is_text for image in made):
            raise RunError(
                f"{self.root} came without its images: it can be scored and packed, and no other "
                f"judge or publication can have them",
                code="no-images",
            )

    def shards_of_cases(self, count: int) -> dict[str, int]:
        """Case -> number of its shard, from 1, out of `count`."""
        shard_of_case: dict[str, int] = {}
        row, number = "", -1
        for case in self.cases():
            if case.row != row:
                row, number = case.row, number + 1
            shard_of_case[case.id] = shard_of_row(number, count)
        return shard_of_case

    def lacking(self, cases: Iterable[Case], log: VerdictLog | None = None) -> str:
        """Sentence on the shards that lack these cases; empty if the run was not made in shards.

        log: a judge's verdicts, where these are lacking.
        """
        written = [*self.root.glob(f"{IMAGES}.*"), *(log.root.glob("verdicts.*") if log else ())]
        matches = (re.fullmatch(r"\w+\.\d+-of-(\d+)\.jsonl", path.name) for path in written)
        counts = {int(match[1]) for match in matches if match}
        if len(counts) != 1 or self.shard is not None:
            return ""
        (count,) = counts
        shard_of_case = self.shards_of_cases(count)
        lost = Counter(shard_of_case[case.id] for case in cases)
        lacks = (f"{shard_name((i, count))} lacks {n:,}" for i, n in sorted(lost.items()))
        return f" ({', '.join(lacks)})" if lost else ""

    def check_made(self) -> None:
        """Raises RunFailed if there is no image to judge."""
        if why := self._nothing_to_judge():
            raise RunFailed(why, code="all-failed")


_OF_CASES = ("case_count", "cases_sha256")
_LATER = ("where", "common_seeds", "commit", *_OF_CASES)
"""Fields of the header that are left out where they say nothing."""


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ends_with_line(path: Path) -> bool:
    """Whether a file is there and no line of it was cut off."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:
        return False


def _plain(case: Case) -> dict[str, Any]:
    """A case without what it took from its row: that is in the release."""
    names = sorted(Case.__dataclass_fields__)
    return {
        name: getattr(case, name)
        for name in names
        if name != "fields" and (case.key or name != "key")
    }


def _difference(recorded: RunHeader, requested: RunHeader) -> str:
    """Differences between two headers; empty if they describe the same run.

    What a server says of itself is compared where both know it: it may be down now.
    """
    old, new = asdict(recorded), asdict(requested)
    common = old["generator"].keys() & new["generator"].keys()
    changed = []
    for name in (n for n in old if n not in (*_OF_CASES, "commit")):
        before, now = old[name], new[name]
        if name == "generator":
            before, now = (
                {k: v for k, v in side.items() if k in common or not k.startswith(OBSERVED)}
                for side in (before, now)
            )
        if before != now:
            changed.append(
                f"{name} {_value_text(before, now)} there, {_value_text(now, before)} asked"
            )
    return "; ".join(changed)


def _value_text(value: Any, other: Any) -> str:
    """A value, and what an identity has other than another one where its name tells them apart."""
    if not isinstance(value, Mapping):
        return str(value)
    if describe(value) != describe(other):
        return describe(value)
    differing = ", ".join(f"{k}={v}" for k, v in value.items() if other.get(k) != v)
    return f"{describe(value)} ({differing or 'without'})"


class Replacement:
    """Says whether an image's file holds other bytes than the recorded ones.

    Bytes are compared, not times: an own file is read, unless it is the very file (size, times,
    inode) that an earlier look has read and found as recorded. A copied folder has new files, and
    is read once.
    """

    def __init__(self, run: Run) -> None:
        self._root = run.root
        self._checked = _read_checked(run.root / CHECKED)
        self._has_new = False

    def __call__(self, image: CaseResult) -> bool:
        if image.stamp is not None:
            return stamp_of(image_path(self._root, image)) != image.stamp
        if image.status != "made" or not image.file:
            return False
        try:
            file = os.stat(f"{self._root}/{image.file}")
        except OSError:
            return False
        # The time of a change of its inode is the system's: nobody sets it back with a command.
        times = f"{file.st_size} {file.st_mtime_ns} {file.st_ctime_ns} {file.st_ino}"
        looked_at = hashlib.sha256(f"{image.sha256} {times}".encode()).hexdigest()[:32]
        if self._checked.get(image.file) == looked_at:
            return False
        is_replaced = differs(self._root, image)
        if not is_replaced:
            self._checked[image.file] = looked_at
            self._has_new = True
        return is_replaced

    def may_show(self, image: CaseResult) -> bool:
        """Whether what lies there are the recorded bytes, for who is about to show them.

        A run folder names files elsewhere: one from somebody else must show nothing that its maker
        did not have. So those are read, whatever their stamp says.
        """
        return not (self(image) if image.stamp is None else differs(self._root, image))

    def keep(self) -> None:
        """Records what was read and is as recorded, so that one command reads it, not each."""
        if self._has_new and self._root.is_dir():  # else it was moved
            # Not in a folder that only others may write.
            with suppress(OSError), whole_file(self._root / CHECKED) as file:
                for name in sorted(self._checked):
                    line = f"{self._checked[name]} {name}\n"
                    file.write(line.encode("utf-8", "backslashreplace"))
            self._has_new = False


def _read_checked(path: Path) -> dict[str, str]:
    """File -> digest of what it was when it was read; nothing where that can't be known."""
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            recorded = (line.rstrip("\n").partition(" ") for line in lines)
            return {file: looked_at for looked_at, _, file in recorded if file}
    except (OSError, ValueError):
        return {}
