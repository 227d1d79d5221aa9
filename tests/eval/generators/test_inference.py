"""Inference providers, through huggingface_hub's own client, over the wire."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import constants
from huggingface_hub.hf_api import InferenceProviderMapping
from huggingface_hub.inference._providers import _common
from PIL import Image
from refusals import raises

from counterprior.agents.chat import BackendError
from counterprior.errors import UsageError
from counterprior.eval.core import Case, GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT, open_generator, served

TOKEN = "hf_very_secret_token_1"
MODEL = "black-forest-labs/FLUX.1-dev"


def encoded(colour: str = "red", size: int = 32, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def hub(server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The router and every provider's API are the loopback server; both tasks are known."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "INFERENCE_PROXY_TEMPLATE", server.url + "/{provider}")
    known: dict[str, Any] = {}
    for provider in ("fal-ai", "nscale", "replicate", "together"):
        mapping = InferenceProviderMapping(
            provider=provider,
            hf_model_id=MODEL,
            providerId="flux-dev",
            task="text-to-image",
            status="live",
        )
        known[provider] = {MODEL: mapping}
    monkeypatch.setattr(_common, "HARDCODED_MODEL_INFERENCE_MAPPING", known)
    yield


def draw(provider: str, request: ImageRequest | None = None, options: str = "") -> Image.Image:
    spec = f"inference:{provider}/{MODEL}?attempts=2&timeout=5{options}"
    made = open_generator(spec).generate(request or ImageRequest("a dog", 7))
    assert isinstance(made, Image.Image)
    return made


def give(server: Any, reply: dict[str, Any]) -> None:
    server.reply = lambda path, body: reply


def base64_of(data: bytes) -> dict[str, Any]:
    return {"data": [{"b64_json": base64.b64encode(data).decode()}]}


def test_a_text_becomes_an_image_with_seed_and_options(server: Any) -> None:
    give(server, base64_of(encoded("blue")))
    options = "&num_inference_steps=28&guidance_scale=3.5&negative_prompt=blurry&extra.lora=x"
    made = draw("together", options=options)
    assert made.mode == "RGB" and made.getpixel((0, 0)) == (0, 0, 255)
    (asked,) = server.asked
    assert asked.path.startswith("/together/") and asked.headers["authorization"].endswith(TOKEN)
    assert asked.body == {
        "prompt": "a dog",
        "model": "flux-dev",
        "response_format": "base64",
        "seed": 7,
        "steps": 28,
        "guidance_scale": 3.5,
        "negative_prompt": "blurry",
        "lora": "x",
    }
    draw("together", options="&seed=none")
    assert "seed" not in server.asked[-1].body


def test_an_edit_sends_its_source(server: Any) -> None:
    give(server, base64_of(encoded("blue")))
    source = Image.new("RGB", (32, 32), "red")
    source.info["scene"] = "the truth"
    draw("together", ImageRequest("the dog jumps", 7, source))
    (asked,) = server.asked
    assert asked.body["prompt"] == "the dog jumps" and asked.body["seed"] == 7
    sent = asked.body["reference_images"][0].partition(",")[2]
    opened = Image.open(io.BytesIO(base64.b64decode(sent)))
    assert opened.tobytes() == source.tobytes() and opened.info == {}


@pytest.mark.parametrize("provider", ["fal-ai", "replicate"])
def test_addresses_are_fetched_by_our_own_fetcher(
    server: Any, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    server.listings["/made.png"] = encoded("blue")
    url = f"{server.url}/made.png"
    give(server, {"images": [{"url": url}], "output": url})
    with raises("server-unreachable", "refused_address", error=GeneratorError):
        draw(provider)
    assert server.fetched == []
    monkeypatch.setattr(served, "FETCHING", replace(served.FETCHING, loopback=True, tries=1))
    assert draw(provider).getpixel((0, 0)) == (0, 0, 255)
    (fetched,) = server.fetched
    assert TOKEN not in str(fetched.headers)
    server.redirects["/made.png"] = "http://169.254.169.254/latest/meta-data"
    with raises("server-unreachable", "refused_address", error=GeneratorError):
        draw(provider)


def test_an_api_is_not_followed_elsewhere(server: Any, fault: Any) -> None:
    give(server, {})
    server.faults.append(fault(status=302, headers={"location": f"{server.url}/elsewhere"}))
    with raises("bad-answer", "image", error=GeneratorError):
        draw("together")
    assert len(server.asked) == 1 and server.fetched == []


def test_the_client_is_guarded_only_during_a_call(server: Any) -> None:
    from huggingface_hub.utils._http import get_session

    give(server, base64_of(encoded()))
    draw("together")
    server.listings["/elsewhere"] = "ok"
    assert get_session().get(f"{server.url}/elsewhere").text == "ok"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({}, ("bad-answer", "image")),
        ({"data": []}, ("bad-answer", "image")),
        ({"data": [{"b64_json": "%%%"}]}, ("bad-answer", "image")),
        ({"data": [{"b64_json": None}]}, ("bad-answer", "image")),
        (base64_of(b"<html>busy</html>"), ("bad-answer", "image")),
        (base64_of(encoded(size=4)), ("unreadable-image", "4 x 4", "16")),
        (base64_of(encoded(size=300)[:300]), ("bad-answer", "image")),
        (base64_of(encoded(kind="TIFF")), ("unreadable-image", "TIFF")),
    ],
)
def test_an_answer_without_image_is_an_error(
    server: Any, reply: dict[str, Any], reason: tuple[str, ...]
) -> None:
    give(server, reply)
    with raises(*reason, error=GeneratorError) as caught:
        draw("together")
    assert caught.value.status == "error" and len(server.asked) == 1


def test_a_declined_prompt_is_refused(server: Any, fault: Any) -> None:
    server.faults.append(fault(status=422, code="content_policy_violation", message="not this"))
    with raises("server-error", "not this", error=GeneratorError) as caught:
        draw("fal-ai")
    assert caught.value.status == "refused"


def test_retries_transient_failures(server: Any, fault: Any, naps: list[float]) -> None:
    give(server, base64_of(encoded()))
    server.faults += [fault(status=503)]
    assert REPORT not in draw("together").info and len(naps) == 1
    server.faults += [fault(cut=True)]
    assert json.loads(draw("together").info[REPORT]) == {"lost_attempts": 1}


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_wrong_token_or_model_ends_the_run_and_shows_no_token(
    server: Any, fault: Any, status: int
) -> None:
    server.faults.append(fault(status=status, message=f"what is {TOKEN}?"))
    with raises("server-error", "[key]", error=BackendError) as caught:
        draw("together")
    assert TOKEN not in str(caught.value)


def test_a_model_that_the_provider_does_not_serve_ends_the_run(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_common, "HARDCODED_MODEL_INFERENCE_MAPPING", {})
    monkeypatch.setattr(_common, "_fetch_inference_provider_mapping", lambda model: [])
    with raises("server-error", "together", error=BackendError):
        draw("together")


def test_the_identity_names_all_that_changes_images() -> None:
    spec = f"inference:together/{MODEL}?guidance_scale=3&timeout=9&attempts=2&bill_to=me"
    assert open_generator(spec).identity() == {
        "kind": "inference",
        "model": f"together/{MODEL}",
        "provider": "together",
        "guidance_scale": "3.0",
        "seed": "sent",
    }


def test_edits_are_refused_where_the_provider_makes_none() -> None:
    edit = Case("r", "edit", 1, 0, "a dog", ("c",), source="sources/x.png")
    with raises("cannot-edit", "nscale", "fal-ai, ", error=UsageError):
        open_generator(f"inference:nscale/{MODEL}").check([edit])  # type: ignore[attr-defined]
    open_generator(f"inference:together/{MODEL}").check([edit])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("inference:", ("missing-option", "inference:PROVIDER/NAMESPACE/NAME")),
        (f"inference:{MODEL}", ("unknown-name", "inference:PROVIDER/NAMESPACE/NAME", "fal-ai")),
        (f"inference:auto/{MODEL}", ("unknown-name", "auto/", "inference:PROVIDER/NAMESPACE/NAME")),
        (
            f"inference:together/{MODEL}?steps=4",
            ("unknown-option", "'steps'", "num_inference_steps"),
        ),
        (f"inference:together/{MODEL}?width=wide", ("bad-option", "width", "'wide'")),
        (f"inference:together/{MODEL}?seed=7", ("bad-option", "seed", "'7'")),
        (f"inference:together/{MODEL}?attempts=0", ("bad-option", "attempts", "'0'")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_generator(text)


def test_a_missing_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with raises("no-token", "HF_TOKEN", error=BackendError):
        open_generator(f"inference:together/{MODEL}")
