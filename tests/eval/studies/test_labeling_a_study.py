"""From a study to its table of judges against people, command by command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from refusals import raises
from study_doubles import study_file

from counterprior.errors import RunFailed, UsageError
from counterprior.eval.people.sampling import SAMPLE, LabelingSample, open_audit
from counterprior.eval.studies.labeling import runs_to_label
from counterprior.human_labels import draw_note

Cli = Callable[..., CompletedProcess[str]]
SUITES = {"t2i_homogenization": {"limit": 8}, "t2i_correctness": {"limit": 12}}
COLUMNS = [
    {"label": "Hom", "suite": "t2i_homogenization", "score": "hom"},
    {"label": "Ali", "suite": "t2i_correctness", "score": "accuracy_aligned"},
    {"label": "Rev", "suite": "t2i_correctness", "score": "accuracy_reverse"},
    {"label": "kappa", "suite": list(SUITES), "score": "people:kappa"},
    {"label": "invalid", "suite": list(SUITES), "score": "people:count:0:0"},
]


@pytest.fixture(scope="module")
def study(text_release: Path, tmp_path_factory: pytest.TempPathFactory, cli: Cli) -> Path:
    """Two generators on two suites, judged; its file stands beside its folder."""
    folder = tmp_path_factory.mktemp("labeled")
    file = study_file(text_release, SUITES, ("red", "blue"), ("ann", "bo"))
    labels = dict.fromkeys(SUITES, str(folder / "labels.jsonl"))
    table = {"title": "judges against people", "rows": "judge", "columns": COLUMNS, "pooled": False}
    plain = {**file, "unchecked": True, "labels": labels, "table": table}
    (folder / "study.yaml").write_text(json.dumps(plain))
    words = ("run", folder / "study.yaml", "--out", folder / "study", "--trust")
    done = cli("study", *words, "--set", "labels={}")
    assert done.returncode == 0, done.stderr
    return folder / "study"


@pytest.mark.slow
def test_labels_of_a_study_lead_to_its_table(study: Path, cli: Cli) -> None:
    labels, n = study.with_name("labels"), 10
    roots, metrics = runs_to_label([study], "judge")
    audit = open_audit(roots, "judge", labels, n=n, metrics=metrics)
    for who in ("ann", "bo"):
        for task in audit.tasks:
            audit.click(who, task.id, {"label": task.options[0][0]})
    merged = study.with_name("labels.jsonl")
    files = (labels / "ann.jsonl", labels / "bo.jsonl")
    done = cli("audit", "merge", *files, "--kind", "judge", "--out", merged)
    assert done.returncode == 0, done.stderr
    assert draw_note(merged) == draw_note(files[0]) == ""
    run = cli("study", "run", study.with_name("study.yaml"), "--out", study, "--trust")
    assert run.returncode == 0, run.stderr
    printed = cli("study", "table", study, "--format", "json")
    assert printed.returncode == 0, printed.stderr
    table = json.loads(printed.stdout)
    kappas = [line["cells"][3]["score"] for line in table["lines"]]
    # An image that both generators have counts for both.
    labeled = {line["name"]: 0 for line in table["lines"]}
    for line, kappa in zip(table["lines"], kappas, strict=True):
        labeled[line["name"]] += kappa["n"]
    assert set(labeled.values()) == {len(audit.tasks)} and len(labeled) == 2
    assert "uniform draw" not in printed.stdout
    for generator in ("red", "blue"):
        run_name = f"t2i_homogenization x {generator}"
        assert any(
            text.startswith(f"{run_name}: Krippendorff's alpha of all who answered order ")
            for text in table["remarks"]
        )


@pytest.mark.slow
def test_each_score_of_the_table_is_drawn_from_all_generators_alike(
    study: Path, tmp_path: Path
) -> None:
    roots, metrics = runs_to_label([study], "judge")
    generators: Counter[str] = Counter()
    for seed in range(8):
        folder = tmp_path / str(seed)
        open_audit(roots, "judge", folder, n=6, seed=seed, metrics=metrics)
        sample = LabelingSample.read(folder / SAMPLE)
        # `accuracy_unordered` is in no column, and hom is the fold of `signed_index`.
        assert Counter(item.metric for item in sample.items) == {
            "t2i_correctness/accuracy_aligned": 6,
            "t2i_correctness/accuracy_reverse": 6,
            "t2i_homogenization/signed_index": 6,
        }
        variants = {
            (item.metric.partition("_")[2], item.case.split("-")[2]) for item in sample.items
        }
        assert len({variant for metric, variant in variants if metric.endswith("aligned")}) == 1
        generators.update(item.runs[0].rpartition("/")[2] for item in sample.items)
    assert 0.35 < generators["red"] / generators.total() < 0.65


def test_a_study_is_labeled_alone_and_when_it_is_done(
    study: Path, tmp_path: Path, cli: Cli
) -> None:
    with raises("unsupported", "taken alone", error=UsageError):
        runs_to_label([study, study / "runs/t2i_correctness/red"], "judge")
    refused = cli("audit", "export", study, "--kind", "quality", "--out", tmp_path / "q")
    assert refused.returncode and "only --kind judge" in refused.stderr
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "study.yaml").write_text((study / "study.yaml").read_text())
    with raises("incomplete-run", "not done", error=RunFailed):
        runs_to_label([unfinished], "judge")
    exported = cli("audit", "export", study, "--kind", "judge", "--n", "2", "--out", tmp_path / "e")
    assert exported.returncode == 0, exported.stderr
    assert len(json.loads((tmp_path / "e" / "tasks.json").read_text())) == 6


@pytest.mark.slow
def test_labels_of_an_unknown_draw_say_what_they_assume(study: Path, cli: Cli) -> None:
    run = study / "runs/t2i_homogenization/red"
    cases = [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]
    rows = [f"{c['row']}-{c['variant']}-{c['seed']},order,first_left" for c in cases[:6]]
    labels = study.with_name("mine.csv")
    labels.write_text("\n".join(["case,question,label", *rows]) + "\n")
    for command in (("score", run), ("audit", "analyze", run)):
        printed = cli(*command, "--labels", labels)
        assert printed.returncode == 0, printed.stderr
        assert "mine.csv doesn't say how its images were drawn" in " ".join(printed.stdout.split())
