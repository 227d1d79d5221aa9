"""A study's folder: its file, the runs of its cells, and the models behind its names.

DIR/study.yaml          the file, as it was written
DIR/study.json          the models behind its names, as they were when they were first opened, and
                        the choice of rows of each run
DIR/cells.jsonl         what became of each cell, in the order it happened, see `events`
DIR/ledgers/            the paid calls of all of its judges
DIR/gold/               what its judges said of gold images, before they judged
DIR/runs/SUITE/NAME/    a run of each generator on each suite
DIR/steps/              what the steps of round trips made, which several runs share
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError, InUseError
from ...specs import without_secrets
from ...storage import Lock, holds_only_locks, write_json, write_whole
from ..core import describe
from ..engine.data import RowChoice
from ..engine.evaluation import RunSettings
from ..engine.image_scores import ScoreLog, scoring_identity
from ..engine.run import CASES, HEADER, Run, RunError
from ..store.shards import RunShard
from ..store.verdicts import VerdictLog, judging_identity
from .spec import BIASED, Cell, StudyFile, cells_of, read_study, write_study

FILE = "study.yaml"
MODELS = "study.json"


@dataclass(frozen=True)
class StudyModels:
    """The models behind a study's names, in `study.json`."""

    root: Path
    """Folder of the study."""

    def read(self) -> dict[str, dict[str, dict[str, Any]]]:
        """`generators` by run, `SUITE/NAME`; `judges` and `scorers` by name: `spec`, `identity`;
        `rows` by run, those that choose some.

        Raises DataError for a damaged file.
        """
        models: dict[str, Any] = {}
        try:
            models = json.loads((self.root / MODELS).read_text("utf-8"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.root / MODELS} is damaged: {error}", code="damaged-file"
            ) from None
        return {"generators": {}, "judges": {}, "scorers": {}, "rows": {}} | models

    def remember(self, kind: str, name: str, spec: str, identity: Mapping[str, str]) -> None:
        """Records which model a name stands for. Raises RunError if it stood for another."""
        with starting(self.root):
            models = self.read()
            self.check(kind, name, spec, identity)
            models[kind][name] = {"spec": without_secrets(spec), "identity": dict(identity)}
            write_json(self.root / MODELS, models)

    def check(self, kind: str, name: str, spec: str, identity: Mapping[str, str]) -> None:
        """Raises RunError if a name stood for another model when it was recorded."""
        recorded = self.read()[kind].get(name)
        current = {"spec": without_secrets(spec), "identity": dict(identity)}
        if recorded is not None and recorded["identity"] != current["identity"]:
            raise RunError(
                f"{self.root}: {kind[:-1]} {name!r} is another one now: "
                f"{_difference(recorded, current)}",
                "give it another name, or choose another --out",
                code="another-run",
            )

    def remember_rows(self, cells: Iterable[Cell]) -> None:
        """Records which rows the runs of cells have chosen, the same on every machine and day.

        Raises RunError if a file of ids lists others than it did, DataError if it can't be read.
        """
        choices = {cell.run: cell for cell in cells if cell.only}
        if not choices:
            return
        with starting(self.root):
            models = self.read()
            for run, cell in choices.items():
                choice: dict[str, Any] = {"where": list(cell.where), "ids": cell.ids}
                choice["chosen"] = RowChoice.of(cell.only).name
                earlier = models["rows"].get(run, choice)
                # Of other fields, the check of runs speaks, where any image is made already.
                if cell.ids and earlier["where"] == choice["where"] and earlier != choice:
                    raise RunError(
                        f"{self.root}: {run} was begun with the ids of {earlier['ids']}, and "
                        f"{cell.ids} lists others now",
                        "put them back, or choose another --out",
                        code="another-run",
                    )
                models["rows"][run] = choice
            write_json(self.root / MODELS, models)

    def chosen(self, cell: Cell) -> str:
        """Rows and cases that a cell draws, as its run records it; empty for all.

        A file of ids that is gone is as it was when the study began. Raises DataError for one that
        can't be read, unless that is recorded.
        """
        recorded = self.read()["rows"].get(cell.run, {})
        gone = bool(cell.ids) and not Path(cell.ids).exists()
        if gone and (recorded.get("where"), recorded.get("ids")) == ([*cell.where], cell.ids):
            name = recorded["chosen"]
        else:
            name = RowChoice.of(cell.only).name
        return " ".join(filter(None, (name, BIASED if cell.biased else "")))


@dataclass
class Study:
    """A study's folder."""

    root: Path
    file: StudyFile

    @classmethod
    def open(cls, root: Path) -> Study:
        """Opens a study that was started. Raises RunError for any other folder, and for a file
        that contradicts the study's runs."""
        if not (root / FILE).exists():
            raise RunError(
                f"{root} is not a study",
                f"make one with `counterprior study run FILE --out {root}`",
                code="not-a-study",
            )
        study = cls(root, read_study(root / FILE))
        study.check_runs()
        return study

    @classmethod
    def start(cls, root: Path, file: StudyFile, text: str, held: ExitStack | None = None) -> Study:
        """A new study, or the one that is there if what it has done stays as it is.

        text: of the file, to be written. held: of a shard, what it holds while it works. Raises
        RunError, by name, where the file contradicts runs that are there, and for a folder of
        something else; InUseError where shards with another file work there.
        """
        study = cls(root, file)
        with starting(root):
            if held is not None:
                held.enter_context(study._claim())
            if (root / FILE).exists():
                study.check_runs()
            elif root.exists() and not holds_only_locks(root):
                raise RunError(
                    f"{root} is not empty and not a study",
                    "choose another --out",
                    code="not-a-study",
                )
            else:
                study.write_file(text)
        return study

    def write_file(self, text: str) -> None:
        """Writes the study file."""
        write_whole(self.root / FILE, text)

    @property
    def cells(self) -> list[Cell]:
        """Every cell, by generator, suite and judge."""
        return cells_of(self.file)

    @property
    def models(self) -> StudyModels:
        """The models behind its names."""
        return StudyModels(self.root)

    def run_settings(self, cell: Cell) -> RunSettings:
        """Settings of a cell's run."""
        return RunSettings(
            suite=cell.suite,
            data=self.file.data_of(cell.suite),
            out=self.root / cell.folder,
            seeds=cell.seeds,
            limit=cell.limit,
            variants=cell.variants,
            where=BIASED if cell.biased else "",
            only=cell.only or None,
            shuffled=True,
        )

    def run_of(self, cell: Cell, shard: RunShard | None = None) -> Run | None:
        """A cell's run; None if it has not begun, or was killed before it had its cases."""
        root = self.root / cell.folder
        there = (root / HEADER).exists() and (root / CASES).exists()
        return Run.open(root, shard) if there else None

    def log_of(self, cell: Cell, run: Run) -> VerdictLog | None:
        """The verdicts of a cell's judge; None if there are none yet."""
        model = self.models.read()["judges"].get(cell.judge)
        if model is None or cell.scorer:
            return None
        wanted = judging_identity(model["identity"], cell.persona, cell.frames)
        return next((log for log in run.judges() if dict(log.identity) == wanted), None)

    def scores_of(self, cell: Cell, run: Run) -> ScoreLog | None:
        """The scores of a cell's scorer; None if it was never opened."""
        model = self.models.read()["scorers"].get(cell.judge)
        if model is None:
            return None
        return ScoreLog.of(run, scoring_identity(model["identity"], cell.frames))

    def base_runs(self) -> dict[Path, Path]:
        """Run -> that of the same generator without methods; empty without any method."""
        if not self.file.methods:
            return {}
        return {
            self.root / cell.folder: self.root / "runs" / cell.suite / cell.generator.split("+")[0]
            for cell in self.cells
        }

    def judge_names(self) -> dict[str, str]:
        """Description of each judge that was opened -> its name in the file."""
        opened = self.models.read()["judges"]
        return {
            describe(
                judging_identity(opened[cell.judge]["identity"], cell.persona, cell.frames)
            ): cell.judge
            for cell in self.cells
            if cell.judge in opened
        }

    def _claim(self) -> Lock:
        """A lock that a shard holds while it works. Raises InUseError where shards with another
        study file work."""
        digest = hashlib.sha256(write_study(self.file).encode()).hexdigest()[:12]
        folder_name = f"the study {self.root}"
        own_path = self.root / f"study.file-{digest}.lock"
        claimed = Lock(own_path, folder_name, shared=True)
        for path in sorted(self.root.glob("study.file-*.lock")):
            try:
                if path != own_path:
                    Lock(path, folder_name).release()
            except InUseError:
                claimed.release()
                raise InUseError(
                    f"{folder_name} is in use by shards with another study file"
                    f"{self._changed_keys()}",
                    "give all shards the same file, or wait for their end",
                    code="another-run",
                ) from None
        return claimed

    def _changed_keys(self) -> str:
        """Keys in which this file differs from the written one, in words; empty without any."""
        written = read_study(self.root / FILE).model_dump(by_alias=True)
        file = self.file.model_dump(by_alias=True)
        changed = [name for name in file if file[name] != written[name]]
        return f" (other {', '.join(changed)})" if changed else ""

    def check_runs(self) -> None:
        """Raises RunError where a run that is there was made otherwise than the file says."""
        there = sorted(path.parent for path in self.root.glob(f"runs/*/*/{HEADER}"))
        wanted = {self.root / cell.folder: cell for cell in self.cells}
        if there and not wanted.keys() & set(there):
            run_names = ", ".join("/".join(path.parts[-2:]) for path in there[:3])
            raise RunError(
                f"{self.root} holds another study, of {run_names}: choose another --out",
                code="another-run",
            )
        for root in there:
            if (cell := wanted.get(root)) is None:
                continue  # taken out of the file: it stays, and is in no table
            header = Run.open(root).header
            for name, recorded, setting in (
                ("data", header.data, self.file.data_of(cell.suite)),
                ("limit", header.limit, cell.limit),
                ("seeds", header.common_seeds or header.seeds, cell.seeds),
            ):
                if recorded != setting:
                    raise RunError(
                        f"{root} was made with {name} {recorded}, and the study's file now says "
                        f"{setting}: write {name} {recorded} again, or choose another --out",
                        code="another-run",
                    )
            if header.where != (chosen := self.models.chosen(cell)):
                raise RunError(
                    f"{root} was made with where: {header.where or 'all rows'}, and the study's "
                    f"file now says {chosen or 'all rows'}: put `where` and `ids` back as they "
                    f"were, or choose another --out",
                    code="another-run",
                )


def starting(root: Path) -> Lock:
    """A lock that shards hold for a moment, one after the other, for what all of them write."""
    return Lock(root / "start.lock", f"the study {root}", wait=True)


def _difference(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    if recorded["spec"] != current["spec"]:
        return f"it was {recorded['spec']}, and is {current['spec']}"
    old, new = recorded["identity"], current["identity"]
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{n} was {old.get(n, '-')}, and is {new.get(n, '-')}" for n in changed)
