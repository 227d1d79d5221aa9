"""`transformers serve` itself, with a tiny model: lists no models, decides, and is scored.

Needs `fastapi` and `uvicorn`: `pip install 'transformers[serving]'`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_vlm import VLMS

pytestmark = [
    pytest.mark.lane,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("fastapi", "uvicorn"))),
        reason="needs fastapi and uvicorn",
    ),
]
START = 300
"""Most seconds until the server answers."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A tiny vision-language model, and the URL at which it is served."""
    model, processor = VLMS["llava"]()
    folder = tmp_path / "tiny"
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ("--port", str(port), "--host", "127.0.0.1", "--device", "cpu")
    command = (Path(sys.executable).with_name("transformers"), "serve", folder, *where)
    with (tmp_path / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            [*map(str, command)],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(START):
            assert server.poll() is None, (tmp_path / "serve.log").read_text()
            try:
                urllib.request.urlopen(f"{url}/health", timeout=1)
                break
            except (urllib.error.URLError, TimeoutError):
                time.sleep(1)
        yield folder, f"{url}/v1"
    finally:
        server.kill()
        server.wait()


def test_a_served_model_decides(
    served: tuple[Path, str], cli: Callable[..., Any], text_release: Path, tmp_path: Path
) -> None:
    model, url = served
    done = cli(
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 2),
        *("--generator", "render:?order_bias=1", "--judge", f"systemone:{model}@{url}"),
        *("--out", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "run" / "verdicts").glob("*/verdicts.jsonl")
    verdicts = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(verdicts) == 4
    for verdict in verdicts:
        shares = verdict["probabilities"]
        assert sum(shares.values()) == pytest.approx(1, abs=0.01)
        assert verdict["label"] == max(shares, key=shares.__getitem__) and "mass" not in verdict
