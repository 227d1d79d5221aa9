"""The images API, over the wire: images, edits, and everything that a server can do instead."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from PIL import Image

from counterprior.agents.chat import BackendError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT, open_generator
from counterprior.images import encode_png

KEY = "sk-test-4f1c0de"


def encoded(colour: str = "red", mode: str = "RGB", kind: str = "PNG", size: int = 32) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (size, size), colour).save(buffer, kind)
    return buffer.getvalue()


def spec(server: Any, options: str = "attempts=3&timeout=5") -> str:
    return f"openai-image:img-1@{server.url}/v1?{options}"


def draw(server: Any, request: ImageRequest | None = None, **options: str) -> Image.Image:
    settings = {"attempts": "3", "timeout": "5", **options}
    text = "&".join(f"{name}={value}" for name, value in settings.items())
    return open_generator(spec(server, text)).generate(request or ImageRequest("a dog", 7))


def test_a_text_becomes_an_image(server: Any) -> None:
    server.draw = lambda body: encoded("blue")
    made = draw(server, size="1024x1024", quality="high")
    assert made.mode == "RGB" and made.getpixel((3, 3)) == (0, 0, 255)
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.body == {
        "model": "img-1",
        "prompt": "a dog",
        "size": "1024x1024",
        "quality": "high",
    }


def test_an_edit_sends_its_source(server: Any) -> None:
    server.draw = lambda body: body["image"]
    source = Image.effect_noise((40, 30), 90).convert("RGB")
    source.info["scene"] = "the truth"
    made = draw(server, ImageRequest("the dog jumps", 7, source), input_fidelity="high")
    (asked,) = server.asked
    assert asked.path == "/v1/images/edits"
    assert asked.body["prompt"] == "the dog jumps" and asked.body["input_fidelity"] == "high"
    sent = Image.open(io.BytesIO(asked.body["image"]))
    assert sent.tobytes() == source.tobytes() and sent.info == {}
    assert made.tobytes() == source.tobytes()


def test_a_seed_is_sent_only_where_one_is_taken(server: Any) -> None:
    server.draw = lambda body: encoded()
    draw(server, seed="send")
    draw(server, ImageRequest("x", 7, Image.new("RGB", (32, 32))), seed="send")
    draw(server)
    assert [a.body.get("seed") for a in server.asked] == [7, "7", None]


def test_what_the_api_said_is_reported_and_never_saved(server: Any, fault: Any, naps: Any) -> None:
    server.draw = lambda body: encoded()
    server.faults.append(fault(torn=True))
    made = draw(server)
    report = json.loads(made.info[REPORT])
    assert report["usage"]["output_tokens"] == 1056 and report["lost_attempts"] == 1
    assert report["revised_prompt"] == "a dog, revised"
    assert b"revised" not in encode_png(made)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_any_usual_format_is_read(server: Any, kind: str) -> None:
    server.draw = lambda body: encoded(kind=kind)
    assert draw(server).size == (32, 32)


def test_a_transparent_image_is_put_on_white(server: Any) -> None:
    server.draw = lambda body: encoded("#00000000", mode="RGBA")
    assert draw(server).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("code", ["moderation_blocked", "content_policy_violation"])
def test_a_declined_prompt_is_refused(server: Any, fault: Any, code: str) -> None:
    server.faults.append(fault(status=400, code=code, message="not with us"))
    with pytest.raises(GeneratorError, match="not with us") as caught:
        draw(server)
    assert caught.value.status == "refused" and len(server.asked) == 1


def test_a_rejected_request_is_an_error(server: Any, fault: Any) -> None:
    server.faults.append(fault(status=400, code="invalid_size", message="no such size"))
    with pytest.raises(GeneratorError, match=r"HTTP 400: .*no such size") as caught:
        draw(server)
    assert caught.value.status == "error"


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (None, "an address only: add response_format=b64_json"),
        (b"<html>busy</html>", "the image is no readable"),
        (encoded(size=300)[:200], "the image is no readable"),
        (encoded(size=4), "a side below 16"),
    ],
)
def test_an_answer_without_image_is_an_error(server: Any, image: bytes | None, reason: str) -> None:
    server.draw = lambda body: image
    with pytest.raises(GeneratorError, match=reason) as caught:
        draw(server)
    assert caught.value.status == "error" and len(server.asked) == 1  # an address isn't followed


def test_an_answer_without_data_is_an_error(server: Any, fault: Any) -> None:
    server.faults.append(fault(without="data"))
    with pytest.raises(GeneratorError, match="holds no image"):
        draw(server)


@pytest.mark.parametrize(
    "trouble", [{"status": 429}, {"status": 500}, {"cut": True}, {"torn": True}]
)
def test_trouble_that_passes_is_waited_out(
    server: Any, fault: Any, naps: list[float], trouble: dict[str, Any]
) -> None:
    server.draw = lambda body: encoded()
    server.faults += [fault(**trouble), fault(**trouble)]
    report = json.loads(draw(server).info[REPORT])
    assert len(naps) == 2 and len(server.asked) == 3
    # What was lost after the work was done may be billed; what was turned away is not.
    assert report.get("lost_attempts", 0) == (0 if "status" in trouble else 2)


def test_a_server_that_is_gone_ends_the_run(server: Any, naps: list[float]) -> None:
    generator = open_generator(spec(server))
    server.close()
    with pytest.raises(BackendError, match="gave up after 3 attempts"):
        generator.generate(ImageRequest("a dog", 7))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_ends_the_run_and_shows_no_key(
    server: Any, fault: Any, status: int
) -> None:
    server.faults.append(fault(status=status, message=f"what is {KEY}?"))
    with pytest.raises(BackendError, match=r"what is \[key\]") as caught:
        draw(server)
    assert KEY not in str(caught.value) and KEY in str(server.asked[0].headers)


def test_the_identity_names_all_that_changes_images(server: Any) -> None:
    generator = open_generator(spec(server, "size=512x512&attempts=2&timeout=9"))
    assert generator.identity() == {
        "kind": "openai-image",
        "model": "img-1",
        "provider": "custom",
        "size": "512x512",
        "server": server.url.removeprefix("http://"),
        "seed": "unknown to the API",
    }
    assert open_generator(spec(server, "seed=send")).identity()["seed"] == "sent"
    assert open_generator("openai-image:gpt-image-2").identity()["provider"] == "openai"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("openai-image:", "name a model"),
        ("openai-image:m?n=4", "no option 'n': choose from background"),
        ("openai-image:m?temperature=0", "no option 'temperature'"),
        ("openai-image:m?seed=7", "seed is `send`"),
        ("openai-image:m?attempts=0", "attempts must be 1"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(server: Any, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        open_generator(text)
