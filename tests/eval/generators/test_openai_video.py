"""The videos API, over the wire: an order, waiting for it, and the clip; and what can go wrong."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.agents.chat import BackendError
from counterprior.clip_files import Clip, clip_frames, encode_webp
from counterprior.errors import UsageError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT, open_generator

FRAMES = [Image.new("RGB", (32, 32), color) for color in ("red", "blue")]
DOG = ImageRequest("a dog", 7)


@pytest.fixture
def videos(server: Any) -> Any:
    """A server whose clips are ready when they were asked for twice."""
    states = iter(["queued", "in_progress"])

    def job() -> dict[str, Any]:
        return {"id": "v1", "status": next(states, "completed"), "seconds": "4"}

    server.reply = lambda path, body: job()
    server.listings["/v1/videos/v1"] = job
    server.listings["/v1/videos/v1/content"] = encode_webp(FRAMES, 4).data
    return server


def draw(server: Any, request: ImageRequest = DOG, options: str = "") -> Clip:
    text = f"openai-video:wan@{server.url}/v1?attempts=2&timeout=5&poll=0.01{options}"
    made = open_generator(text).generate(request)
    assert isinstance(made, Clip)
    return made


def test_a_text_or_an_image_becomes_a_clip(videos: Any) -> None:
    made = draw(videos, options="&size=832x480&num_frames=9&extra.lora=slow")
    assert (made.frames, made.fps) == (2, 4)
    assert [f.getpixel((3, 3)) for f in clip_frames(made.data)] == [(255, 0, 0), (0, 0, 255)]
    assert json.loads(made.info[REPORT]) == {"seconds": "4"}
    draw(videos, ImageRequest("it jumps", 8, Image.new("RGB", (40, 30), "red")))
    text, image = videos.asked
    assert text.path == image.path == "/v1/videos"
    asked = {"model": "wan", "prompt": "a dog", "size": "832x480", "lora": "slow"}
    assert {name: str(value) for name, value in text.body.items()} == {
        **asked, "num_frames": "9", "seed": "7",
    }  # fmt: off
    assert str(image.body["seed"]) == "8"
    assert Image.open(io.BytesIO(image.body["input_reference"])).size == (40, 30)
    polled = [asked.path for asked in videos.fetched if asked.path == "/v1/videos/v1"]
    assert len(polled) == 2


def test_every_failure_has_its_name(videos: Any, fault: Any, naps: list[float]) -> None:
    refused = {"code": "moderation_blocked", "message": "not that"}
    for told, status, reason in (
        ({"status": "failed", "error": refused}, "refused", ("server-error", "not that")),
        (
            {"status": "failed", "error": {"message": "out of memory"}},
            "error",
            ("server-error", "out of memory"),
        ),
        ({"status": "failed", "error": None}, "error", ("server-error", "failed")),
        ({"status": "odd"}, "error", ("server-error", "odd")),
    ):
        videos.reply = lambda path, body: {"id": "v1", "status": "queued"}
        videos.listings["/v1/videos/v1"] = {"id": "v1", **told}
        with raises(*reason, error=GeneratorError) as caught:
            draw(videos)
        assert caught.value.status == status
    videos.listings["/v1/videos/v1"] = {"id": "v1", "status": "queued"}
    with raises("timed-out", "0.05 s", error=GeneratorError):
        draw(videos, options="&patience=0.05")
    videos.reply = lambda path, body: {"id": "v1", "status": "completed"}
    for content in (b"", b"\0\0\0 ftypisom" + bytes(40), b"<html>"):
        videos.listings["/v1/videos/v1/content"] = content
        with raises("unreadable-image", "the clip", error=GeneratorError):
            draw(videos)
    # What is ordered may be billed, whatever becomes of fetching it.
    del videos.listings["/v1/videos/v1/content"]
    with pytest.raises(BackendError) as lost:
        draw(videos)
    assert lost.value.lost_attempts == 1
    videos.faults.append(fault(400, message="no such size"))
    with raises("server-error", "no such size", error=GeneratorError):
        draw(videos)
    with raises("bad-option", "patience", "'x'", error=UsageError):
        draw(videos, options="&patience=x")
