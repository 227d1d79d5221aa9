"""Exported logs in inspect's own reader, data frames and viewer: an environment with inspect-ai.

COUNTERPRIOR_INSPECT: its Python, with `pip install inspect-ai pandas pyarrow`; this one if not set.
COUNTERPRIOR_CHROMIUM, COUNTERPRIOR_NODE_MODULES: as in test_audit_page.py, for the viewer's page.
"""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from published import published_run

from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import ScoreSettings, score_runs

pytestmark = pytest.mark.lane

PYTHON = os.environ.get("COUNTERPRIOR_INSPECT", sys.executable)
READ = """
import json, sys
from inspect_ai.analysis import evals_df, samples_df
from inspect_ai.log import list_eval_logs, read_eval_log
found = []
for info in list_eval_logs(sys.argv[1]):
    head = read_eval_log(info, header_only=True)
    log = read_eval_log(info, resolve_attachments=True)
    assert not head.samples and head.eval.task_id == log.eval.task_id
    found.append({
        "status": head.status,
        "scores": {s.name: s.metrics["value"].value for s in head.results.scores if s.metrics},
        "n": {s.name: s.scored_samples for s in head.results.scores},
        "scorer": head.results.scores[0].scorer,
        "samples": [
            {
                "id": s.id,
                "said": {name: score.value for name, score in s.scores.items()},
                "input": s.input[0].text,
                "images": [c.image for m in s.messages for c in m.content if c.type == "image"],
            }
            for s in log.samples
        ],
    })
evals, samples = evals_df(sys.argv[1]), samples_df(sys.argv[1])
print(json.dumps({
    "logs": found,
    "headlines": sorted(evals["score_headline_value"].astype(float)),
    "samples": len(samples),
    "labels": sorted(samples["score_order"].dropna().unique()),
}))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under two judges; of its images one is missing, one refused and one failed."""
    root = tmp_path_factory.mktemp("inspect") / "run"
    return published_run(root, "t2i_homogenization", "flux", rows=12)


@pytest.fixture(scope="module")
def logs(run: Path) -> Path:
    if subprocess.run([PYTHON, "-c", "import inspect_ai"], capture_output=True).returncode:
        pytest.skip("no inspect-ai in COUNTERPRIOR_INSPECT or here")
    write_report([run], run.parent / "site", exports=["inspect"])
    return run.parent / "site" / "export" / "inspect"


def test_its_reader_and_data_frames_have_our_numbers_and_images(run: Path, logs: Path) -> None:
    done = subprocess.run([PYTHON, "-c", READ, logs], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    results = {j.result.judge: j.result for j in score_runs([run], ScoreSettings())}
    assert len(told["logs"]) == len(results) == 2
    headlines = []
    for log in told["logs"]:
        assert log["status"] == "success"
        # A judge that is named by its path keeps the last part of it.
        (result,) = (r for name, r in results.items() if name.endswith(log["scorer"][-3:]))
        for score in result.scores:
            name = score.name if score.group == "all" else f"{score.name} {score.group}"
            assert log["n"][name] == score.n
            assert log["scores"].get(name, score.value) == pytest.approx(score.value, nan_ok=True)
        headlines.append(log["scores"]["hom"])
        check_samples(log["samples"])
    assert told["headlines"] == sorted(headlines)
    assert told["samples"] == 2 * 24
    assert {"first_left", "first_right"} <= set(told["labels"])


def check_samples(samples: list[dict[str, Any]]) -> None:
    assert len(samples) == 24
    without = [sample for sample in samples if not sample["images"]]
    assert sorted(s["said"]["image"] for s in without) == ["error", "missing", "refused"]
    for sample in samples:
        assert sample["input"].startswith("A <b>cat</b>")
        for image in sample["images"]:
            data = base64.b64decode(image.removeprefix("data:image/webp;base64,"))
            with Image.open(io.BytesIO(data)) as shown:
                assert (shown.format, shown.size) == ("WEBP", (24, 20))


@pytest.fixture
def view(logs: Path) -> Iterator[str]:
    """The address of `inspect view` on the logs."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(PYTHON).with_name("inspect")), "view", "--log-dir", str(logs)]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def get(address: str) -> bytes:
    for _ in range(120):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.status == 200
                return bytes(answer.read())
        except (ConnectionError, urllib.error.URLError):
            time.sleep(0.5)
    raise AssertionError(f"{address} does not answer")


def test_its_viewer_lists_and_opens_every_log(logs: Path, view: str, tmp_path: Path) -> None:
    names = {path.name for path in logs.glob("*.json")}
    listed = json.loads(get(f"{view}/api/log-files"))["files"]
    assert {entry["name"].rpartition("/")[2] for entry in listed} == names
    for entry in listed:
        log = json.loads(get(f"{view}/api/logs/{entry['name']}"))
        assert log["status"] == "success" and len(log["samples"]) == 24
    modules, chromium = (
        os.environ.get(f"COUNTERPRIOR_{name}") for name in ("NODE_MODULES", "CHROMIUM")
    )
    if modules and chromium:
        sample = next(s for s in log["samples"] if s["attachments"])
        page = f"{view}/#/logs/{entry['name'].rpartition('/')[2]}"
        address = f"{page}/samples/sample/{sample['id']}/1/messages"
        script = Path(__file__).with_name("inspect_page.mjs")
        shots = os.environ.get("COUNTERPRIOR_SCREENSHOTS", tmp_path)
        command = ["node", script, modules, chromium, f"{shots}/inspect.png", view, address]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["problems"] == []
        assert "counterprior/t2i_homogenization" in seen["list"]
        assert [24, 20] in seen["images"] and "A <b>cat</b>" in seen["sample"]
