"""A plan of round trips: the steps that are left, what they cost, and what would fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trip_doubles as doubles
import yaml

from counterprior.eval.engine.data import Rows
from counterprior.eval.studies import preflight as plans
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.preflight import StudyPlan, plan_study
from counterprior.eval.studies.runner import run_study

HERE = "python:trip_doubles:"
ROWS = 1
PER_ROW = {"captions": 8, "revised captions": 6, "drawings": 8, "edited images": 6}
"""A caption of the image and of each edit, of the drawing and of each edit of that; the other
steps likewise. Steps that several routes share are one."""


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    doubles.reset()
    for module in (plans, studies):
        monkeypatch.setattr(module, "read_rows", lambda *_: Rows.of(doubles.rows(ROWS)))
    yield
    doubles.reset()


def written(folder: Path, **changes: Any) -> Path:
    plain = {
        "data": "the world",
        "suites": {"consistency": {}},
        "captioners": {"teller": f"{HERE}teller"},
        "generators": {"hand": f"{HERE}hand"},
        "editors": {"image": f"{HERE}hand?name=editor", "text": f"{HERE}teller?name=editor"},
        "judges": {"reader": f"{HERE}reader"},
    }
    file = folder / "s.yaml"
    file.write_text(yaml.safe_dump(plain | changes))
    return file


def steps(plan: StudyPlan) -> dict[str, int]:
    return {part.what.removesuffix(" of consistency"): part.count for part in plan.steps}


def test_steps_that_trips_share_count_once(tmp_path: Path) -> None:
    plan = plan_study(written(tmp_path))
    assert steps(plan) == {what: ROWS * count for what, count in PER_ROW.items()}
    assert plan.usd == 0 and not plan.problems and not doubles.DID
    texts = sum(part.count for part in plan.images if part.what == "texts of consistency")
    assert texts == ROWS * (1 + 6 + 4) and sum(p.count for p in plan.images) == 2 * texts


@pytest.mark.lane
def test_plan_excludes_finished_steps(tmp_path: Path) -> None:
    file, out = written(tmp_path), tmp_path / "out"

    def stop() -> None:
        if doubles.DID.total() == 9:
            raise KeyboardInterrupt

    doubles.BEFORE[:] = [stop]
    with pytest.raises(KeyboardInterrupt):
        run_study(file, out)
    doubles.BEFORE.clear()
    left = steps(plan_study(file, out))
    assert sum(left.values()) < sum(PER_ROW.values()) * ROWS
    assert not run_study(file, out).failures
    kinds = Counter(what.partition(" ")[0] for what in doubles.DID)
    assert kinds["tell"] + kinds["draw"] <= sum(PER_ROW.values()) * ROWS
    assert not plan_study(file, out).workloads


def test_money_of_captions_and_images_and_what_would_fail(
    tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = server.spec("openai")
    paid = {
        "captioners": {"teller": chat},
        "generators": {"hand": chat.replace("openai:", "openai-image:", 1)},
        "editors": {"text": chat.replace("m-1", "m-2")},
        "judges": {"reader": f"{HERE}reader"},
    }
    prices = tmp_path / "prices.yaml"
    table: dict[str, Any] = {
        "openai:m-1": {"input": 1000, "output": 0},
        "openai:m-2": {"input": 0, "output": 1000},
        "openai-image:m-1": {"image": 0.5, "edit": 7},
    }
    prices.write_text(yaml.safe_dump(table))
    plan = plan_study(written(tmp_path, **paid, prices=str(prices)))
    assert not plan.problems and server.paid == 0
    usd = {part.what.removesuffix(" of consistency"): part for part in plan.steps}
    assert "edited images" not in usd, "without an editor of images those routes are left out"
    drawn = usd["drawings"]
    assert drawn.usd == drawn.most_usd == 0.5 * drawn.count
    told, revised = usd["captions"], usd["revised captions"]
    assert told.usd is not None and told.usd > 1.0 * told.count  # 1,000 tokens an image
    assert revised.usd == pytest.approx(0.15 * revised.count)  # 150 tokens of a caption
    for part in (told, revised):
        assert part.most_usd is not None and part.usd is not None and part.most_usd > part.usd
    assert plan.usd == pytest.approx(sum(part.usd or 0 for part in plan.steps))
    del table["openai:m-2"]
    prices.write_text(yaml.safe_dump(table))
    unknown = plan_study(written(tmp_path, **paid, prices=str(prices)))
    assert unknown.usd is None, "unknown is not 0"
    capped = plan_study(written(tmp_path, **paid, prices=str(prices), max_usd=1))
    assert [
        p for p in capped.problems if p.startswith("round trips: no price is known for openai:m-2")
    ]
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (problem,) = plan_study(written(tmp_path, captioners={"a": "anthropic:m"})).problems
    assert problem.startswith("round trips: ") and "ANTHROPIC_API_KEY" in problem
