"""Temporal prompt switching: exact at both ends on real pipelines, and a known truth."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused, raises
from steered import FIELDS, OPTIONS, STEPS, A, B, Opened, kinds, request

from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import read_rows
from counterprior.eval.generators import open_generator
from counterprior.eval.methods import apply_methods, denoising
from counterprior.scenes.scene import Scene
from counterprior.schema import T2IHomogenization
from counterprior.storage import read_records

SCHEDULERS = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
"""Of NumPy, inside the schedulers of diffusers."""


def drawn(generator: Any, asked: ImageRequest) -> bytes:
    image = generator.generate(asked)
    data: bytes = image.tobytes()
    return data


@SCHEDULERS
@pytest.mark.parametrize("kind", kinds(*OPTIONS))
def test_a_switch_is_exact_at_both_ends_and_to_the_same_prompt(opened: Opened, kind: str) -> None:
    generator = opened(kind)
    a, b = (drawn(generator, request(kind, prompt)) for prompt in (A, B))
    assert a != b

    def at(step: str, fields: dict[str, str] = FIELDS) -> bytes:
        switch = apply_methods(generator, [f"switch:a2b?at={step}"])
        return drawn(switch, replace(request(kind), fields=fields))

    assert at("0") == b and at(str(STEPS)) == a
    assert at("1", {**FIELDS, "swapped_prompt": A}) == a
    assert at("1") not in (a, b)
    assert at("0,1") not in (a, b, at("1"))  # the first step alone has the other prompt
    assert drawn(generator, request(kind)) == a  # the pipeline itself is as it was


def test_each_protocol_starts_and_ends_with_its_prompts(opened: Opened) -> None:
    generator = opened("sd15")
    images = {p: drawn(generator, request("sd15", FIELDS[p])) for p in FIELDS}
    a, b, n = images.values()
    for protocol, (start, end) in {
        "a2b": (a, b),
        "b2a": (b, a),
        "n2a": (n, a),
        "n2b": (n, b),
    }.items():
        for step, expected in (("0", end), (str(STEPS), start)):
            switch = apply_methods(generator, [f"switch:{protocol}?at={step}"])
            assert drawn(switch, request("sd15")) == expected, (protocol, step)
    # A is the case's own prompt: of a swapped case it is the swapped one.
    swapped = apply_methods(generator, ["switch:a2b?at=0"])
    assert drawn(swapped, request("sd15", B)) == a


def test_both_denoisers_of_a_pipeline_are_switched() -> None:
    # As Wan 2.2: one model for the early steps, one for the late ones.
    torch = pytest.importorskip("torch")

    class Denoiser(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, hidden_states: Any, timestep: Any, encoder_hidden_states: Any) -> Any:
            seen.append((float(timestep), float(encoder_hidden_states)))
            return hidden_states

    class Pipeline:
        transformer, transformer_2 = Denoiser(), Denoiser()

        def maybe_free_model_hooks(self) -> None: ...

        def __call__(self, text: float) -> None:
            for step in (3.0, 2.0, 1.0, 0.0):
                model = self.transformer if step >= 2 else self.transformer_2
                for guided in (text, -1.0):  # true guidance calls twice a step
                    model(
                        hidden_states=torch.zeros(1),
                        timestep=torch.tensor([step]),
                        encoder_hidden_states=torch.tensor(guided),
                    )

    seen: list[tuple[float, float]] = []
    pipeline = Pipeline()
    other = denoising.first_arguments(pipeline, lambda: pipeline(8.0))
    assert seen == []  # the call ended before the model computed anything
    for at, expected in {(1,): [7, 8, 8, 8], (3,): [7, 7, 7, 8], (1, 3): [7, 8, 8, 7]}.items():
        seen.clear()
        hook = denoising.SwitchHook(at, denoising.conditioning(other))
        with denoising.hooked(pipeline, hook):
            pipeline(7.0)
        assert [text for _, text in seen[::2]] == expected
        assert {text for _, text in seen[1::2]} == {-1.0}
        assert hook.switched == [i for i, text in enumerate(expected) if text == 8]


ROW = {
    "prompt": "One cat and one dog.",
    "swapped_prompt": "One dog and one cat.",
    "neutral_prompt": "Two animals.",
}


def left(generator: Any, prompt: str, seed: int) -> str:
    image = generator.generate(ImageRequest(prompt, seed, fields=ROW))
    return Scene.of(image).left_to_right()[0]


def test_a_switch_works_until_the_layout_is_decided() -> None:
    base = open_generator("render:?order_bias=9&decides=3")
    for step, works in {0: True, 1: True, 2: True, 3: False, 5: False}.items():
        switched = apply_methods(base, [f"switch:a2b?at={step}"])
        names = {left(switched, ROW["prompt"], seed) for seed in range(8)}
        assert names == {"dog" if works else "cat"}
    back = apply_methods(base, ["switch:a2b?at=1,2"])
    assert {left(back, ROW["prompt"], seed) for seed in range(8)} == {"cat"}
    neutral = {k: apply_methods(base, [f"switch:n2a?at={k}"]) for k in (2, 3)}
    assert {left(neutral[2], ROW["prompt"], seed) for seed in range(20)} == {"cat"}
    assert {left(neutral[3], ROW["prompt"], seed) for seed in range(20)} == {"cat", "dog"}


@pytest.mark.slow
def test_scenes_stay_where_names_do_not(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data, suite = f"{text_release}?places=true", "t2i_homogenization"
    plain, placed = (read_rows(text, suite).rows for text in (str(text_release), data))
    assert len(plain) == len(placed) and read_rows(data, suite) == read_rows(data, suite)
    places = set()
    for before, row in zip(plain, placed, strict=True):
        assert isinstance(row, T2IHomogenization) and isinstance(before, T2IHomogenization)
        if row.first_action or row.second_action:
            assert row == before  # what they do is their scene
            continue
        texts = [row.prompt, row.swapped_prompt, row.neutral_prompt]
        bare = [before.prompt, before.swapped_prompt, before.neutral_prompt]
        (place,) = {
            text.removeprefix(b.removesuffix(".")) for text, b in zip(texts, bare, strict=True)
        }
        assert re.fullmatch(r" (in|on) an? [a-z]+\.", place) and row.id != before.id
        places.add(place)
    assert len(places) > 3
    # The renderer decides after three steps, in which it reads of two in a park, and of no name.
    options = ["--generator", "render:?order_bias=9&decides=3", "--method", "switch:n2a?at=3"]
    run = ["--suite", suite, "--data", data, "--limit", "12", *options, "--judge", "pixels"]
    done = cli("eval", *run, "--json", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    prompts = [case["prompt"] for case in read_records(tmp_path / "run" / "cases.jsonl")]
    assert sum(prompt.endswith(tuple(places)) for prompt in prompts) >= 8
    refused = cli("prompts", "--suite", "spatial_uc", "--data", data, "--out", tmp_path / "p.jsonl")
    assert_refused(refused, "unsupported", "spatial_uc: knows no places")


def test_the_method_is_part_of_the_identity() -> None:
    base = open_generator("render:")
    one = apply_methods(base, ["switch:a2b?at=2"])
    two = apply_methods(one, ["best-of:2?by=pixels"])
    assert one.identity() == {**base.identity(), "method": "switch:a2b?at=2"}
    assert two.identity()["method"].startswith("switch:a2b?at=2 + best-of:2?by=pixels")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("switch:a2c?at=1", ("unknown-name", "a2c")),
        ("switch:a2b", ("missing-option", "option at", "at=")),
        ("switch:a2b?at=-1", ("bad-option", "at must", "'-1'")),
        ("switch:a2b?at=4,2", ("bad-option", "at must", "'4,2'")),
        ("switch:a2b?at=1&when=2", ("unknown-option", "'when'", "choose from at")),
        ("twitch:a2b", ("unknown-name", "'twitch'", "mean switch?")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(spec: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        apply_methods("render:", [spec])


def test_a_method_is_refused_before_the_first_image(
    cli: Callable[..., Any], text_release: Path, tmp_path: Path
) -> None:
    def generate(suite: str, generator: str, method: str) -> str:
        done = cli(
            *("generate", "--suite", suite, "--data", text_release, "--limit", 2),
            *("--generator", generator, "--method", method, "--out", tmp_path / "run"),
            env={**os.environ, "OPENAI_API_KEY": "sk-none"},
        )
        assert done.returncode == 2, done.stdout + done.stderr
        return " ".join(done.stderr.split())

    said = generate("t2i_homogenization", "openai-image:m@http://127.0.0.1:9/v1", "switch:a2b?at=1")
    assert "switch: can't change openai-image:" in said and "use diffusers: or render:" in said
    said = generate("spatial_uc", "render:", "switch:a2b?at=1")
    assert "switch: rows need 'prompt' and 'swapped_prompt'" in said
    assert not (tmp_path / "run" / "images").exists()


@pytest.mark.slow
def test_a_run_with_a_method_resumes_only_with_the_same(
    cli: Callable[..., Any], text_release: Path, tmp_path: Path
) -> None:
    def evaluate(step: int) -> Any:
        return cli(
            *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 2),
            *("--generator", "render:?order_bias=9&decides=2", "--judge", "pixels"),
            *("--method", f"switch:a2b?at={step}", "--out", tmp_path / "run", "--json"),
        )

    first = evaluate(1)
    assert first.returncode == 0, first.stderr
    assert '"signed_index"' in first.stdout and "switch:a2b?at=1" in first.stdout
    other = evaluate(2)
    assert_refused(other, "another-run", tmp_path / "run", "--out", exit_code=1)
