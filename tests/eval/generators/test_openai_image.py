"""The images API, over the wire: images, edits, and everything that a server can do instead."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

import counterprior
from counterprior.agents.chat import BackendError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import REPORT, open_generator, served
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
        "seed": 7,
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


def test_seeds_are_sent_unless_the_api_is_known_to_have_none(server: Any) -> None:
    server.draw = lambda body: encoded()
    draw(server)
    draw(server, ImageRequest("x", 7, Image.new("RGB", (32, 32))))
    draw(server, seed="none")
    assert [a.body.get("seed") for a in server.asked] == [7, "7", None]
    assert open_generator("openai-image:gpt-image-2").identity()["seed"] == "not sent"
    gemini = "openai-image:g@https://generativelanguage.googleapis.com/v1beta/openai"
    assert open_generator(f"{gemini}?seed=send").identity()["seed"] == "sent"


def test_options_go_over_the_wire_by_their_own_names(server: Any) -> None:
    server.draw = lambda body: encoded()
    options = {
        "num_inference_steps": "28",
        "guidance_scale": "3.5",
        "true_cfg_scale": "4",
        "negative_prompt": "blurry",
        "extra.enable_teacache": "true",
        "extra.diffusers_kwargs": '{"eta": 0.5}',
        "extra.lora": "detail",
    }
    draw(server, **options)
    draw(server, ImageRequest("x", 7, Image.new("RGB", (32, 32))), **options)
    made, edited = (asked.body for asked in server.asked)
    assert made["num_inference_steps"] == 28 and made["guidance_scale"] == 3.5
    assert made["true_cfg_scale"] == 4.0 and made["negative_prompt"] == "blurry"
    assert made["enable_teacache"] is True and made["lora"] == "detail"
    assert made["diffusers_kwargs"] == {"eta": 0.5}
    assert edited["num_inference_steps"] == "28" and edited["negative_prompt"] == "blurry"
    assert json.loads(edited["diffusers_kwargs"]) == {"eta": 0.5}
    identity = open_generator(spec(server, "extra.lora=a&num_inference_steps=4")).identity()
    assert identity["lora"] == "a" and identity["num_inference_steps"] == "4"


def test_an_edit_may_refer_to_a_second_image(server: Any) -> None:
    server.draw = lambda body: body["image[]"]
    first, second = (Image.new("RGB", (32, 32), colour) for colour in ("red", "blue"))
    made = draw(server, ImageRequest("put it there", 7, first, references=(second,)))
    assert made.getpixel((0, 0)) == (0, 0, 255)  # a form keeps the last of two fields


@pytest.fixture
def sglang(server: Any) -> Any:
    """A server with SGLang's defaults: without a seed it takes 1024; and it lists its model."""

    def noise(body: dict[str, Any]) -> bytes:
        rng = random.Random(f"{body['prompt']}/{body.get('seed', 1024)}")
        buffer = io.BytesIO()
        Image.frombytes("RGB", (32, 32), rng.randbytes(3 * 32 * 32)).save(buffer, "PNG")
        return buffer.getvalue()

    server.draw = noise
    server.listings["/models"] = SGLANG
    return server


SGLANG = {
    "model_path": "black-forest-labs/FLUX.1-dev",
    "task_type": "T2I",
    "pipeline_class": "FluxPipeline",
    "num_gpus": 4,
    "dit_precision": "bf16",
}


def run_of(server: Any, release: Path, out: Path, options: str = "") -> Run:
    settings = RunSettings("t2i_homogenization", str(release), out, seeds=4, limit=1)
    return generate(settings, spec(server, f"attempts=1&timeout=5{options}")).run


def test_four_seeds_are_four_requests_and_four_images(
    sglang: Any, text_release: Path, tmp_path: Path
) -> None:
    run = run_of(sglang, text_release, tmp_path / "run")
    sent = [(asked.body["prompt"], asked.body["seed"]) for asked in sglang.asked]
    assert len(sent) == len(set(sent)) == 8 and len({seed for _, seed in sent}) == 4
    assert len({image.sha256 for image in run.images().values()}) == 8
    assert run.notes() == []


def test_a_server_that_ignores_its_seeds_is_named(
    sglang: Any, text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    named = "does not use its seeds: 8 of 8 images are byte for byte those of another seed"
    words = ["--suite", "t2i_homogenization", "--seeds", "4", "--limit", "1"]
    words += ["--data", str(text_release), "--out", str(tmp_path / "run")]
    done = cli("generate", *words, "--generator", spec(sglang, "timeout=5&seed=none"))
    assert done.returncode == 0, done.stderr
    assert f"openai-image:img-1 @ {sglang.url.removeprefix('http://')} {named}" in done.stderr
    result = counterprior.evaluate(
        "t2i_homogenization",
        spec(sglang, "timeout=5&seed=none"),
        lambda question: "invalid",
        data=str(text_release),
        limit=1,
        seeds=4,
    )
    assert any(named in note for note in result.notes)
    assert not any("another prompt" in note for note in result.notes)


def test_notes_one_image_for_all_prompts(sglang: Any, text_release: Path, tmp_path: Path) -> None:
    sglang.draw = lambda body: encoded()
    of_seeds, of_prompts = run_of(sglang, text_release, tmp_path / "run").notes()
    assert "does not use its seeds" in of_seeds
    assert of_prompts.startswith("8 of 8 images are byte for byte those of another prompt")


def test_identity_has_facts_of_server_list(sglang: Any) -> None:
    assert (
        SGLANG.items()
        >= {
            name.removeprefix("served_"): value
            for name, value in open_generator(spec(sglang)).identity().items()
            if name.startswith("served_")
        }.items()
        != {}.items()
    )
    vllm = [{"id": "other", "root": "B/b"}, {"id": "img-1", "root": "A/a", "created": 1}]
    for order in (vllm, vllm[::-1]):
        sglang.listings["/v1/models"] = {"object": "list", "data": order}
        identity = open_generator(spec(sglang)).identity()
        assert {n: v for n, v in identity.items() if "served" in n} == {"served_root": "A/a"}


def test_a_list_that_is_away_for_a_moment_is_asked_for_again(
    sglang: Any, fault: Any, naps: list[float]
) -> None:
    sglang.listings["/v1/models"] = {"data": [{"id": "img-1", "root": "A/a"}]}
    sglang.list_faults += [fault(429, {"retry-after": "3"}), fault(503)]
    assert open_generator(spec(sglang)).identity()["served_root"] == "A/a"
    assert naps[0] == 3 and len(naps) == 2


@pytest.mark.parametrize(
    "listing",
    ["<html>hello</html>", "", {}, {"data": None}, {"data": [1]}, [], {"data": []}, f'"{KEY}"'],
)
def test_ignores_unreadable_list_of_models(server: Any, listing: Any) -> None:
    server.listings["/v1/models"] = listing
    assert not [name for name in open_generator(spec(server)).identity() if "served" in name]


def test_a_run_goes_on_while_the_list_is_away_and_refuses_another_model(
    sglang: Any, text_release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run = run_of(sglang, text_release, out)
    assert run.header.generator["served_model_path"] == SGLANG["model_path"]
    header = (out / "run.json").read_bytes()
    del sglang.listings["/models"]
    run_of(sglang, text_release, out)
    sglang.listings["/models"] = {**SGLANG, "num_gpus": 8}
    run_of(sglang, text_release, out)
    assert (out / "run.json").read_bytes() == header and len(sglang.asked) == 8
    sglang.listings["/models"] = {**SGLANG, "dit_precision": "fp8"}
    with raises(
        "another-run", "dit_precision=bf16) there", "dit_precision=fp8) asked", error=RunError
    ):
        run_of(sglang, text_release, out)


def test_a_finished_run_needs_no_server(sglang: Any, text_release: Path, tmp_path: Path) -> None:
    run_of(sglang, text_release, tmp_path / "run")
    sglang.close()
    run_of(sglang, text_release, tmp_path / "run")


def test_error_of_server_without_seeds_names_seed_none(server: Any, fault: Any) -> None:
    server.faults.append(fault(status=400, message="Unknown parameter: 'seed'."))
    with raises("server-error", "Unknown parameter", "seed=none", error=GeneratorError):
        draw(server)


def test_report_of_api_is_recorded_but_not_in_image(server: Any, fault: Any, naps: Any) -> None:
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
    with raises("declined", "not with us", error=GeneratorError) as caught:
        draw(server)
    assert caught.value.status == "refused" and len(server.asked) == 1


def test_a_rejected_request_is_an_error(server: Any, fault: Any) -> None:
    server.faults.append(fault(status=400, code="invalid_size", message="no such size"))
    with raises("server-error", "HTTP 400", "no such size", error=GeneratorError) as caught:
        draw(server)
    assert caught.value.status == "error"


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (None, ("server-unreachable", "refused_address", "response_format=b64_json")),
        (b"<html>busy</html>", ("unreadable-image", "the image")),
        (encoded(size=300)[:200], ("unreadable-image", "the image")),
        (encoded(size=4), ("unreadable-image", "4 x 4", "16")),
    ],
)
def test_an_answer_without_image_is_an_error(
    server: Any, image: bytes | None, reason: tuple[str, ...]
) -> None:
    server.draw = lambda body: image
    with raises(*reason, error=GeneratorError) as caught:
        draw(server)
    assert caught.value.status == "error" and len(server.asked) == 1
    assert caught.value.ends_run == (image is None) and not server.fetched  # no public address


def test_an_image_at_an_address_is_fetched(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "FETCHING", replace(served.FETCHING, loopback=True))
    server.listings["/made/1.png"] = encoded("#ff0000")
    server.reply = lambda path, body: {"data": [{"url": f"{server.url}/made/1.png"}]}
    assert draw(server).getpixel((0, 0)) == (255, 0, 0)
    (fetched,) = server.fetched
    assert KEY not in str(fetched.headers)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://[::1", "http://169.254.169.254/a"])
def test_an_address_that_nobody_may_fetch_ends_the_run(server: Any, url: str) -> None:
    server.reply = lambda path, body: {"data": [{"url": url}]}
    with raises("server-unreachable", error=GeneratorError) as caught:
        draw(server)
    assert caught.value.ends_run


def test_an_answer_without_data_is_an_error(server: Any, fault: Any) -> None:
    server.faults.append(fault(without="data"))
    with raises("bad-answer", "image", error=GeneratorError):
        draw(server)


@pytest.mark.parametrize(
    "trouble", [{"status": 429}, {"status": 500}, {"cut": True}, {"torn": True}]
)
def test_retries_transient_failures(
    server: Any, fault: Any, naps: list[float], trouble: dict[str, Any]
) -> None:
    server.draw = lambda body: encoded()
    server.faults += [fault(**trouble), fault(**trouble)]
    report = json.loads(draw(server).info[REPORT])
    assert len(naps) == 2 and len(server.asked) == 3
    # What was lost after the work was done may be billed; what was turned away is not.
    assert report.get("lost_attempts", 0) == (0 if trouble.get("status") == 429 else 2)


def test_a_server_that_is_gone_ends_the_run(server: Any, naps: list[float]) -> None:
    generator = open_generator(spec(server))
    server.close()
    with raises("server-unreachable", "3 attempts", error=BackendError):
        generator.generate(ImageRequest("a dog", 7))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_ends_the_run_and_shows_no_key(
    server: Any, fault: Any, status: int
) -> None:
    server.faults.append(fault(status=status, message=f"what is {KEY}?"))
    with raises("server-error", "[key]", error=BackendError) as caught:
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
        "seed": "sent",
    }
    assert open_generator(spec(server, "seed=none")).identity()["seed"] == "not sent"
    assert open_generator("openai-image:gpt-image-2").identity()["provider"] == "openai"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("openai-image:", ("missing-option", "openai-image:MODEL")),
        ("openai-image:m?n=4", ("unknown-option", "'n'", "background")),
        ("openai-image:m?temperature=0", ("unknown-option", "temperature")),
        ("openai-image:m?seed=7", ("bad-option", "seed", "'7'")),
        (
            "openai-image:m?num_inference_steps=many",
            ("bad-option", "num_inference_steps", "'many'"),
        ),
        ("openai-image:m?guidance=4", ("unknown-option", "'guidance'", "mean guidance_scale?")),
        ("openai-image:m?extra.=4", ("unknown-option", "extra.")),
        ("openai-image:m?attempts=0", ("bad-option", "attempts", "'0'")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(server: Any, text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_generator(text)
