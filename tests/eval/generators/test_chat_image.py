"""Images that models answer with in a chat: where they stand, and what may come instead."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.agents.budget import BudgetError
from counterprior.agents.chat import BackendError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import REPORT, open_generator, served
from counterprior.images import encode_png


def data(colour: str = "red", kind: str = "png", size: int = 32) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(buffer, kind)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def answer(server: Any, message: Any, **choice: Any) -> None:
    whole = {"index": 0, "message": message, "finish_reason": "stop", **choice}
    server.reply = lambda path, body: {"id": "c", "choices": [whole], "usage": {"total": 5}}


def spec(server: Any, options: str = "attempts=2&timeout=5") -> str:
    return f"chat-image:gemini-image@{server.url}/v1?{options}"


def draw(server: Any, request: ImageRequest | None = None, options: str = "") -> Image.Image:
    made = open_generator(spec(server, f"attempts=2&timeout=5{options}")).generate(
        request or ImageRequest("a dog", 7)
    )
    assert isinstance(made, Image.Image)
    return made


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Here it is.", "images": [part(data("blue"))]},
        {"content": None, "images": [{"image_url": data("blue", "webp")}]},
        {"content": [{"type": "text", "text": "Here"}, part(data("blue"))]},
        {"content": f"Here: ![image]({data('blue')})"},
        {"content": data("blue")},
    ],
    ids=["images", "plain", "part", "markdown", "text"],
)
def test_an_image_is_found_where_it_stands(server: Any, message: dict[str, Any]) -> None:
    answer(server, {"role": "assistant", **message})
    red, _, blue = draw(server).getpixel((3, 3))  # type: ignore[misc]
    assert blue == 255 and red < 5  # webp is not exact
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "gemini-image",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a dog"}]}],
        "modalities": ["image", "text"],
        "seed": 7,
    }


def test_options_and_seed_go_over_the_wire(server: Any) -> None:
    answer(server, {"images": [part(data())]})
    options = "&aspect_ratio=1:1&image_size=1K&temperature=0.5&modalities=image&seed=none"
    draw(server, options=options + '&extra.provider={"only": ["google"]}')
    (asked,) = server.asked
    sent = {n: v for n, v in asked.body.items() if n not in ("model", "messages")}
    assert sent == {
        "modalities": ["image"],
        "temperature": 0.5,
        "image_config": {"aspect_ratio": "1:1", "image_size": "1K"},
        "provider": {"only": ["google"]},
    }
    identity = open_generator(spec(server, options[1:])).identity()
    assert identity["kind"] == "chat-image" and identity["aspect_ratio"] == "1:1"
    assert identity["seed"] == "not sent"


def test_edits_show_one_source_or_two(server: Any) -> None:
    answer(server, {"images": [part(data())]})
    first, second = (Image.new("RGB", (32, 32), colour) for colour in ("red", "blue"))
    first.info["scene"] = "the truth"
    draw(server, ImageRequest("the dog jumps", 7, first))
    draw(server, ImageRequest("put it there", 7, first, references=(second,)))
    shown = [asked.body["messages"][0]["content"] for asked in server.asked]
    assert [len(content) for content in shown] == [2, 3]
    for content, images in zip(shown, ([first], [first, second]), strict=True):
        for sent, image in zip(content[1:], images, strict=True):
            encoded = sent["image_url"]["url"].partition(",")[2]
            opened = Image.open(io.BytesIO(base64.b64decode(encoded)))
            assert opened.tobytes() == image.tobytes() and opened.info == {}


def test_report_of_chat_is_recorded_but_not_in_image(server: Any, fault: Any, naps: Any) -> None:
    answer(server, {"content": "A dog, as asked.", "images": [part(data())] * 2})
    server.faults.append(fault(torn=True))
    made = draw(server)
    report = json.loads(made.info[REPORT])
    assert report == {
        "images": 2,
        "lost_attempts": 1,
        "text": "A dog, as asked.",
        "usage": {"total": 5},
    }
    assert b"as asked" not in encode_png(made)


@pytest.mark.parametrize(
    ("message", "choice", "status", "reason"),
    [
        (
            {"content": None, "refusal": "I can't."},
            {},
            "refused",
            ("declined", "refusal", "I can't"),
        ),
        (
            {"content": ""},
            {"finish_reason": "content_filter"},
            "refused",
            ("declined", "content_filter"),
        ),
        (
            {"content": None},
            {"native_finish_reason": "IMAGE_SAFETY"},
            "refused",
            ("declined", "image_safety"),
        ),
        (
            {"content": "I can't draw that."},
            {},
            "error",
            ("bad-answer", "image", "I can't draw that"),
        ),
        ({"content": None}, {}, "error", ("bad-answer", "the answer holds no image")),
        (
            {"content": "Let me"},
            {"finish_reason": "length"},
            "error",
            ("bad-answer", "image", "cut off: 'Let me'"),
        ),
        ({"content": "", "images": []}, {}, "error", ("bad-answer", "image")),
        ({"images": [{}, None, 3, part("")]}, {}, "error", ("bad-answer", "image")),
        (
            {"images": [part("data:image/png;base64,%%%")]},
            {},
            "error",
            ("bad-answer", "image", "base64"),
        ),
        ({"images": [part("data:text/html,<b>")]}, {}, "error", ("bad-answer", "image", "base64")),
        (
            {"images": [part("data:image/png;base64,AAAA")]},
            {},
            "error",
            ("unreadable-image", "the image"),
        ),
        ({"images": [part(data(size=4))]}, {}, "error", ("unreadable-image", "4 x 4", "16")),
        ("hello", {}, "error", ("bad-answer", "chat completion")),
    ],
)
def test_refusals_and_answers_without_image_are_told_apart(
    server: Any, message: Any, choice: dict[str, Any], status: str, reason: tuple[str, ...]
) -> None:
    answer(server, message, **choice)
    with raises(*reason, error=GeneratorError) as caught:
        draw(server)
    assert caught.value.status == status and len(server.asked) == 1


@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"error": {"message": "no credit"}}])
def test_an_answer_that_is_no_completion_is_an_error(server: Any, reply: dict[str, Any]) -> None:
    server.reply = lambda path, body: reply
    with raises("bad-answer", "chat completion", error=GeneratorError) as caught:
        draw(server)
    assert caught.value.status == "error"
    assert "no credit" in str(caught.value) or "error" not in reply


def test_a_server_that_answers_with_a_page_ends_the_run(server: Any, fault: Any, naps: Any) -> None:
    server.faults += [fault(torn=True), fault(torn=True)]
    answer(server, {"images": [part(data())]})
    with raises("server-unreachable", "JSON object", "2 attempts", error=BackendError):
        draw(server)


def test_addresses_are_fetched_if_they_are_public(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "blue").save(buffer, "PNG")
    server.listings["/made.png"] = buffer.getvalue()
    answer(server, {"images": [part(f"{server.url}/made.png?signature=secret")]})
    with raises("server-unreachable", "at 127.", "refused_address", error=GeneratorError) as told:
        draw(server)
    assert server.fetched == [] and "secret" not in str(told.value)
    monkeypatch.setattr(served, "FETCHING", replace(served.FETCHING, loopback=True, tries=1))
    server.listings["/made.png?signature=secret"] = buffer.getvalue()
    assert draw(server).getpixel((0, 0)) == (0, 0, 255)
    (fetched,) = server.fetched
    assert "Authorization" not in fetched.headers
    server.redirects["/made.png?signature=secret"] = "http://10.0.0.1/x.png"
    with raises("server-unreachable", "refused_address", error=GeneratorError):
        draw(server)


def test_images_are_paid_under_the_cap(server: Any, text_release: Path, tmp_path: Path) -> None:
    answer(server, {"images": [part(data())]})
    prices = tmp_path / "prices.yaml"
    prices.write_text("chat-image:gemini-image: {image: 0.04, edit: 0.05}")
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / "run", limit=2)
    with raises("over-budget", "cap of 0.1 USD", error=BudgetError):
        generate(settings, spec(server), Cost(1, max_usd=0.1, prices=prices))
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("chat-image:", ("missing-option", "chat-image:MODEL")),
        ("chat-image:m?size=1024x1024", ("unknown-option", "'size'", "aspect_ratio")),
        ("chat-image:m?temperature=warm", ("bad-option", "temperature", "'warm'")),
        ("chat-image:m?seed=1", ("bad-option", "seed", "'1'")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(server: Any, text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_generator(text)


def test_a_missing_key_is_named(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with raises("no-token", "OPENAI_API_KEY", error=BackendError):
        open_generator("chat-image:m")
