"""Labeling in Label Studio: what a project is given, and what comes back of its annotations."""

from __future__ import annotations

import copy
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from refusals import raises
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.people.forms import FORMS
from counterprior.eval.people.label_studio import export_tasks, import_labels, labeling_config
from counterprior.eval.people.sampling import SAMPLE, LabelingSample, open_audit
from counterprior.eval.results.judge_card import labels_of
from counterprior.human_labels import read_labels

Task = dict[str, Any]


@pytest.fixture(scope="module")
def run(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images of a biased generator, judged by pixels; read only."""
    out = tmp_path_factory.mktemp("label_studio") / "secret"
    settings = RunSettings("t2i_homogenization", str(text_release), out, limit=6)
    evaluate_run(settings, "render:?order_bias=2", ["pixels"], JudgeSettings())
    return out


def annotated(task: Task, number: int, label: str, by: Any = 1, **more: Any) -> Task:
    """A task as Label Studio exports it, with one more annotation."""
    result = {"from_name": "label", "to_name": "image", "type": "choices"}
    one = {
        "id": number,
        "completed_by": by,
        "result": [{**result, "value": {"choices": [label]}}] if label else [],
        "was_cancelled": False,
        "updated_at": f"2026-11-22T10:00:{number:02}.5Z",
        **more,
    }
    return {**task, "id": 7, "annotations": [*task.get("annotations", ()), one]}


def save(path: Path, tasks: list[Task]) -> Path:
    path.write_text(json.dumps([{"annotations": [], **task} for task in tasks]))
    return path


def test_a_project_and_back_by_command(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "my labels"
    command = ["audit", "export", str(run), "--kind", "judge", "--n", "9", "--out", str(out)]
    shown = CliRunner().invoke(app, [*command, "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output) == {"tasks": 9, "predictions": 0}
    text = (out / "tasks.json").read_text()
    tasks = json.loads(text)
    assert "secret" not in text and "pixels" not in text and "predictions" not in text
    for task in tasks:
        url = task["data"]["image"]
        assert url.startswith("/data/local-files/?d=my%20labels/images/")
        assert (out / "images" / url.rpartition("/")[2]).is_file()
        assert task["data"]["text"].startswith("prompt: ")
        for one in task["data"]["options"]:  # the question speaks of digits, which vary
            assert f"{one['hotkey']} = {one['value']}" in task["data"]["text"]
    sample = LabelingSample.read(out / SAMPLE)
    drawn = [item.task("judge").id for item in sample.items]
    order = [task["data"]["item"] for task in tasks]
    assert order != drawn and sorted(order) == sorted(drawn)  # that of the draw tells the label
    view = ET.fromstring((out / "label_config.xml").read_text())
    used = {one.get("value", "")[1:] for one in view if one.get("value", "").startswith("$")}
    assert used == {"text", "image", "options"} <= tasks[0]["data"].keys()
    assert [one["hotkey"] for one in tasks[0]["data"]["options"]] == ["1", "2", "3"]
    options = [one["value"] for one in tasks[0]["data"]["options"]]
    assert sorted(options) == ["first_left", "first_right", "invalid"]

    done = [annotated(task, n, "first_left", by=3) for n, task in enumerate(tasks[:5])]
    done[0] = annotated(done[0], 20, "first_right", by={"id": 4, "email": "bo@example.org"})
    done[1] = annotated(done[1], 21, "first_right", by={"email": "cy@example.org"})
    exported = save(tmp_path / "export.json", [*done, *tasks[5:]])
    command = ["audit", "import", str(exported), "--out", str(out), "--annotator", "3=ann"]
    shown = CliRunner().invoke(app, [*command, "--json"])
    assert shown.exit_code == 0, shown.output
    counted = json.loads(shown.output)
    (cy,) = counted["labels"].keys() - {"ann", "ls-4"}  # no email address becomes a file's name
    assert counted.pop("labels") == {"ann": 5, "ls-4": 1, cy: 1}
    assert cy.startswith("ls-") and "@" not in cy
    assert counted.pop("unlabeled") == 4 and not any(counted.values())
    labels = read_labels(out / "ann.jsonl")
    known = {(i.case, i.question, i.images[0]) for i in sample.items}
    assert {(one.case, one.question, one.image) for one in labels} <= known
    assert {(one.label, one.annotator) for one in labels} == {("first_left", "ann")}
    # They are the page's files: its own count of who has done what includes them.
    audit = open_audit([run], "judge", out, n=9)
    assert audit.agreement()["done"] == {"ann": 5, "ls-4": 1, cy: 1}
    assert "example.org" not in "".join(path.read_text() for path in out.glob("*.jsonl"))


def test_exports_verdicts_as_predictions_only_on_request(run: Path, tmp_path: Path) -> None:
    counts = export_tasks([run], "judge", tmp_path / "a", n=9, predictions=True)
    assert counts == {"tasks": 9, "predictions": 9}
    opened = Run.open(run)
    (log,) = opened.chosen_judges(())
    verdicts = labels_of(log.present(opened.present()))
    for task in json.loads((tmp_path / "a" / "tasks.json").read_text()):
        key = task["data"]["key"]
        (one,) = task["predictions"]
        assert one["model_version"] == log.name
        (result,) = one["result"]
        assert result["value"] == {"choices": [verdicts[key["case"], key["question"]]]}
        assert (result["from_name"], result["to_name"]) == ("label", "image")
    with raises("unsupported", "--kind judge"):
        export_tasks([run], "quality", tmp_path / "b", predictions=True)


def test_counts_tasks_without_label_and_refuses_wrong_answers(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ls"
    export_tasks([run], "judge", folder, n=6, url="https://example.org/x/")
    tasks = json.loads((folder / "tasks.json").read_text())
    assert tasks[0]["data"]["image"].startswith("https://example.org/x/")
    done = [
        annotated(tasks[0], 1, "first_left", was_cancelled=True),
        annotated(tasks[1], 2, ""),
        annotated(annotated(tasks[2], 4, "invalid"), 3, "first_left", parent_prediction=9),
        {**tasks[3], "drafts": [{}]},
        *tasks[4:],
    ]
    file = save(tmp_path / "e.json", done)
    counted = import_labels(file, folder)
    assert counted == {
        "labels": {"ls-1": 2},
        "skipped": 1,
        "empty": 1,
        "incomplete": 0,
        "drafts": 1,
        "unlabeled": 5,
        "shown_a_prediction": 1,
    }
    (label,) = read_labels(folder / "ls-1.jsonl")
    assert label.label == "invalid"  # the later of two by one person, whatever their order

    # A second export with other annotations adds; the same again changes nothing; a skip removes.
    file = save(tmp_path / "e.json", [annotated(tasks[4], 5, "invalid")])
    assert import_labels(file, folder)["labels"] == {"ls-1": 3}
    before = (folder / "ls-1.jsonl").read_bytes()
    import_labels(file, folder)
    assert (folder / "ls-1.jsonl").read_bytes() == before
    file = save(tmp_path / "e.json", [annotated(tasks[4], 5, "invalid", was_cancelled=True)])
    assert import_labels(file, folder)["labels"] == {"ls-1": 2}
    before = (folder / "ls-1.jsonl").read_bytes()

    def refused(code: str, facts: list[str], changed: Task) -> None:
        with raises(code, *facts):
            import_labels(save(tmp_path / "e.json", [changed]), folder)
        assert (folder / "ls-1.jsonl").read_bytes() == before

    other = copy.deepcopy(annotated(tasks[0], 6, "invalid"))
    other["data"]["item"] = "x"
    refused(
        "unknown-reference", ["e.json:1: item: 'x'", "6 tasks", str(folder / "tasks.json")], other
    )
    wrong = annotated(tasks[0], 6, "maybe")
    refused("bad-value", ["e.json:1: label: annotation 6", "['maybe']", "first_left"], wrong)
    both = annotated(tasks[0], 6, "invalid")
    both["annotations"][0]["result"][0]["value"]["choices"].append("first_left")
    refused("bad-value", ["annotation 6", "['invalid', 'first_left']"], both)
    refused("missing-field", ["e.json:1: completed_by"], annotated(tasks[0], 6, "invalid", by={}))
    (tmp_path / "e.json").write_text(json.dumps([{"id": 1, "label": "invalid"}]))
    with raises("bad-format", "e.json: 0.data", "JSON-MIN"):
        import_labels(tmp_path / "e.json", folder)
    two = annotated(annotated(tasks[0], 6, "invalid", by=1), 7, "invalid", by=2)
    file = save(tmp_path / "e.json", [two])
    with raises("duplicate-id", "'ann'", "--annotator"):
        import_labels(file, folder, {"1": "ann", "2": "ann"})
    audit = open_audit([run], "judge", folder, n=6)
    audit.click("bo", audit.tasks[0].id, {"label": "invalid"})
    clicks = (folder / "bo.jsonl").read_bytes()
    with raises("would-overwrite", folder / "bo.jsonl"):
        import_labels(file, folder, {"1": "bo"})
    assert (folder / "bo.jsonl").read_bytes() == clicks
    with raises("no-such-file", tmp_path / "tasks.json", "`audit export`"):
        import_labels(file, tmp_path)


def test_refuses_clips_and_unequal_image_counts(run: Path, tmp_path: Path) -> None:
    export_tasks([run], "judge", tmp_path / "a", n=3)
    plain = json.loads((tmp_path / "a" / SAMPLE).read_text())
    plain["items"][0]["frames"] = [8]
    (tmp_path / "a" / SAMPLE).write_text(json.dumps(plain))
    with raises("wrong-medium", "clips", "audit serve"):
        export_tasks([run], "judge", tmp_path / "a", n=3)
    image = next((tmp_path / "a" / "images").iterdir())
    rows = [{"id": "a", "image": str(image)}, {"id": "b"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with raises("unsupported", "images"):
        export_tasks([tmp_path / "rows.jsonl"], "bank", tmp_path / "b")


def test_every_task_offers_choices(tmp_path: Path) -> None:
    row = {"case": "a", "question": "q", "prompt": "x"}
    own = {**row, "case": "b", "answers": {"0": "none", "1": "yes", "2": "no"}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(own) + "\n")
    export_tasks([tmp_path / "rows.jsonl"], "judge", tmp_path / "a")
    tasks = json.loads((tmp_path / "a" / "tasks.json").read_text())
    offered = {t["data"]["key"]["case"]: [o["value"] for o in t["data"]["options"]] for t in tasks}
    assert offered == {"a": ["0", "1", "2"], "b": ["none", "yes", "no"]}


def test_ratings_and_notes_have_their_own_fields(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    export_tasks([run], "quality", folder, n=2)
    (first, second) = json.loads((folder / "tasks.json").read_text())
    result = [
        {"from_name": name, "type": "choices", "value": {"choices": ["7"]}}
        for name in ("overall", "alignment")
    ]
    done = annotated(first, 1, "", result=result)
    counted = import_labels(save(tmp_path / "e.json", [done, second]), folder)
    assert counted["labels"] == {"ls-1": 1} and counted["incomplete"] == 1
    (row,) = map(json.loads, (folder / "ls-1.jsonl").read_text().splitlines())
    assert (row["item"], row["overall"]) == (first["data"]["item"], "7") and "fidelity" not in row
    bank = tmp_path / "bank.jsonl"
    bank.write_text('{"id": "a", "text": "x"}\n')
    export_tasks([bank], "bank", tmp_path / "b")
    (task,) = json.loads((tmp_path / "b" / "tasks.json").read_text())
    result = [
        {"from_name": "decision", "value": {"choices": ["edit"]}},
        {"from_name": "note", "value": {"text": ["shorter"]}},
    ]
    import_labels(
        save(tmp_path / "e.json", [annotated(task, 1, "", result=result)]), tmp_path / "b"
    )
    (row,) = map(json.loads, (tmp_path / "b" / "ls-1.jsonl").read_text().splitlines())
    assert (row["id"], row["decision"], row["note"]) == ("a", "edit", "shorter")
    view = ET.fromstring(labeling_config(FORMS["bank"], images=0))
    assert {one.get("toName") for one in view if one.get("toName")} == {"text"}
    view = ET.fromstring(labeling_config(FORMS["compare"], images=2))
    assert [one.get("name") for one in view.iter("Image")] == ["image", "image_2"]
    assert not any(one.get("hotkey") for one in view.iter("Choice"))  # three fields, one keyboard
