"""Scores that were kept are taken while nothing that decides them has changed, and never after."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_doubles import study_file
from typer.testing import CliRunner

from counterprior import kept
from counterprior.cli.main import app
from counterprior.eval.engine.run import Run
from counterprior.eval.results import kept_scores
from counterprior.eval.results.contents import read_contents
from counterprior.eval.results.judge_card import comparable_of, prompt_versions
from counterprior.eval.results.judge_check import JudgeCheck, write_checks
from counterprior.eval.results.parallel import score_results
from counterprior.eval.results.scoring import ScoreSettings, results_json, score_run
from counterprior.eval.suites import open_suite
from counterprior.kept import digest_of_code
from counterprior.storage import read_records

Cli = Callable[..., subprocess.CompletedProcess[str]]
SUITE = "t2i_correctness"
MARK = "123456.5"
"""Value of a score that nobody computed."""


@pytest.fixture(scope="module")
def made(text_release: Path, tmp_path_factory: pytest.TempPathFactory, cli: Cli) -> Path:
    """A folder with a study of two generators and two judges, and labels of a few images."""
    folder = tmp_path_factory.mktemp("made")
    plain = study_file(text_release, {SUITE: {"limit": 12}}, ("red", "blue"), ("ann", "ben"))
    (folder / "study.yaml").write_text(json.dumps({**plain, "unchecked": True}))
    done = cli("study", "run", folder / "study.yaml", "--out", folder / "study", "--trust")
    assert done.returncode == 0, done.stderr
    run = Run.open(folder / "study" / "runs" / SUITE / "red")
    images = sorted(run.images().items())[:8]
    rows = [f"{case},arrangement,correct,{image.sha256}\n" for case, image in images]
    (folder / "labels.csv").write_text("".join(["case,question,label,image\n", *rows]))
    return folder


class Tables:
    """A copy of the study, and a cache for what is computed from it."""

    def __init__(self, made: Path, folder: Path, cli: Cli) -> None:
        self.folder, self._cli = folder, cli
        shutil.copytree(made, folder, dirs_exist_ok=True)
        self.study, self.cache = folder / "study", folder / "cache"
        self.run = self.study / "runs" / SUITE / "red"
        self.log = next(iter(sorted(self.run.glob("verdicts/*/verdicts.jsonl"))))

    def says(self, *words: object, cache: Path | None = None) -> str:
        env = {**os.environ, "COUNTERPRIOR_CACHE": str(cache or self.cache)}
        done = self._cli(*words, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def table(self, *words: object, cache: Path | None = None) -> str:
        return self.says("study", "table", self.study, "--format", "json", *words, cache=cache)

    def fresh(self, *words: object) -> str:
        """The table of a process that has kept nothing."""
        cache = self.folder / "nothing"
        shutil.rmtree(cache, ignore_errors=True)
        return self.table(*words, cache=cache)

    def kept(self) -> list[Path]:
        return sorted(path for path in self.cache.glob("scores/*/*/*") if path.is_file())

    def mark(self, letters: bool = True) -> None:
        """Puts values, and letters, that nobody computed into what is kept, rightly sealed."""
        marked = 0
        for path in self.kept():
            data = path.read_bytes()[32:]
            data, changes = re.subn(rb'"value": -?[0-9][^,]*', f'"value": {MARK}'.encode(), data)
            if letters:
                data = re.sub(rb'("red"|"blue"): "[A-Z]+"', rb'\1: "Z"', data)
            path.write_bytes(hashlib.sha256(path.name.encode() + data).digest() + data)
            marked += changes
        assert marked

    def use_labels(self) -> None:
        file = self.study / "study.yaml"
        plain = json.loads(file.read_text()) | {"labels": {SUITE: str(self.folder / "labels.csv")}}
        file.write_text(json.dumps(plain))


@pytest.fixture
def tables(made: Path, tmp_path: Path, cli: Cli) -> Tables:
    return Tables(made, tmp_path, cli)


def test_a_table_takes_the_scores_of_an_earlier_one(tables: Tables) -> None:
    files = {path for path in tables.study.rglob("*") if path.name != "checked.txt"}
    first = tables.table()
    assert tables.table() == first == tables.fresh() and MARK not in first
    # Nothing is written into the study: it may be somebody else's.
    assert {path for path in tables.study.rglob("*") if path.name != "checked.txt"} == files
    tables.mark()
    values = tables.table().count(f'"value": {MARK}')
    assert values == first.count('"value": ')
    csv = tables.says("study", "table", tables.study, "--format", "csv")
    assert csv.count(MARK) == values, "another form is of the same scores"


def edited_verdict(tables: Tables) -> None:
    """Two answers change places: as many bytes, written at the same time."""
    before, text = tables.log.stat(), tables.log.read_text()
    lines = text.splitlines(keepends=True)
    right = next(n for n, line in enumerate(lines) if '"label":"correct"' in line)
    wrong = next(n for n, line in enumerate(lines) if '"label":"wrong"' in line)
    lines[right] = lines[right].replace('"label":"correct"', '"label":"wrong"')
    lines[wrong] = lines[wrong].replace('"label":"wrong"', '"label":"correct"')
    tables.log.write_text("".join(lines))
    os.utime(tables.log, ns=(before.st_atime_ns, before.st_mtime_ns))
    now = tables.log.stat()
    assert (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert tables.log.read_text() != text


def appended_verdict(tables: Tables) -> None:
    (record, *_) = [r for r in read_records(tables.log) if r["label"] == "correct"]
    with tables.log.open("a") as file:
        file.write(json.dumps({**record, "label": "invalid"}) + "\n")


def new_check(tables: Tables) -> None:
    """The judge is said to be misled on a pair: its rows are left out."""
    run = Run.open(tables.run)
    (log, *_) = run.judges()
    rows = {case.row: case.clusters[0] for case in run.cases()}
    comparable = comparable_of(log.identity, prompt_versions(open_suite(SUITE)))
    misled = dict([next(iter(rows.items()))])
    check = JudgeCheck(log.name, comparable, rows, misled, {}, {}, {}, (0.9, 0.8, 1.0))
    write_checks(tables.run, [check])


def replaced_image(tables: Tables) -> None:
    path = next(iter(sorted((tables.run / "images").iterdir())))
    before, data = path.stat(), path.read_bytes()
    path.write_bytes(data[:-20] + bytes(20))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def refused_image(tables: Tables) -> None:
    case = next(iter(sorted(Run.open(tables.run).images())))
    with (tables.run / "images.jsonl").open("a") as file:
        file.write(json.dumps({"case": case, "status": "refused", "message": "no"}) + "\n")


def more_judging(tables: Tables) -> None:
    """A shard has written answers beside those of all."""
    lines = tables.log.read_text().splitlines(keepends=True)
    tables.log.write_text("".join(lines[:-4]))
    tables.log.with_name("verdicts.1-of-2.jsonl").write_text("".join(lines[-4:-1]))


CHANGES = (
    edited_verdict,
    appended_verdict,
    new_check,
    replaced_image,
    refused_image,
    more_judging,
)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_run_holds_decides_its_scores(
    change: Callable[[Tables], None], tables: Tables
) -> None:
    first, unmarked = tables.table(), tables.folder / "unmarked"
    shutil.copytree(tables.cache, unmarked)
    tables.mark()
    of_both = tables.table()
    change(tables)
    of_one = tables.table()
    value = f'"value": {MARK}'
    assert of_one.count(value) == of_both.count(value) / 2 > 0, "the other run is as it was"
    assert '"Z"' in of_both and '"Z"' not in of_one, "letters are of all runs"
    assert tables.table(cache=unmarked) == tables.fresh() != first
    assert tables.table(cache=unmarked) == tables.fresh(), "from what is kept now"


@pytest.mark.slow
def test_labels_decide_scores(tables: Tables) -> None:
    without = tables.table()
    tables.mark(letters=False)  # labels decide none
    tables.use_labels()
    first = tables.table()
    assert first == tables.fresh() != without
    labels, before = tables.folder / "labels.csv", tables.table()
    labels.write_text(labels.read_text().replace("correct", "wrong", 3))
    assert tables.table() == tables.fresh() != before
    # A sample beside them says how they were drawn, which a note depends on.
    before = tables.table()
    (tables.folder / "sample.json").write_text('{"items": []}')
    assert tables.table() == tables.fresh() != before


@pytest.mark.slow
def test_another_layout_takes_only_what_it_asks_for(tables: Tables) -> None:
    column = {"label": "far", "suite": SUITE, "score": "accuracy_reverse"}
    layout = tables.folder / "layout.yaml"
    plain = json.loads((tables.study / "study.yaml").read_text())
    tables.table()
    tables.mark()
    for group in ("", "domain=flags_and_heraldry"):
        of_group = {**column, "group": group} if group else column
        table = {"title": "of groups", "columns": [of_group]}
        layout.write_text(json.dumps({**plain, "table": table}))
        words = ("--as", str(layout))
        asked = tables.table(*words)
        assert (MARK in asked) is not bool(group)
        assert group == "" or asked == tables.fresh(*words)


@pytest.mark.slow
def test_score_keeps_its_scores_too_and_by_its_options(tables: Tables) -> None:
    words = ("score", tables.run, "--json")
    first = tables.says(*words)
    assert json.loads(first) == json.loads((tables.run / "scores.json").read_text())
    assert tables.says(*words) == first
    tables.mark()
    assert MARK in tables.says(*words) and MARK in tables.says(*words, "--explain")
    names = sorted(path.name for path in tables.run.glob("verdicts/*"))
    labels = ("--labels", tables.folder / "labels.csv")
    for option in (("--judge", names[0]), labels, (*labels, "--latent")):
        said = tables.says(*words, *option)
        assert MARK not in said
        assert said == tables.says(*words, *option, cache=tables.folder / "nothing")
    appended_verdict(tables)
    assert tables.says(*words) == tables.says(*words, cache=tables.folder / "other") != first


def test_what_a_report_reads_of_a_run_is_what_was_kept_of_it(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERPRIOR_CACHE", str(tables.cache))
    settings = ScoreSettings(judges=("double:ann",))

    def read() -> str:
        ((judged,),) = (contents.judged for contents in read_contents([tables.run], settings))
        return results_json([judged.result])

    first = read()
    assert MARK not in first and read() == first
    tables.mark(letters=False)
    numbers = re.findall(r'"value": -?[0-9]', first)
    assert read().count(MARK) == len(numbers) > 0


@pytest.mark.slow
@pytest.mark.parametrize("change", [None, new_check])
def test_a_report_takes_kept_scores_and_shows_the_same(
    change: Callable[[Tables], None] | None, tables: Tables
) -> None:
    if change is not None:
        change(tables)
    scored = score_run(tables.run, ScoreSettings())
    (contents,) = read_contents([tables.run], ScoreSettings())
    for judged, of_report in zip(scored, contents.judged, strict=True):
        assert list(of_report.outcomes) == list(judged.outcomes)
        assert of_report.check == judged.check
        assert results_json([of_report.result]) == results_json([judged.result])
    assert (scored[0].check is None) is (change is None)

    def report(name: str) -> dict[str, bytes]:
        site = tables.folder / name
        tables.says("report", tables.study, "--out", site)
        return {p.name: p.read_bytes() for p in site.rglob("*") if p.is_file()}

    first = report("first")
    assert report("second") == first
    tables.mark(letters=False)
    marked = report("third")
    assert f'"value": {MARK}'.encode() in marked["report.json"]
    # What has answers behind it is read as it is: pairs of runs are compared on their images.
    texts = [json.loads(pages["report.json"])["leaderboards"] for pages in (first, marked)]
    assert [board["comparisons"] for board in texts[0]] == [b["comparisons"] for b in texts[1]]


def in_this_process(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COUNTERPRIOR_CACHE", str(tables.cache))
    done = CliRunner().invoke(app, ["study", "table", str(tables.study), "--format", "json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_another_version_of_the_code_takes_nothing(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tables.table()
    tables.mark()
    assert MARK in in_this_process(tables, monkeypatch)
    monkeypatch.setattr(kept_scores, "scoring_digest", lambda: "0123456789abcdef")
    assert in_this_process(tables, monkeypatch) == first


@pytest.mark.parametrize(
    "file", ["__init__.py", "eval/results/scoring.py", "eval/questions/order.md", "schema.py"]
)
def test_a_changed_file_of_the_package_is_another_version(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(kept.__file__).parent
    for name in (file, "eval/core.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package / name, tmp_path / name)
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "kept.py"))
    before = digest_of_code(kept_scores.SCORED_BY, ["numpy 2"])
    assert digest_of_code(kept_scores.SCORED_BY, ["numpy 3"]) != before
    assert digest_of_code(kept_scores.SCORED_BY, ["numpy 2"]) == before
    (tmp_path / file).write_text((tmp_path / file).read_text() + " ")
    assert digest_of_code(kept_scores.SCORED_BY, ["numpy 2"]) != before


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def other_number(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(re.sub(rb"(?<=: )[1-8](?=[0-9.])", b"9", data))


@pytest.mark.parametrize("damage", [cut_off, emptied, other_number])
def test_a_damaged_score_is_computed_and_kept_again(
    damage: Callable[[Path], None], tables: Tables
) -> None:
    first = tables.table()
    sound = {path: path.read_bytes() for path in tables.kept()}
    for path in sound:
        damage(path)
    assert tables.table() == first
    assert {path: path.read_bytes() for path in tables.kept()} == sound


@pytest.mark.slow
def test_where_nothing_can_be_kept_the_table_is_the_same(tables: Tables) -> None:
    first = tables.table()
    file = tables.folder / "file"
    file.write_text("no folder")
    assert tables.table(cache=file) == tables.table(cache=file / "below") == first
    assert file.read_text() == "no folder"


def test_nothing_is_kept_of_a_run_that_somebody_adds_to_meanwhile(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERPRIOR_CACHE", str(tables.cache))
    score, before = kept_scores.computed, tables.log.read_bytes()

    def with_another_answer(*words: Any) -> Any:
        name, inputs, kind, compute, *others = words
        return score(name, inputs, kind, lambda: (appended_verdict(tables), compute())[1], *others)

    monkeypatch.setattr(kept_scores, "computed", with_another_answer)
    score_results([tables.run], ScoreSettings())
    assert tables.log.read_bytes() != before and not tables.kept()


OPENED: list[str] | None = None
"""Files that were opened since somebody asked; None while nobody does."""


def _note_opened(event: str, words: tuple[Any, ...]) -> None:
    if OPENED is not None and event == "open" and isinstance(words[0], (str, bytes, os.PathLike)):
        OPENED.append(os.fsdecode(words[0]))


@pytest.mark.slow
def test_every_file_that_scoring_reads_is_in_the_digest(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    global OPENED
    sys.addaudithook(_note_opened)
    new_check(tables)
    labels = tables.folder / "labels.csv"
    settings = ScoreSettings(labels=labels, latent=True)
    monkeypatch.setenv("COUNTERPRIOR_CACHE", str(tables.cache))
    OPENED = []
    try:
        score_results([tables.run], settings)
    finally:
        opened, OPENED = OPENED, None
    read = {Path(name) for name in opened if name.startswith(str(tables.folder))}
    read = {path for path in read if not path.is_relative_to(tables.cache)}
    of_images = {tables.run / image.file for image in Run.open(tables.run).images().values()}
    when = {path for path in read if path.name.startswith("checked.txt")}
    listed = {*kept_scores._files_of(Run.open(tables.run)), labels, labels.with_name("sample.json")}
    assert read - of_images - when <= listed
    assert {path.name for path in read & listed} >= {
        *("run.json", "cases.jsonl", "images.jsonl", "judge.json", "verdicts.jsonl"),
        *("judge_check.json", "labels.csv", "sample.json"),
    }
