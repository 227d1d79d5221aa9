"""The labelling page in a browser: `npm i puppeteer-core @sparticuz/chromium` and two variables.

COUNTERPRIOR_CHROMIUM: an executable; COUNTERPRIOR_NODE_MODULES: the folder with puppeteer-core.
COUNTERPRIOR_SCREENSHOT: where the picture of the page is kept; a temporary folder if not set.
"""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from PIL import Image

from counterprior.eval.audit.labels import read_labels
from counterprior.eval.audit.serve import Audit, AuditServer
from counterprior.eval.generators import ImageRequest, encode_png
from counterprior.eval.generators.render import RenderGenerator

SCRIPT = Path(__file__).with_name("audit_page.mjs")


@pytest.mark.lane
def test_labelling_by_keyboard_saves_and_resumes(tmp_path: Path) -> None:
    try:
        chromium = os.environ["COUNTERPRIOR_CHROMIUM"]
        modules = os.environ["COUNTERPRIOR_NODE_MODULES"]
    except KeyError as missing:
        pytest.skip(f"{missing.args[0]} is not set")
    rows = []
    for number, pair in enumerate((("cat", "dog"), ("horse", "cow"), ("sheep", "goat"))):
        prompt = f"A photo of a {pair[0]} to the left of a {pair[1]}."
        image = RenderGenerator().generate(ImageRequest(prompt, number))
        (tmp_path / f"{number}.png").write_bytes(encode_png(image))
        rows.append({"sample_id": f"s{number}", "image": f"{number}.png", "prompt": prompt,
                     "verdict_raw": "FAIL", "method": "secret-method"})  # fmt: skip
    sample = tmp_path / "sample.jsonl"
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shot = Path(os.environ.get("COUNTERPRIOR_SCREENSHOT", tmp_path / "page.png"))
    with AuditServer(Audit.open(sample, "verdict", tmp_path / "labels")) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        command = ["node", str(SCRIPT), server.url, modules, chromium, str(shot)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        server.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["problems"] == []
    assert seen["counts"] == ["1 of 3, 0 done", "2 of 3, 1 done", "3 of 3, 2 done",
                              "3 of 3, 2 done"]  # fmt: skip
    assert len(set(seen["prompts"])) == 3
    assert "secret-method" not in seen["body"]
    order = {row["prompt"]: row["sample_id"] for row in rows}
    labels = {one.sample_id: one.verdict for one in read_labels(tmp_path / "labels" / "ann.jsonl")}
    assert labels == {
        order[seen["prompts"][0]]: "PASS",
        order[seen["prompts"][1]]: "UNDECIDABLE",
    }
    with Image.open(shot) as picture:
        assert picture.size == (1100, 850)
