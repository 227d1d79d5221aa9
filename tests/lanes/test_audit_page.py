"""The labeling page in a browser, in each of its kinds: `npm i puppeteer-core` and two variables.

COUNTERPRIOR_CHROMIUM: an executable; COUNTERPRIOR_NODE_MODULES: the folder with puppeteer-core.
COUNTERPRIOR_SCREENSHOTS: folder where screenshots of the page are kept; a temporary one if not set.
"""

import json
import os
import subprocess
import threading
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scored import cases, image_run

from counterprior.eval.core import ImageRequest
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.people.clicks import read_clicks
from counterprior.eval.people.forms import FORMS
from counterprior.eval.people.sampling import open_audit
from counterprior.eval.people.serve import AuditServer
from counterprior.images import encode_png

SCRIPT = Path(__file__).with_name("audit_page.mjs")
ANSWERS = {"0": "invalid", "1": "first_left", "2": "first_right"}
PAIRS = (("cat", "dog"), ("horse", "cow"), ("sheep", "goat"))

pytestmark = pytest.mark.lane


def from_environment(name: str) -> str:
    if name not in os.environ:
        pytest.skip(f"{name} is not set")
    return os.environ[name]


def labeled(
    rows: Path, kind: str, keys: list[str], tmp_path: Path, runs: Sequence[Path] = ()
) -> tuple[dict[str, Any], Any]:
    """What the browser saw, and the labels on disk; keeps a screenshot of the page."""
    chromium, modules = map(
        from_environment, ("COUNTERPRIOR_CHROMIUM", "COUNTERPRIOR_NODE_MODULES")
    )
    shot = Path(os.environ.get("COUNTERPRIOR_SCREENSHOTS", tmp_path)) / f"{kind}.png"
    folder = tmp_path / "labels"
    with AuditServer(open_audit(runs or [rows], kind, folder)) as server:
        first = server.audit.tasks[0]
        options = server.audit.form.fields
        said = {field.name: (first.options or field.options)[0][0] for field in options}
        server.audit.click("bo", first.id, said)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        command = ["node", str(SCRIPT), server.url, modules, chromium, str(shot), json.dumps(keys)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        server.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr
    with Image.open(shot) as screenshot:
        assert screenshot.size == (1100, 850)
    seen = json.loads(done.stdout)
    assert seen["problems"] == []
    assert "bo" in seen["body"] and "Krippendorff" in seen["body"]
    return seen, read_clicks(folder / "ann.jsonl", FORMS[kind])


def scenes(tmp_path: Path) -> Path:
    """Rendered scenes as `audit sample` lists them, with what a machine said of them."""
    rows = []
    for number, (left, right) in enumerate(PAIRS):
        prompt = f"A photo of a {left} to the left of a {right}."
        image = RenderGenerator().generate(ImageRequest(prompt, number))
        (tmp_path / f"{number}.png").write_bytes(encode_png(image))
        asked = f"1: the {left} is on the left; 2: the {right} is; 0: neither"
        name = {"sample_id": f"s{number}", "case": f"s{number}", "question": "order"}
        shown = {"asked": asked, "answers": ANSWERS, "prompt": prompt, "image": f"{number}.png"}
        rows.append({**name, **shown, "verdict_raw": "FAIL", "method": "secret-method"})
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("kind", "field", "keys"),
    [
        ("verdict", "human_verdict", {"PASS": "1", "UNDECIDABLE": "3"}),
        ("judge", "label", {"invalid": "0", "first_left": "1"}),
    ],
)
def test_images_are_labeled_by_keyboard(
    tmp_path: Path, kind: str, field: str, keys: dict[str, str]
) -> None:
    rows = scenes(tmp_path)
    seen, labels = labeled(rows, kind, list(keys.values()), tmp_path)
    last = "3 of 3, 2 done"
    assert seen["counts"] == ["1 of 3, 0 done", "2 of 3, 1 done", last, last]
    assert len(set(seen["shown"])) == 3
    assert "secret-method" not in seen["body"]
    order = {
        row["prompt"]: row["sample_id"] for row in map(json.loads, rows.read_text().splitlines())
    }
    said = {name.split("/")[0]: given[field] for name, given in labels.items()}
    named = [text.removeprefix("prompt").split("asked")[0] for text in seen["shown"]]
    assert all((kind == "judge") == ("on the left; 2" in text) for text in seen["shown"])
    assert said == {order[text]: value for text, value in zip(named, keys, strict=False)}


@pytest.mark.parametrize("kind", ["quality", "compare"])
def test_quality_is_rated_by_keyboard(tmp_path: Path, kind: str) -> None:
    asked = cases(3)
    runs = [
        image_run(tmp_path / name, asked, {case.id: shade for case in asked})
        for name, shade in (("plain", 60), ("secret-method", 200))
    ]
    keys = list("213" if kind == "compare" else "761") * 2 + ["2"]
    seen, labels = labeled(tmp_path, kind, keys, tmp_path, runs)
    assert "secret-method" not in seen["body"] and "row0" not in seen["body"]
    assert seen["counts"][3].endswith("1 done") and seen["counts"][-1].endswith("2 done")
    assert len(labels) == 3 and next(iter(labels.values())).keys() >= {"overall", "fidelity"}


def test_clips_play_and_are_rated_by_keyboard(tmp_path: Path) -> None:
    asked = cases(2)
    root = image_run(tmp_path / "run", asked, {case.id: (40, 90, 200) for case in asked})
    seen, labels = labeled(tmp_path, "quality", list("7612"), tmp_path, [root])
    assert seen["counts"][3].endswith("1 done") and len(labels) == 2
    # The player is not made anew by a click on the same clip.
    assert seen["clips"] == {"players": 1, "ready": True, "moves": True, "kept": True}
    assert len([*(tmp_path / "labels" / "clips").iterdir()]) == 1  # both are the same clip


def test_groups_are_reviewed_by_keyboard(tmp_path: Path) -> None:
    rows = [
        {
            "group": group,
            "level": level,
            "altered_law": "light is never bent",
            "prompt": f"{level} of {group}: a pencil in a glass of water",
            "assessment_point": f"what {level} must show",
        }
        for group in ("optics-1", "optics-2")
        for level in ("L1", "L2", "L3")
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = [*"ynyye", "name the glass", "y"]
    seen, labels = labeled(path, "worlds", keys, tmp_path)
    assert seen["counts"][5:7] == ["1 of 2, 1 done", "2 of 2, 1 done"]
    first, second = labels.values()
    assert first == {
        "unambiguous": "yes",
        "deduction": "no",
        "safe": "yes",
        "valid": "yes",
        "decision": "edit",
        "note": "name the glass",
    }
    assert second == {"unambiguous": "yes"}


def test_the_bank_is_reviewed_by_keyboard(tmp_path: Path) -> None:
    bank = resources.files("counterprior.builders") / "bank" / "constrained" / "keyboards.yaml"
    with resources.as_file(bank) as path:
        seen, labels = labeled(path, "bank", ["a", "r", "e", "say which key", "a"], tmp_path)
    assert seen["counts"][-1] == "5 of 30, 4 done"
    assert [given["decision"] for given in labels.values()] == [
        "accept",
        "reject",
        "edit",
        "accept",
    ]
    assert [given.get("note") for given in labels.values()] == [None, None, "say which key", None]
