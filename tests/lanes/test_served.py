"""`transformers serve` itself, with a tiny model: lists no models, decides, and is scored.

Needs `fastapi` and `uvicorn`: `pip install 'transformers[serving]'`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import serving
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
    transformers = Path(sys.executable).with_name("transformers")
    command = (transformers, "serve", folder, "--device", "cpu")
    log = tmp_path / "serve.log"
    with serving(command, log, "/health", within=START, HF_HUB_OFFLINE="1") as url:
        yield folder, f"{url}/v1"


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
