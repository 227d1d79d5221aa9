"""A run: one generator on one suite, as a folder that every step adds to and none rewrites.

run.json            what was asked for; a resumed run must ask for the same
cases.jsonl         every picture that is wanted: file name, prompt, seed, source
images.jsonl        what became of each, as it came
images/             the pictures that the run made itself
sources/            the pictures that edits start from
manifest.jsonl      the same of a spatial suite, as `detect` reads it
verdicts/JUDGE/     judge.json and verdicts.jsonl, one folder a judge
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import RunFailed
from ...storage import RecordLog, read_records, write_whole
from ..core import Case

HEADER = "run.json"


class RunError(RunFailed, ValueError):
    """A run folder that can't be used as asked; the message says what to do."""


@dataclass(frozen=True)
class RunHeader:
    """What a run is of."""

    suite: str
    """Config."""
    data: str
    """Release folder or repository, as given."""
    rows_sha256: str
    """Logical digest of the config."""
    rows: int
    """Rows that are run."""
    seeds: int
    """Pictures of each prompt."""
    limit: int | None
    """Rows that were sampled; None for all."""
    generator: Mapping[str, str]
    """Identity of the generator."""


@dataclass(frozen=True)
class MadeImage:
    """What became of one case's picture."""

    case: str
    """Id of the case."""
    status: str
    """`made`, or why there is none: `missing`, `refused`, `error`."""
    file: str = ""
    """Path, relative to the run where the run made it."""
    sha256: str = ""
    """Of the file."""
    message: str = ""
    """What went wrong."""
    report: str = ""
    """What the backend said of making it (usage, revised prompt), as JSON; empty where nothing."""
    usd: str = ""
    """What it cost, US dollars; empty where nothing, or nobody knows."""


class Run:
    """A run folder."""

    def __init__(self, root: Path, header: RunHeader) -> None:
        self.root = root
        self.header = header

    @classmethod
    def start(cls, root: Path, header: RunHeader, cases: list[Case]) -> Run:
        """A new run, or the one that is there if it is of the same. Raises RunError if not."""
        path = root / HEADER
        if path.exists():
            found = cls.open(root)
            if found.header != header:
                raise RunError(f"{root} is of another run: {_difference(found.header, header)}")
            return found
        if root.exists() and any(root.iterdir()):
            raise RunError(f"{root} is not empty and no run: choose another --out")
        root.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(asdict(case), sort_keys=True, ensure_ascii=False) for case in cases]
        write_whole(root / "cases.jsonl", "".join(line + "\n" for line in lines))
        write_whole(path, json.dumps(asdict(header), indent=2, sort_keys=True) + "\n")
        return cls(root, header)

    @classmethod
    def open(cls, root: Path) -> Run:
        """A run that was started. Raises RunError where there is none."""
        try:
            header = RunHeader(**json.loads((root / HEADER).read_text("utf-8")))
        except FileNotFoundError:
            raise RunError(f"{root} is no run: make one with `counterprior generate`") from None
        except (TypeError, ValueError) as error:
            raise RunError(f"{root / HEADER} is damaged: {error}") from None
        return cls(root, header)

    def cases(self) -> list[Case]:
        """Every case, in the order of the config."""
        return [
            Case(**{**record, "clusters": tuple(record["clusters"])})
            for record in read_records(self.root / "cases.jsonl")
        ]

    def images(self) -> dict[str, MadeImage]:
        """What became of the cases so far, by case id; the newest record of each."""
        return {image.case: image for image in self.attempts()}

    def attempts(self) -> Iterator[MadeImage]:
        """Every record of a picture, those that a later one replaced too, oldest first."""
        return (MadeImage(**record) for record in read_records(self.root / "images.jsonl"))

    def image_log(self) -> RecordLog:
        return RecordLog(self.root / "images.jsonl")

    def image_path(self, image: MadeImage) -> Path:
        """Where the picture lies."""
        return self.root / image.file

    def judges(self) -> Iterator[JudgeFolder]:
        """Every judge that has judged here, by name."""
        for path in sorted((self.root / "verdicts").glob("*/judge.json")):
            yield JudgeFolder(path.parent, json.loads(path.read_text("utf-8")))

    def judge(self, identity: Mapping[str, str]) -> JudgeFolder:
        """The folder of a judge's verdicts, made where it isn't there."""
        digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()
        folder = self.root / "verdicts" / f"{identity['kind']}-{digest[:8]}"
        path = folder / "judge.json"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(dict(identity), indent=2, sort_keys=True) + "\n")
        return JudgeFolder(folder, identity)


@dataclass(frozen=True)
class JudgeFolder:
    """One judge's verdicts on one run."""

    root: Path
    """Folder."""
    identity: Mapping[str, str]
    """The judge."""

    @property
    def name(self) -> str:
        return self.root.name

    def verdicts(self) -> Iterator[dict[str, Any]]:
        return read_records(self.root / "verdicts.jsonl")

    def log(self) -> RecordLog:
        return RecordLog(self.root / "verdicts.jsonl")


def _difference(found: RunHeader, asked: RunHeader) -> str:
    old, new = asdict(found), asdict(asked)
    changed = [f"{name} {old[name]} there, {new[name]} asked" for name in old
               if old[name] != new[name]]  # fmt: skip
    return "; ".join(changed) + ". Choose another --out"
