"""Opt-in: models in worker processes draw and judge what they do in one process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.workers.farm import IN_PROCESS, Scale
from counterprior.storage import read_records

pytestmark = pytest.mark.lane


def test_models_in_workers_say_what_they_say_here(
    checkpoint: Callable[[str], Path],
    text_release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as many as in this process, see docs/scale.md
    painter = f"diffusers:{checkpoint('sd3')}?device=cpu&steps=2&width=64&height=64"
    judge = f"hf-vlm:{checkpoint('qwen3-vl')}?device=cpu&min_mass=0&batch=4"
    found = []
    for name, scale in (("one", IN_PROCESS), ("two", Scale(2))):
        settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / name, limit=4)
        evaluate_run(settings, painter, [judge], JudgeSettings(("mirror",)), scale=scale)
        images = {i.case: i.sha256 for i in Run.open(tmp_path / name).images().values()}
        (log,) = (tmp_path / name).glob("verdicts/*/verdicts.jsonl")
        records = list(read_records(log))
        numbers = {record["key"]: (record["label"], record["probabilities"]) for record in records}
        found.append((images, numbers, json.dumps(sorted(r["key"] for r in records))))
    (images, numbers, keys), (again, others, same) = found
    assert images == again and len(images) == 8 and keys == same and len(numbers) == 16
    for key, (label, shares) in numbers.items():
        assert others[key][0] == label
        assert others[key][1] == pytest.approx(shares, abs=1e-5)  # batches are made up otherwise
