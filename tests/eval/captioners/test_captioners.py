"""Captioners: over the wire through the ledger, of local models, and functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from tiny_vlm import VLMS

from counterprior.agents.budget import Budget, PriceTable
from counterprior.errors import UsageError
from counterprior.eval.captioners import as_captioner
from counterprior.eval.captioners.hf_vlm import LocalCaptioner
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import Caption, CaptionRequest
from counterprior.eval.judges import CallPlan

PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])


@pytest.fixture
def plan(tmp_path: Path) -> CallPlan:
    return CallPlan(tmp_path / "ledgers", Budget(PriceTable({})), concurrency=1)


def request(name: str, color: str = "red") -> CaptionRequest:
    return CaptionRequest(name, f"Describe {name}.", Image.new("RGB", (48, 32), color))


def written(captioner: Any, *requests: CaptionRequest) -> dict[str, Caption]:
    return {asked.id: caption for asked, caption in captioner.caption(requests)}


@PROTOCOLS
def test_a_server_is_shown_the_image_and_the_instruction_alone(
    server: Any, protocol: str, plan: CallPlan, fault: Any
) -> None:
    server.answer = lambda body: "<think>A dog? No.</think>\nA cat and a dog.\n"
    server.faults += [None, fault(finish="refusal"), fault(finish="length"), fault(status=400)]
    captioner = as_captioner(f"{server.spec(protocol)}&max_tokens=64", plan)
    found = written(captioner, *(request(name) for name in "abcd"))
    assert found["a"] == Caption("A cat and a dog.")
    assert found["b"].status == "refused"
    assert found["c"] == Caption("A cat and a dog.", cut=True)
    assert found["d"].status == "error" and "as told" in found["d"].text
    body = server.asked[0].body
    kinds = [part["type"] for part in body["messages"][-1]["content"]]
    assert kinds[0].startswith("image") and kinds[1:] == ["text"]
    assert body["messages"][-1]["content"][1]["text"] == "Describe a."
    assert 64 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert captioner.identity()["max_tokens"] == "64"
    told = CaptionRequest("e", "Write it anew: a cat.", None)
    assert written(captioner, told)["e"].text == "A cat and a dog."
    assert [part["type"] for part in server.asked[-1].body["messages"][-1]["content"]] == ["text"]


@pytest.mark.slow
def test_a_resumed_run_pays_for_no_caption_twice(server: Any, plan: CallPlan) -> None:
    server.answer = lambda body: "A cat."
    first = as_captioner(server.spec("openai"), plan)
    assert len(written(first, request("a"), request("b"))) == 2
    del first
    again = as_captioner(server.spec("openai"), plan)
    found = written(again, request("a"), request("b"), request("b", "blue"), request("c"))
    assert {caption.text for caption in found.values()} == {"A cat."}
    assert server.paid == 2 + 2  # another image of the same name is asked about


def test_a_function_captions_and_its_failures_are_errors() -> None:
    def name_color(image: Image.Image, instruction: str) -> Any:
        kinds = {(255, 0, 0): f"red: {instruction}", (0, 0, 255): Caption("no", "refused")}
        return kinds[image.getpixel((0, 0))] if image.width == 48 else 7  # type: ignore[index]

    captioner = as_captioner(name_color, identity="v1")
    green, small = request("g", "green"), replace(request("s"), image=Image.new("RGB", (9, 9)))
    found = written(captioner, request("a"), request("b", "blue"), green, small)
    assert found["a"] == Caption("red: Describe a.") and found["b"] == Caption("no", "refused")
    assert found["g"].status == "error" and found["g"].text.startswith("KeyError")
    assert found["s"] == Caption("a int is neither a text nor a Caption", "error")
    assert captioner.identity()["version"] == "v1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt:m", ("unknown-name", "gpt")),
        ("openai:m?max_tokens=0", ("bad-option", "max_tokens", "1 to 20,000", "'0'")),
        ("hf-vlm:nowhere?beams=4", ("unknown-option", "beams")),
    ],
)
def test_a_wrong_spec_is_refused(
    spec: str, message: tuple[str, ...], plan: CallPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with raises(*message, error=UsageError):
        as_captioner(spec, plan)


def test_a_paid_captioner_needs_a_plan() -> None:
    with raises("missing-option", "openai", error=UsageError):
        as_captioner("openai:m")
    with raises("wrong-type", "7", error=UsageError):
        as_captioner(7)


@pytest.mark.slow
def test_a_model_without_chat_is_refused(checkpoint: Callable[[str], Path]) -> None:
    captioner = as_captioner(f"hf-vlm:{checkpoint('paligemma')}?device=cpu&max_tokens=5")
    with raises("load-failed", "no chat template", "instruction-tuned", error=LoadError):
        written(captioner, request("a"))


@pytest.mark.parametrize(
    "kind",
    [
        k if k == "llava" else pytest.param(k, marks=pytest.mark.lane)
        for k in sorted(VLMS)
        if k != "paligemma"  # takes no chat
    ],
)
def test_a_local_model_writes_greedily(checkpoint: Callable[[str], Path], kind: str) -> None:
    captioner = as_captioner(f"hf-vlm:{checkpoint(kind)}?device=cpu&max_tokens=5")
    assert isinstance(captioner, LocalCaptioner)
    asked = [request("a"), request("b", "blue"), request("a")]
    first, other, again = (caption for _, caption in captioner.caption(asked))
    assert first == again and {first.status, other.status} == {"ok"}
    # Step by step, by hand: the same tokens.
    import torch

    from counterprior.eval.checkpoints.vision import chat

    inputs = captioner.processor.apply_chat_template(
        [chat((asked[0].image,), asked[0].instruction)],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        logits = captioner.model(**inputs).logits[0, -1]
    before, captioner.max_tokens = captioner.identity(), 1
    ((_, one),) = captioner.caption([asked[0]])
    likeliest = captioner.processor.tokenizer.decode([int(logits.argmax())])
    assert one.text == likeliest.strip() or likeliest in ("</s>", "<|im_end|>")
    assert captioner.identity() != before
