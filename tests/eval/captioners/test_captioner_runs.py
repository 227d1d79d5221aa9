"""A captioner in a generator's place: what it is shown, what is recorded, and what is paid."""

from __future__ import annotations

import base64
import hashlib
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from caption_judges import names_first
from PIL import Image
from refusals import raises

from counterprior.agents.budget import UnpricedError
from counterprior.errors import UsageError
from counterprior.eval.captioners import CUT, as_captioner
from counterprior.eval.core import Caption, Case, ImageRequest, describe
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import Done, evaluate_run
from counterprior.eval.generators import as_generator
from counterprior.eval.judges import as_judge
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.suites.caption_order import UNPUBLISHED, write_images
from counterprior.eval.workers.farm import Scale
from counterprior.schema import CaptionOrder

RED, BLUE = (255, 0, 0), (0, 0, 255)


def image_file(path: Path, size: tuple[int, int] = (48, 32)) -> Path:
    """Red on the left and blue on the right."""
    image = Image.new("RGB", size, BLUE)
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    image.save(path)
    return path


def images(folder: Path, count: int = 1, size: tuple[int, int] = (48, 32)) -> Path:
    """A file of rows."""
    rows = []
    for place in range(count):
        file = image_file(folder / f"{place}.png", size)
        rows.append(
            CaptionOrder(
                image=str(place),
                place=place,
                left="cat",
                right="dog",
                left_category="animals",
                right_category="animals",
                image_sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
                file=str(file),
                **UNPUBLISHED,
            )
        )
    write_images(folder / "images.jsonl", rows)
    return folder / "images.jsonl"


JUDGE = as_judge(names_first, identity="1")


def captioned(data: Path, out: Path, captioner: Any, **options: Any) -> Done:
    settings = RunSettings("caption_order", str(data), out, variants=("tell", "mirror_tell"))
    return evaluate_run(settings, captioner, [JUDGE], **options)


def red_side(body: dict[str, Any]) -> str:
    parts = body["messages"][-1]["content"]
    url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    image = Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))
    return "red, blue" if image.getpixel((2, 2)) == RED else "blue, red"


def test_mirror_images_are_captioned_and_judged(tmp_path: Path) -> None:
    shown: list[tuple[tuple[int, int], str]] = []

    def name_left(image: Image.Image, instruction: str) -> str:
        assert not image.info and image.mode == "RGB"
        shown.append((image.size, instruction))
        red, _, blue = image.getpixel((2, 2))  # type: ignore[misc]
        return "red, blue" if red > blue else "blue, red"

    captioner = as_captioner(name_left, identity="v1")
    done = captioned(images(tmp_path, size=(1500, 900)), tmp_path / "run", captioner)
    assert [size for size, _ in shown] == [(1024, 614)] * 2
    assert {said for _, said in shown} == {"Tell somebody who can't see this image what is in it."}
    written = {r.case.split("-")[-2]: r for r in done.run.images().values()}
    texts = {name: done.run.image_path(r).read_text() for name, r in written.items()}
    assert texts == {"tell": "red, blue", "mirror_tell": "blue, red"}
    assert describe(done.run.header.generator).startswith("caption of python:")
    labels = {a.question: a.verdict.label for a in done.judged[0][0] if "mirror" not in a.case}
    assert labels == {"mention": "left_first", "words": "no"}


def test_failures_are_results_of_their_cases(tmp_path: Path) -> None:
    answers = iter(
        [Caption("no", "refused"), Caption("broken", "error"), "", Caption("a", cut=True)]
    )
    captioner = as_captioner(lambda image, text: next(answers), identity="v1")
    done = captioned(images(tmp_path, 2), tmp_path / "run", captioner)
    results = list(done.run.images().values())
    assert [r.status for r in results] == ["refused", "error", "made", "made"]
    assert [r.message for r in results] == ["no", "broken", "", ""]
    assert [r.report for r in results] == ["", "", "", CUT]
    assert done.run.image_path(results[2]).read_bytes() == b""
    # Captions may be alike; that one was cut is noted.
    (note,) = done.run.notes()
    assert "cut" in note
    # What failed is tried again, and nothing else is.
    again: list[str] = []

    def second(image: Image.Image, text: str) -> str:
        again.append(text)
        return "a"

    same = as_captioner(second, identity={"name": captioner.identity()["name"], "version": "v1"})
    assert same.identity() == captioner.identity()
    captioned(tmp_path / "images.jsonl", tmp_path / "run", same)
    assert len(again) == 1


@pytest.mark.slow
def test_no_caption_is_paid_twice(tmp_path: Path, server: Any) -> None:
    server.answer = red_side
    spec = f"caption:{server.spec('openai', 'max_tokens=9')}"
    data = images(tmp_path, 3)
    done = captioned(data, tmp_path / "run", spec, cost=Cost(concurrency=2))
    assert server.paid == 6 and done.spending.calls == 6
    assert (
        server.asked[0].body.get("max_tokens", server.asked[0].body.get("max_completion_tokens"))
        == 9
    )
    # A kill after the answers and before their records: the ledger has them.
    (tmp_path / "run" / "images.jsonl").write_text("")
    captioned(data, tmp_path / "run", spec, cost=Cost(concurrency=2), scale=Scale(2))
    assert server.paid == 6
    # A server is asked from the first process, however many workers there are.
    captioned(data, tmp_path / "other", spec, scale=Scale(2))
    assert server.paid == 12


def test_a_cap_needs_a_price_before_the_first_call(tmp_path: Path, server: Any) -> None:
    spec = f"caption:{server.spec('openai')}"
    with raises("no-price", "openai:m-1", error=UnpricedError):
        captioned(images(tmp_path), tmp_path / "run", spec, cost=Cost(max_usd=1))
    assert not server.asked


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        ("caption:gpt:m", ("unknown-name", "captioner", "gpt")),
        ("caption:", ("missing-option", "CAPTIONER")),
        ("caption:hf-vlm:nowhere?beams=4", ("unknown-option", "beams")),
    ],
)
def test_a_wrong_spec_is_refused(spec: str, facts: tuple[str, ...]) -> None:
    with raises(*facts, error=UsageError):
        as_generator(spec)


def test_a_case_without_an_image_fails() -> None:
    captioner = as_generator(as_captioner(lambda image, text: "a cat"))
    case = Case("r", "tell", 0, 0, "Tell.", ("i",))
    with raises("no-seed-image", "no image"):
        captioner.generate(ImageRequest("Tell.", 0, case=case))


def test_a_study_runs_captioners_and_its_plan_knows_no_price_of_theirs(
    tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = red_side
    code = "def open_judge():\n    return lambda question: question.labels[0]\n"
    (tmp_path / "judge_of_captions.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    study = {
        "data": str(images(tmp_path, 2)),
        "suites": {"caption_order": {}},
        "generators": {"served": f"caption:{server.spec('openai')}"},
        "judges": {"first": "python:judge_of_captions:open_judge"},
    }
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(study))
    plan = plan_study(file)
    (captions,) = plan.images
    assert (captions.count, captions.usd) == (20, None) and not plan.problems
    assert [workload.count for workload in plan.questions] == [40]
    assert not server.paid
    run_study(file, tmp_path / "study")
    assert server.paid == 20
    assert not plan_study(file, tmp_path / "study").workloads
