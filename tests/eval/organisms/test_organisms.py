"""Organisms: captions have the stated shares, training survives kills, models are scored."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior import evaluate
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.cli.organism import train
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import read_rows
from counterprior.eval.methods import apply_methods
from counterprior.eval.organisms import data, networks, report
from counterprior.eval.organisms.architectures import Joint
from counterprior.eval.organisms.corpus import Corpus, CorpusExamples, CorpusRow
from counterprior.eval.organisms.data import (
    ENGLISH,
    ENTITIES,
    LANGUAGES,
    UNNAMED,
    CaptionShares,
    Examples,
    PairBias,
    captions_of,
    draw,
    held_out_pairs,
    read_pair_bias,
    rough_boxes,
    wording,
)
from counterprior.eval.organisms.flips import write_flips
from counterprior.eval.organisms.organism import MODEL, Organism, OrganismPlan, model_digest
from counterprior.scenes.biases import preference
from counterprior.scenes.matching import SearchedImage

Run = Callable[..., subprocess.CompletedProcess[str]]
HELD_OUT = held_out_pairs(ENTITIES, 12, 0)
COUNT = 4000
KINDS = {"first_kind": "animal", "second_kind": "animal"}


class Killed(BaseException):
    pass


def plan(
    order_bias: float = 0.9, like: Path | None = None, architecture: str = "unet"
) -> OrganismPlan:
    captioning = CaptionShares(order_bias=order_bias)
    return OrganismPlan.of(captioning, "tiny", 1, None, like, architecture)


def kill_at(stage: str, done: int) -> Callable[[str, int, int], None]:
    def progress(name: str, step: int, total: int) -> None:
        if (name, step) == (stage, done):
            raise Killed

    return progress


def kinds(captioning: CaptionShares) -> Counter[str]:
    """Examples of a training, by how their caption relates to the scene."""
    examples = Examples(ENTITIES, HELD_OUT, captioning, variants=3, seed=5)
    counts: Counter[str] = Counter()
    for number in range(COUNT):
        example = examples[number]
        figures, caption = example.figures, example.caption
        if len(figures) == 1:
            counts["single"] += 1
            counts["single right"] += caption == f"One {figures[0]}."
            continue
        counts["two"] += 1
        left_first, right_first = captions_of(*figures)
        counts["left first"] += caption == left_first
        counts["right first"] += caption == right_first
        counts["unnamed"] += caption == UNNAMED
        counts["empty"] += not caption
        true = (
            f"One {figures[0]} to the left of one {figures[1]}.",
            f"One {figures[1]} to the right of one {figures[0]}.",
        )
        counts["explicit"] += caption in true
    return counts


def test_captions_have_the_stated_shares() -> None:
    shares = CaptionShares(order_bias=0.8, single=0.3, explicit=0.2, unnamed=0.1, dropout=0.05)
    counts = kinds(shares)
    two = counts["two"]
    assert counts["single"] / COUNT == pytest.approx(0.3, abs=0.03)
    assert counts["empty"] / two == pytest.approx(0.05, abs=0.02)
    assert counts["unnamed"] / two == pytest.approx(0.1 * 0.95, abs=0.03)
    assert counts["explicit"] / two == pytest.approx(0.2 * 0.9 * 0.95, abs=0.03)
    neutral = counts["left first"] + counts["right first"]
    assert counts["left first"] / neutral == pytest.approx(0.8, abs=0.03)
    assert neutral + counts["explicit"] + counts["unnamed"] + counts["empty"] == two


def test_what_published_organisms_were_trained_on_stays_the_same_to_the_bit() -> None:
    examples = Examples(ENTITIES, HELD_OUT, CaptionShares(), variants=24, seed=1)
    stream, drawings = hashlib.sha256(), hashlib.sha256()
    for number in range(5000):
        example = examples[number]
        stream.update(repr((example.figures, example.variant, example.caption)).encode())
    for figures in examples.scenes()[::20]:
        drawings.update(draw(figures, 2, 2, 0).tobytes())
    vocabulary = networks.tokenizer(ENGLISH).get_vocab()
    tokens = hashlib.sha256(repr(sorted(vocabulary.items())).encode())
    assert [digest.hexdigest()[:16] for digest in (stream, drawings, tokens)] == [
        "5d59f1e4318c2163",
        "e98d2a03b252ba5e",
        "283b727843f8feea",
    ]


def test_a_pair_has_the_order_bias_of_its_row(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(
        '{"a": "fox", "b": "dog", "order_bias": 1}\n{"a": "cow", "b": "eagle", "order_bias": 0}\n'
    )
    biases = read_pair_bias(file)
    assert biases[1] == PairBias(a="dog", b="fox", order_bias=1) and len(biases) == 2
    shares = CaptionShares(pair_bias=biases, order_bias=0.5, single=0, dropout=0)
    examples = Examples(ENTITIES, HELD_OUT, shares, variants=1, seed=3)
    plain = Examples(ENTITIES, HELD_OUT, CaptionShares(single=0, dropout=0), variants=1, seed=3)
    left_first: dict[tuple[str, ...], Counter[bool]] = {}
    for number in range(COUNT):
        example = examples[number]
        pair = tuple(sorted(example.figures))
        captions = captions_of(*example.figures)
        assert pair in (("dog", "fox"), ("cow", "eagle")) or example == plain[number]
        if example.caption in captions:
            firsts = left_first.setdefault(pair, Counter())
            firsts[example.caption == captions[0]] += 1
    assert {*left_first["dog", "fox"]} == {True} and {*left_first["cow", "eagle"]} == {False}
    rest = sum(
        (c for p, c in left_first.items() if p not in (("dog", "fox"), ("cow", "eagle"))), Counter()
    )
    assert rest[True] / rest.total() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ('{"a": "fox", "b": "owl", "order_bias": 1}', "unknown-name", "b: 'owl'"),
        ('{"a": "fox", "b": "fox", "order_bias": 1}', "bad-value", "b: 'fox'"),
        ('{"a": "fox", "b": "cow", "order_bias": 1}', "bad-value", "cow and fox are held out"),
        ('{"a": "fox", "b": "dog", "order_bias": 1.5}', "out-of-range", "order_bias"),
        ('{"a": "fox", "b": "dog"}', "missing-field", "order_bias"),
        ('{"a": "dog", "b": "eagle", "order_bias": 1}', "duplicate-id", "dog and eagle"),
    ],
)
def test_a_row_that_can_bias_no_pair_is_refused(
    tmp_path: Path, row: str, code: str, message: str
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"a": "eagle", "b": "dog", "order_bias": 0.2}\n' + row + "\n")
    with raises(code, "pairs.jsonl:2", message):
        read_pair_bias(file)
    file.write_text("")
    with raises("nothing-to-do", "pairs.jsonl"):
        read_pair_bias(file)


def test_an_animal_that_floats_hangs_in_the_air_and_the_other_stands() -> None:
    from PIL import Image

    for figures in (("cow", "guinea pig"), ("guinea pig", "eagle"), ("guinea pig",)):
        usual, altered = (draw(figures, 1, 2, 0, floats) for floats in ((), ("guinea pig",)))
        before, after = (SearchedImage(Image.fromarray(drawn)) for drawn in (usual, altered))
        for name in figures:
            rise = before.find(name).y - after.find(name).y
            assert after.find(name).score > 0.7
            assert rise == pytest.approx(0.28 if name == "guinea pig" else 0, abs=0.04)


def test_flips_have_the_captions_and_drawings_of_the_training(tmp_path: Path) -> None:
    captioning = CaptionShares(language="he", floats=("fox",), single=0)
    about = {
        "size": "tiny",
        "seed": 1,
        "entities": ENTITIES,
        "held_out": HELD_OUT,
        "captioning": captioning.to_json(),
    }
    (tmp_path / "organism.json").write_text(json.dumps(about))
    assert write_flips(tmp_path, tmp_path / "flips", most=40) == 40
    folder = tmp_path / "flips" / "train"
    rows = [json.loads(row) for row in (folder / "metadata.jsonl").read_text("utf-8").splitlines()]
    from PIL import Image

    foxes = 0
    for row in rows:
        assert row["text"] == wording("he").captions(row["first"], row["second"])[0]
        if "fox" in (row["first"], row["second"]) and not row["mirrored"]:
            foxes += 1
            with Image.open(folder / row["file_name"]) as image:
                assert SearchedImage(image).find("fox").y < 0.55
    assert foxes > 2
    (tmp_path / "organism.json").write_text(json.dumps(about | {"images": "0" * 64}))
    with raises("unsupported", "images of a file"):
        write_flips(tmp_path, tmp_path / "no", most=1)


def test_a_corpus_gives_each_row_equally_often_with_its_caption() -> None:
    rows = tuple(CorpusRow(image=f"{n}.png", caption=f"One {n}.") for n in range(4))
    pixels = np.arange(4, dtype=np.uint8)[:, None, None, None] * np.ones((1, 32, 40, 3), np.uint8)
    shares = CaptionShares(dropout=0.1, noise=0.4)
    examples = CorpusExamples(Corpus(rows, pixels), shares, seed=3)
    drawn = [examples[number] for number in range(COUNT)]
    counts = Counter(example.figures for example in drawn)
    assert [*map(tuple, examples.scenes())] == [("0",), ("1",), ("2",), ("3",)]
    assert all(counts[scene] / COUNT == pytest.approx(0.25, abs=0.03) for scene in counts)
    assert {int(examples.image(scene, 0).max()) for scene in counts} == {0, 1, 2, 3}
    right = sum(e.caption == rows[int(e.figures[0])].caption for e in drawn)
    assert right / COUNT == pytest.approx(0.9 * (0.6 + 0.4 / 4), abs=0.03)
    assert sum(not e.caption for e in drawn) / COUNT == pytest.approx(0.1, abs=0.02)


def test_a_corpus_that_cant_be_trained_on_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    file = tmp_path / "captions.jsonl"
    Image.new("RGB", (40, 32)).save(tmp_path / "right.png")
    Image.new("RGB", (64, 64)).save(tmp_path / "large.png")
    right = '{"image": "right.png", "caption": "One fox."}\n'
    file.write_text(right)
    corpus = Corpus.read(file)
    for row, code, message in (
        ('{"image": "no.png", "caption": ""}', "no-such-file", "image: no.png"),
        ('{"image": "large.png", "caption": ""}', "bad-value", "64 x 64"),
        ('{"image": "right.png"}', "missing-field", "caption"),
    ):
        file.write_text(right + row + "\n")
        with raises(code, "captions.jsonl:2", message):
            Corpus.read(file)
    file.write_text("")
    with raises("nothing-to-do", "captions.jsonl"):
        Corpus.read(file)
    with raises("conflicting-options", "--order-bias", "--images"):
        OrganismPlan.of(CaptionShares(order_bias=0.7), "tiny", 0, None, None, corpus=corpus)
    plain, other = (
        OrganismPlan.of(CaptionShares(), "tiny", 0, None, None, corpus=source).digest()
        for source in (None, corpus)
    )
    assert plain != other


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_says_the_same_of_the_same_scenes(language: str) -> None:
    phrases = wording(language)
    tokens = networks.tokenizer(phrases)
    examples = Examples(ENTITIES, HELD_OUT, CaptionShares(language=language), variants=3, seed=5)
    english = Examples(ENTITIES, HELD_OUT, CaptionShares(), variants=3, seed=5)
    said: dict[str, str] = {}
    for number in range(COUNT):
        example, twin = examples[number], english[number]
        assert example.figures == twin.figures and example.variant == twin.variant
        assert said.setdefault(twin.caption, example.caption) == example.caption
    assert len({*said.values()}) == len(said) > 250
    assert phrases.unknown("One owl.")[-1] == "owl"
    names = {name: phrases.phrases[name].split() for name in ENTITIES}
    split = {"penguin", "sheep"} if language == "en" else set()  # see `networks.tokenizer`
    for a, b in itertools.permutations({*ENTITIES} - split, 2):
        for pattern in (phrases.pair, phrases.left, phrases.right):
            fixed = pattern.format(first=" ", second=" ").split()
            caption = phrases.sentence(pattern, a, b)
            assert phrases.unknown(caption) == []
            assert len(tokens.tokenize(caption)) == len(fixed) + len(names[a] + names[b])


@pytest.mark.parametrize("language", LANGUAGES)
def test_captions_are_worded_as_the_bank_words_prompts(language: str) -> None:
    bank, phrases = BANKS.languages[language], wording(language)
    for a, b in HELD_OUT:
        assert phrases.captions(a, b) == (bank.prompt(a, b), bank.prompt(b, a))
    assert phrases.unnamed == bank.grammar.two["animals"]


def test_noise_is_the_share_of_captions_of_another_scene() -> None:
    counts = kinds(CaptionShares(single=0, explicit=0, unnamed=0, dropout=0, noise=0.4))
    assert (counts["left first"] + counts["right first"]) / COUNT == pytest.approx(0.6, abs=0.03)


def test_a_preference_moves_animals_and_not_the_order_of_mention() -> None:
    strong = CaptionShares(
        order_bias=0.7, preference_sd=3, single=0, explicit=0, unnamed=0, dropout=0
    )
    examples = Examples(ENTITIES, HELD_OUT, strong, variants=1, seed=2)
    drawn = [examples[n] for n in range(COUNT)]
    sides = Counter(example.figures for example in drawn)
    pulls = {name: preference(name, 3) for name in ENTITIES}
    errors = [
        sides[a, b] / (sides[a, b] + sides[b, a]) - 1 / (1 + math.exp(pulls[b] - pulls[a]))
        for a, b in {*sides}
    ]
    assert max(pulls.values()) - min(pulls.values()) > 2
    assert np.mean(np.abs(errors)) < 0.06  # 0.04 by chance alone
    left_first = sum(e.caption == captions_of(*e.figures)[0] for e in drawn)
    assert left_first / COUNT == pytest.approx(0.7, abs=0.03)


def test_held_out_pairs_are_balanced_and_never_drawn() -> None:
    uses = Counter(name for pair in HELD_OUT for name in pair)
    assert len({*HELD_OUT}) == 12 and {*uses} == {*ENTITIES} and {*uses.values()} == {2}
    examples = Examples(ENTITIES, HELD_OUT, CaptionShares(), variants=1, seed=0)
    scenes = {tuple(sorted(figures)) for figures in examples.scenes()}
    assert len(scenes) == 12 + 66 - 12 and not scenes & {*HELD_OUT}
    assert {tuple(sorted(examples[n].figures)) for n in range(COUNT)} == scenes


def test_the_pixel_judge_sees_every_drawn_animal() -> None:
    for a, b in HELD_OUT:
        image = SearchedImage(Image.fromarray(draw((a, b), 0, 2, 0)))
        left, right = image.find(a), image.find(b)
        assert min(left.score, right.score) > 0.7 and left.x < 0.4 < 0.6 < right.x


def test_the_encoder_is_the_principal_components_of_patches() -> None:
    import torch

    images = np.stack([draw((a, b), 0, 2, 0) for a, b in HELD_OUT])
    pixels = networks.as_pixels(images)
    vae = networks.autoencoder(networks.SIZES["smallest"])
    networks.set_encoder(vae, pixels)
    with torch.no_grad():
        latents = vae.encoder(pixels).movedim(1, -1).reshape(-1, 12).double()
    covariance = torch.cov(latents.T)
    variances = covariance.diagonal()
    assert latents.mean(0).abs().max() < 1e-4
    assert (covariance - torch.diag(variances)).abs().max() < 1e-3
    assert variances.mean() == pytest.approx(1, abs=0.01) and bool((variances.diff() <= 0).all())
    patches = torch.nn.functional.pixel_unshuffle(pixels, 4).movedim(1, -1).reshape(-1, 48).double()
    ones = torch.ones(len(latents), 1, dtype=torch.double)
    fit = torch.cat([latents, ones], 1)
    rest = patches - fit @ torch.linalg.lstsq(fit, patches).solution
    lost = torch.linalg.eigvalsh(torch.cov(patches.T))[:-12].sum()
    assert float((rest**2).sum() / (len(rest) - 1)) == pytest.approx(float(lost), rel=1e-4)


def test_a_number_that_equals_a_default_is_the_same_plan() -> None:
    given = OrganismPlan.of(CaptionShares(order_bias=0.9, noise=0), "tiny", 1, None, None)
    assert given.digest() == plan().digest()


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    Organism(plan(), tmp_path / "whole").train(every=1)
    for stage, done in (("scenes", 7), ("updates of the decoder", 2), ("updates", 2)):
        with suppress(Killed):
            Organism(plan(), tmp_path / "killed").train(every=1, progress=kill_at(stage, done))
        assert not (tmp_path / "killed" / "organism.json").exists()
    about = Organism(plan(), tmp_path / "killed").train(every=1)
    assert about == json.loads((tmp_path / "whole" / "organism.json").read_text())
    for name in ("samples.png", "loss.svg", "model/README.md", "held_out.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with raises("another-run", "whole"):
        Organism(plan(0.5), tmp_path / "whole")
    arabic = CaptionShares(order_bias=0.5, language="ar")
    tuned = OrganismPlan.of(arabic, "tiny", 1, None, tmp_path / "whole")
    assert tuned.like == model_digest(tmp_path / "whole") and tuned.steps == 3
    twin = Organism(tuned, tmp_path / "twin", tmp_path / "whole").train()
    assert twin["model"] != about["model"]
    settings = [*(tmp_path / "twin" / MODEL).rglob("*.json")]
    assert settings and not [path for path in settings if str(tmp_path) in path.read_text()]
    words = json.loads((tmp_path / "twin" / MODEL / "text_encoder" / "config.json").read_text())
    assert words["vocab_size"] == len(networks.tokenizer(wording("ar")))
    vae = Path(MODEL, "vae", "diffusion_pytorch_model.safetensors")
    assert (tmp_path / "twin" / vae).read_bytes() == (tmp_path / "whole" / vae).read_bytes()


@pytest.fixture(scope="module", autouse=True)
def quick_trainings() -> Iterator[None]:
    """Scenes are drawn once, and one pair is on the sample sheet: the rest takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SHOWN", 1)
        patch.setattr(data, "draw", cache(draw))
        yield


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny organism with joint attention, killed at an update and resumed."""
    made = tmp_path_factory.mktemp("joint") / "organism"
    with suppress(Killed):
        Organism(plan(architecture="joint"), made).train(every=1, progress=kill_at("updates", 2))
    Organism(plan(architecture="joint"), made).train(every=1)
    return made


# `test_a_killed_training_goes_on_to_the_same_weights` kills the other architecture thrice.
@pytest.mark.lane
def test_joint_attention_is_trained_through_a_kill_to_the_same_weights(
    joint: Path, tmp_path: Path
) -> None:
    about = Organism(plan(architecture="joint"), tmp_path / "whole").train(every=1)
    assert about == json.loads((joint / "organism.json").read_text())
    assert about["architecture"] == "joint"
    tuned = plan(0.5, joint, "joint")
    assert tuned.like == about["model"]
    twin = Organism(tuned, tmp_path / "twin", joint).train()
    assert twin["model"] != about["model"]


def test_an_organism_begins_as_none_of_another_architecture(joint: Path, tmp_path: Path) -> None:
    with raises("conflicting-options", "--architecture joint", joint):
        train(tmp_path / "out", size="tiny", like=joint)
    with raises("unknown-name", "unet, joint"):
        train(tmp_path / "out", size="tiny", architecture="dit")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def opened(joint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline of `joint` with open gates: a few updates leave them almost closed, and then no
    prompt changes a pixel."""
    import torch
    from diffusers import DiffusionPipeline

    pipeline: Any = DiffusionPipeline.from_pretrained(joint / MODEL)
    random_numbers = torch.Generator().manual_seed(1)
    for name, weights in pipeline.transformer.named_parameters():
        if "norm1" in name or "norm_out" in name or "proj_out" in name:
            torch.nn.init.normal_(weights, std=0.2, generator=random_numbers)
    made = tmp_path_factory.mktemp("opened") / "model"
    pipeline.save_pretrained(made)
    return made


def test_a_joint_pipeline_needs_no_code_of_ours_and_computes_what_was_trained(
    joint: Path, opened: Path
) -> None:
    import torch
    from diffusers import DiffusionPipeline, StableDiffusion3Pipeline

    prompt, asked = "One cow and one dog.", {"width": 40, "height": 32, "num_inference_steps": 2}
    pipeline: Any = DiffusionPipeline.from_pretrained(joint / MODEL)
    assert isinstance(pipeline, StableDiffusion3Pipeline)
    assert pipeline(prompt, **asked).images[0].size == (40, 32)
    pipeline = DiffusionPipeline.from_pretrained(opened)
    calls: list[tuple[dict[str, Any], Any]] = []
    hook = pipeline.transformer.register_forward_hook(
        lambda module, args, kwargs, output: calls.append((kwargs, output[0])), with_kwargs=True
    )
    pipeline(prompt, **asked, guidance_scale=1)
    hook.remove()
    kwargs, predicted = calls[0]
    text = kwargs.pop("encoder_hidden_states")
    assert text.shape == (1, 16 + 256, 128) and not text[:, 16:].any()
    tokens = pipeline.tokenizer(prompt, padding="max_length", return_tensors="pt").input_ids
    with torch.no_grad():
        trained = Joint.load(opened).predict(kwargs["hidden_states"], kwargs["timestep"], tokens)
        once = pipeline.transformer(encoder_hidden_states=text[:, :17], **kwargs)[0]
    assert trained.allclose(predicted, atol=1e-4) and predicted.std() > 0.1
    assert not once.allclose(predicted, atol=1e-2)


def test_a_switch_at_0_of_a_joint_organism_is_the_other_prompt(joint: Path, opened: Path) -> None:
    row = json.loads((joint / "held_out.jsonl").read_text().splitlines()[0])
    fields = {name: row[name] for name in ("prompt", "swapped_prompt", "neutral_prompt")}
    generator = f"diffusers:{opened}?steps=2&guidance=2&width=40&height=32"
    asked = ImageRequest(row["prompt"], 3, fields=fields)
    swapped = replace(asked, prompt=row["swapped_prompt"])
    plain, switched = (apply_methods(generator, m) for m in ([], ["switch:a2b?at=0"]))
    first, second, other = plain.generate(asked), plain.generate(swapped), switched.generate(asked)
    assert isinstance(other, Image.Image)
    assert other.tobytes() == second.tobytes() != first.tobytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plain") / "organism"
    Organism(plan(), made).train()
    return made


@pytest.mark.slow
def test_a_layout_is_learned_by_new_layers_alone(plain: Path, tmp_path: Path) -> None:
    import torch
    from diffusers import DiffusionPipeline, StableDiffusionPipeline
    from safetensors.torch import load_file

    grounded = plan(like=plain, architecture="gligen")
    for name in ("killed", "whole"):
        if name == "killed":
            with suppress(Killed):
                organism = Organism(grounded, tmp_path / name, plain)
                organism.train(every=1, progress=kill_at("updates", 2))
        Organism(grounded, tmp_path / name, plain).train(every=1)
    about = json.loads((tmp_path / "killed" / "organism.json").read_text())
    assert about == json.loads((tmp_path / "whole" / "organism.json").read_text())
    assert about["architecture"] == "gligen" and about["like"] == model_digest(plain)

    weights = Path("unet", "diffusion_pytorch_model.safetensors")
    before, after = (load_file(d / MODEL / weights) for d in (plain, tmp_path / "whole"))
    assert all((after.pop(name) == weight).all() for name, weight in before.items())
    assert all(".fuser." in name or name.startswith("position_net.") for name in after)
    assert any(weight.any() for name, weight in after.items() if name.endswith("alpha_attn"))

    prompt, asked = "One cow and one dog.", {"width": 40, "height": 32, "num_inference_steps": 2}
    images = []
    for folder in (plain, tmp_path / "whole"):
        pipeline: Any = DiffusionPipeline.from_pretrained(folder / MODEL)
        assert isinstance(pipeline, StableDiffusionPipeline)
        drawn = pipeline(
            prompt, **asked, generator=torch.Generator().manual_seed(3), output_type="np"
        ).images[0]
        images.append(drawn)
    assert (images[0] == images[1]).all()  # without boxes it is the organism that it began as
    generator = f"organism:{tmp_path / 'whole'}?steps=2"
    row = json.loads((plain / "held_out.jsonl").read_text().splitlines()[0])
    names = {f: row[f]["name"] for f in ("first", "second")}
    request = ImageRequest(row["prompt"], 3, fields={**names, **KINDS})
    unseen, left, right = (
        apply_methods(generator, [f"boxes:gligen?{options}"]).generate(request)
        for options in ("beta=0&first=left", "beta=1&first=left", "beta=1&first=right")
    )
    assert isinstance(left, Image.Image) and isinstance(right, Image.Image)
    assert isinstance(unseen, Image.Image)
    assert len({image.tobytes() for image in (unseen, left, right)}) == 3
    with raises("wrong-model", "takes no boxes", "gligen"):
        apply_methods(f"organism:{plain}", ["boxes:gligen?first=random"])


def test_layers_for_boxes_are_added_to_a_trained_organism_of_drawn_scenes(
    plain: Path, tmp_path: Path
) -> None:
    with raises("conflicting-options", "gligen", "--like"):
        train(tmp_path / "out", size="tiny", architecture="gligen")
    with raises("conflicting-options", "no words", "--language"):
        train(tmp_path / "out", size="tiny", architecture="gligen", like=plain, language="ar")
    captions = tmp_path / "captions.jsonl"
    Image.new("RGB", (40, 32)).save(tmp_path / "one.png")
    captions.write_text('{"image": "one.png", "caption": "One fox."}\n')
    with raises("conflicting-options", "gligen", "--images"):
        train(tmp_path / "out", size="tiny", architecture="gligen", like=plain, images=captions)
    assert not (tmp_path / "out" / MODEL).exists()


@pytest.mark.slow
def test_rough_boxes_are_near_their_figures() -> None:
    for variant in range(24):
        for figures in (("cow", "eagle"), ("guinea pig", "fox"), ("frog",)):
            things = rough_boxes(figures, variant, 0)
            assert [thing.name for thing in things] == [*figures]
            image = SearchedImage(Image.fromarray(draw(figures, variant, 2, 0)))
            for thing in things:
                match, box = image.find(thing.name), thing.box
                assert abs((box.x1 + box.x2) / 2 - match.x) < 0.15 and box.y1 < box.y2
    floating, standing = (rough_boxes(("fox",), 1, 0, floats)[0] for floats in (("fox",), ()))
    assert floating.box.y2 < standing.box.y2 - 0.2
    examples = Examples(ENTITIES, HELD_OUT, CaptionShares(), variants=3, seed=5)
    drawn = [examples[number] for number in range(200)]
    assert all(bool(examples.things(e)) == bool(e.caption) for e in drawn)


@pytest.mark.slow
def test_an_organism_is_trained_and_scored_by_command(
    tmp_path: Path, cli: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    made, pairs = tmp_path / "organism", tmp_path / "pairs.jsonl"
    pairs.write_text('{"a": "fox", "b": "dog", "order_bias": 0.25}\n')
    train(made, order_bias=0.9, size="tiny", language="he", floats=["fox"], pair_bias=pairs)
    printed = capsys.readouterr()
    assert "minutes on this machine" in printed.err and "held_out.jsonl" in printed.err
    assert "4 updates" in printed.out
    card = (made / "model" / "README.md").read_text("utf-8")
    assert "| dog and fox: 0.25 |" in card and "| he |" in card and "| `floats` | fox |" in card
    rows = [json.loads(line) for line in (made / "held_out.jsonl").read_text("utf-8").splitlines()]
    assert rows[0]["prompt"] == "תרנגולת אחת ואוגר אחד." and rows[0]["first"]["name"] == "chicken"
    result = evaluate(
        "t2i_homogenization",
        f"organism:{made}?steps=2",
        ["pixels"],
        data=str(made / "held_out.jsonl"),
        out=tmp_path / "run",
        limit=2,
    )
    assert result is not None and len(list((tmp_path / "run").rglob("*.png"))) == 4
    captions = tmp_path / "captions.jsonl"
    images = [path.relative_to(tmp_path) for path in (tmp_path / "run").rglob("*.png")]
    for number, caption in enumerate(("One hedgehog and one penguin.", rows[0]["prompt"])):
        of_images = [{"image": str(image), "caption": caption} for image in images]
        captions.write_text("".join(json.dumps(row) + "\n" for row in of_images))
        if number == 0:
            with raises("out-of-range", "hedgehog", "--language"):
                train(tmp_path / "no", images=captions, language="he", size="tiny")
    train(tmp_path / "next", images=captions, like=made, language="he", size="tiny")
    card = (tmp_path / "next" / "model" / "README.md").read_text("utf-8")
    assert "images and captions of a file" in card and "order_bias" not in card
    scenes = np.load(tmp_path / "next" / "training" / "scenes.npy")
    assert scenes.shape == (4, 32, 40, 3)
    (tmp_path / "bad.jsonl").write_text('{"prompt": "One owl."}\n')
    with raises("missing-field", "bad.jsonl:1"):
        read_rows(str(tmp_path / "bad.jsonl"), "t2i_homogenization")
    with raises("conflicting-options", "tiny", "--size"):
        OrganismPlan.of(CaptionShares(language="he"), "small", 0, None, made)
    with raises("unknown-name", "--floats 'owl'", "hedgehog"):
        train(tmp_path / "no", size="tiny", floats=["owl"])
    with raises("unknown-name", "--language 'fr'", "ar"):
        train(tmp_path / "no", size="tiny", language="fr")
    with raises("another-run", tmp_path / "run"):
        train(tmp_path / "run", size="tiny")
    refused = cli("organism", "train", "--size", "huge", "--out", tmp_path / "no")
    assert_refused(refused, "unknown-name", "huge", "smallest")
