"""The labeling page's server: its token, its files of clicks, and what it never shows."""

import http.client
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior.eval.people.clicks import merge
from counterprior.eval.people.forms import FORMS, read_tasks, shuffled
from counterprior.eval.people.serve import Audit, AuditServer, RequestRefused
from counterprior.human_labels import Label, read_labels, single_labels
from counterprior.parsing import RowError

Run = Callable[..., subprocess.CompletedProcess[str]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    for number in range(4):
        Image.fromarray(np.full((20, 30, 3), 60 * number, np.uint8)).save(
            tmp_path / f"{number}.png"
        )
    return write(
        tmp_path / "sample.jsonl",
        [
            {
                "sample_id": f"s{n}",
                "image": f"{n}.png",
                "prompt": f"prompt {n}",
                "method": "SECRET",
                "verdict_raw": "FAIL",
                "conf": 0.123456,
            }
            for n in range(4)
        ],
    )


@pytest.fixture
def server(rows: Path, tmp_path: Path) -> Iterator[AuditServer]:
    with AuditServer(Audit.open(rows, "verdict", tmp_path / "labels")) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(
    server: AuditServer, path: str, body: Any = None, token: str | None = None, host: str = ""
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {"X-Token": server.token if token is None else token}
    if host:
        headers["Host"] = host
    text = None if body is None else json.dumps(body)
    connection.request("POST" if text else "GET", path, text, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def click(server: AuditServer, who: str, task: str, value: str) -> tuple[int, bytes]:
    return ask(
        server, "/click", {"annotator": who, "task": task, "values": {"human_verdict": value}}
    )


def test_nothing_without_the_token_or_from_another_name(server: AuditServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    for path in ("/", "/state?annotator=ann", "/agreement", "/image?task=s0&index=0", "/page.js"):
        assert ask(server, path, token="wrong")[0] == 403
        assert ask(server, path, token="")[0] == 403
        assert ask(server, path, host="evil.example")[0] == 403
        assert ask(server, path)[0] == 200
    assert ask(server, "/click", {"annotator": "ann"}, token="x")[0] == 403
    assert server.server_address[0] == "127.0.0.1"


def test_what_a_machine_said_is_never_sent(server: AuditServer) -> None:
    status, body = ask(server, "/state?annotator=ann")
    assert status == 200 and b"prompt 2" in body
    for secret in (b"SECRET", b"0.123456", b'"FAIL", "'):
        assert secret not in body.replace(b'["FAIL", "2"]', b"")


def test_clicks_are_on_disk_and_a_restart_goes_on(
    server: AuditServer, rows: Path, tmp_path: Path
) -> None:
    assert click(server, "ann", "s1", "PASS")[0] == 200
    assert click(server, "ann", "s1", "FAIL")[0] == 200
    assert click(server, "ann", "s2", "UNDECIDABLE")[0] == 200
    assert click(server, "bo", "s1", "FAIL")[0] == 200
    file = tmp_path / "labels" / "ann.jsonl"
    assert read_labels(file) == [
        Label("s1", "FAIL", annotator="ann"),
        Label("s2", "UNDECIDABLE", annotator="ann"),
    ]
    with file.open("a") as torn:
        torn.write('{"sample_id": "s3", "hum')
    again = Audit.open(rows, "verdict", tmp_path / "labels")
    assert again.state("ann")["labels"] == {
        "s1": {"human_verdict": "FAIL"},
        "s2": {"human_verdict": "UNDECIDABLE"},
    }
    again.click("ann", "s3", {"human_verdict": "PASS"})
    assert len(read_labels(file)) == 3
    found = again.agreement()
    assert found["done"] == {"ann": 3, "bo": 1} and found["tasks"] == 4
    assert ask(server, "/agreement")[0] == 200


def test_the_order_is_random_another_for_everyone_and_always_the_same(tmp_path: Path) -> None:
    tasks = read_tasks(
        write(tmp_path / "r.jsonl", [{"sample_id": f"s{n}", "prompt": "p"} for n in range(30)]),
        FORMS["verdict"],
    )
    orders = [[task.id for task in shuffled(tasks, who)] for who in ("ann", "bo", "ann")]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) != orders[0]
    assert [t.id for t in shuffled(tasks[::-1], "ann")] == orders[0]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/click", {"annotator": "ann", "task": "s9", "values": {"human_verdict": "PASS"}}),
        ("/click", {"annotator": "ann", "task": "s1", "values": {"human_verdict": "MAYBE"}}),
        ("/click", {"annotator": "ann", "task": "s1", "values": {"conf": "PASS"}}),
        ("/click", {"annotator": "ann", "task": "s1", "values": {"note": "x"}}),
        ("/click", {"annotator": "../ann", "task": "s1", "values": {"human_verdict": "PASS"}}),
        ("/click", {"annotator": "", "task": "s1", "values": {"human_verdict": "PASS"}}),
        ("/click", ["ann"]),
        ("/click", {"annotator": "a" * 30_000}),
        ("/other", {"annotator": "ann"}),
        ("/state?annotator=..%2Fx", None),
        ("/state", None),
        ("/image?task=s1&index=1", None),
        ("/image?task=s1&index=-1", None),
        ("/image?task=..%2Fsample&index=0", None),
    ],
)
def test_bad_requests_are_refused_and_write_nothing(
    server: AuditServer, tmp_path: Path, path: str, body: Any
) -> None:
    status, answer = ask(server, path, body)
    assert status == 400 and b"error" in answer
    assert not list((tmp_path / "labels").glob("*.jsonl"))


def test_the_page_needs_nothing_from_elsewhere(server: AuditServer) -> None:
    for path in ("/", "/page.js"):
        _, page = ask(server, path)
        assert b"http" not in page.replace(b"http-equiv", b"")
        assert page.count(b"src=") == page.count(b'src="/page.js?token=')
    assert (
        ask(server, "/image?task=s3&index=0")[1] == (server.audit.tasks[3].images[0]).read_bytes()
    )
    assert ask(server, "/nothing")[0] == 404


def test_groups_and_bank_entries_are_reviewed_on_the_same_page(tmp_path: Path) -> None:
    group = [
        {"group": "g1", "level": level, "altered_law": "no friction", "prompt": f"p {level}"}
        for level in ("L1", "L2", "L3")
    ]
    audit = Audit.open(write(tmp_path / "w.jsonl", group), "worlds", tmp_path / "w")
    (task,) = audit.tasks
    assert [text for _, text in task.texts] == ["no friction", "p L1", "p L2", "p L3"]
    assert len(audit.form.fields) == 5
    audit.click("ann", "g1", {"valid": "no"})
    audit.click("ann", "g1", {"decision": "edit"})
    record = audit.click("ann", "g1", {"note": "say which friction"})
    assert (record["valid"], record["decision"]) == ("no", "edit")
    assert audit.agreement()["done"] == {"ann": 0}
    (tmp_path / "b.yaml").write_text(
        "- {id: one, text: first, standards: [a, b], check: {row: 2}, scenes: [{at: x}, {}]}\n"
        "- {id: two}\n"
    )
    bank = Audit.open(tmp_path / "b.yaml", "bank", tmp_path / "b")
    assert [task.texts for task in bank.tasks] == [
        (("text", "first"), ("standards", "a; b"), ("check row", "2"), ("scenes 1 at", "x")),
        (),
    ]
    with raises("bad-request", "edited", error=RequestRefused):
        bank.click("ann", "one", {"decision": "edited"})
    asked = [
        {"case": "c", "question": q, "asked": q, "prompt": "p", "label": "1", "judge": "X"}
        for q in ("order", "sides")
    ]
    judge = Audit.open(write(tmp_path / "j.jsonl", asked), "judge", tmp_path / "j")
    assert judge.tasks[0].texts == (("prompt", "p"), ("asked", "order"))
    assert judge.state("ann")["tasks"][0]["options"] == ()
    named = {"0": "invalid", "1": "first_left", "2": "first_right"}
    asked[0]["answers"] = named
    judge = Audit.open(write(tmp_path / "j.jsonl", asked), "judge", tmp_path / "j")
    with raises("bad-request", "label", "be '2'", error=RequestRefused):
        judge.click("ann", "c/order", {"label": "2"})
    judge.click("ann", "c/order", {"label": "first_right"})
    judge.click("ann", "c/sides", {"label": "0"})
    merge([tmp_path / "j" / "ann.jsonl"], "judge", tmp_path / "labels.jsonl")
    told = {("c", "order"): "first_right", ("c", "sides"): "0"}
    assert single_labels(read_labels(tmp_path / "labels.jsonl")) == told
    for bad in ({"1": "first_left"}, "first_left"):
        with raises("missing-field", ":1: answers", "0", "2", error=RowError):
            read_tasks(write(tmp_path / "j.jsonl", [asked[0] | {"answers": bad}]), FORMS["judge"])


def test_every_file_of_the_bank_can_be_reviewed() -> None:
    bank = resources.files("counterprior.builders") / "bank"
    with resources.as_file(bank) as folder:
        for name in (
            "animals",
            "objects",
            "occupations",
            "actions",
            "coco",
            "rules",
            "attributes",
            "sequences",
            "constrained/keyboards",
            "counterfactual/optics",
        ):
            tasks = read_tasks(folder / f"{name}.yaml", FORMS["bank"])
            assert len({task.id for task in tasks}) == len(tasks) >= 25
            said = {column for task in tasks for column, _ in task.texts}
            assert said and not said & {"review", "status", "provenance"}


def test_groups_of_a_release_are_read_as_they_are_released(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"r{level}",
            "group": "g1",
            "level": level,
            "prompt": f"p {level}",
            "altered_law": "no friction",
            "review": ["reviewer-model"],
            "canary": "c",
            "seed_image": b"png",
        }
        for level in ("L1", "L2", "L3")
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "test.parquet")
    (task,) = read_tasks(tmp_path / "test.parquet", FORMS["worlds"])
    assert task.id == "g1"
    assert [text for _, text in task.texts] == ["p L1", "no friction", "p L2", "p L3"]


def test_decisions_of_several_people_are_merged(tmp_path: Path, cli: Run) -> None:
    (tmp_path / "b.yaml").write_text("".join(f"- {{id: e{n}, text: t}}\n" for n in range(4)))
    audit = Audit.open(tmp_path / "b.yaml", "bank", tmp_path / "b")
    said = {"ann": "area", "bo": "arr", "cy": "ae"}
    words = {"a": "accept", "e": "edit", "r": "reject"}
    for who, keys in said.items():
        for number, key in enumerate(keys):
            audit.click(who, f"e{number}", {"decision": words[key]})
    audit.click("ann", "e1", {"note": "two words"})
    files = [tmp_path / "b" / f"{who}.jsonl" for who in ("ann", "bo", "cy")]
    out = tmp_path / "decisions.jsonl"
    done = cli("audit", "merge", *files, "--kind", "bank", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["labels"] == {"ann": 4, "bo": 3, "cy": 2}
    assert found["split"] == {"decision": ["e2"]} and -1 <= found["alpha"]["decision"] < 1
    merged = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert {name: row["decision"] for name, row in merged.items()} == {
        "e0": "accept",
        "e1": "reject",
        "e3": "accept",
    }
    assert merged["e1"]["votes"]["ann"] == {"decision": "reject", "note": "two words"}
    wrong = cli("audit", "merge", *files, "--kind", "worlds", "--out", out)
    assert_refused(wrong, "missing-field", files[0], "group:", "--kind")
    with raises("duplicate-id", "ann", error=RowError):
        merge([files[0], files[0]], "bank", out)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"prompt": "p"}, ("wrong-type", ":1: sample_id")),
        ({"sample_id": "s", "image": "gone.png"}, ("no-such-file", "gone.png")),
    ],
)
def test_rows_that_can_not_be_reviewed(
    tmp_path: Path, row: dict[str, Any], reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=RowError):
        Audit.open(write(tmp_path / "r.jsonl", [row]), "verdict", tmp_path / "l")
    with raises("unknown-name", "poll", "verdict"):
        Audit.open(tmp_path / "r.jsonl", "poll", tmp_path / "l")
    twice = write(tmp_path / "t.jsonl", [{"sample_id": "s"}] * 2)
    with raises("duplicate-id", "s", error=RowError):
        Audit.open(twice, "verdict", tmp_path / "l")
