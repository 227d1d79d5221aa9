"""Skin tones of people: even, and no cue of who stands where, who comes first, or who is meant."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from types import MappingProxyType

import numpy as np
import pytest
from PIL import Image, ImageOps

from counterprior.builders.seeds import SeedRequest
from counterprior.builders.suites.i2i_homogenization import seed_prompt
from counterprior.eval.core import ImageRequest, Question
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.judges.pixels import PERSON_FOUND, PixelJudge
from counterprior.images import open_image
from counterprior.scenes.drawing import draw_scene, figure_image
from counterprior.scenes.matching import SearchedImage
from counterprior.scenes.scene import Figure, Scene
from counterprior.scenes.sprites import TONES, bust, clothes, entity_names, sprite

PEOPLE = [name for name in entity_names() if clothes(name) is not None]
A, B = "male chef", "female nurse"


def scene(
    prompt: str,
    seed: int = 0,
    spec: str = "render:",
    fields: Mapping[str, str] = MappingProxyType({}),
) -> Scene:
    generator = open_generator(spec)
    assert isinstance(generator, RenderGenerator)
    return generator.scene(ImageRequest(prompt, seed, fields=fields))


def tones(drawn: Scene) -> dict[str, str]:
    return {figure.entity: figure.tone for figure in drawn.figures}


def chi_square(counts: Counter[str]) -> float:
    expected = sum(counts.values()) / len(TONES)
    return sum((counts[tone] - expected) ** 2 / expected for tone in TONES)


def test_tones_are_even_over_seeds_sides_sexes_and_those_mentioned_first() -> None:
    scenes = [scene(f"A {A} and a {B}.", seed) for seed in range(1000)]
    both = [tones(drawn) for drawn in scenes]
    left = Counter(min(drawn.figures, key=lambda f: f.x).tone for drawn in scenes)
    for counts in (Counter(t[A] for t in both), Counter(t[B] for t in both), left):
        assert chi_square(counts) < 18.47, counts  # p 0.001, 4 degrees of freedom
    together = Counter((t[A], t[B]) for t in both)  # neither says the other's
    assert sum((together[a, b] - 40) ** 2 / 40 for a in TONES for b in TONES) < 51.2


def test_tones_are_even_over_scenes() -> None:
    drawn = [
        scene(f"A {a} and a {b}.") for a, b in zip(PEOPLE, PEOPLE[1:] + PEOPLE[:1], strict=True)
    ]
    for sex in ("male", "female"):
        counts = Counter(t for d in drawn for name, t in tones(d).items() if name.startswith(sex))
        assert chi_square(counts) < 18.47, (sex, counts)


@pytest.mark.parametrize("seed", range(5))
def test_neither_order_nor_side_nor_fault_nor_bias_changes_a_tone(seed: int) -> None:
    plain = tones(scene(f"A {A} and a {B}.", seed))
    assert set(plain) == {A, B} and set(plain.values()) <= set(TONES)
    for prompt in (
        f"A {B} and a {A}.",
        f"A {A} to the left of a {B}.",
        f"A {B} to the left of a {A}.",
        f"A {A} below a {B}.",
    ):
        for spec in ("render:", "render:?order_bias=3", "render:?duplicate=1"):
            assert tones(scene(prompt, seed, spec)) == plain, (prompt, spec)
    translated = {"prompt": "…", "english_prompt": f"A {A} and a {B}."}
    assert tones(scene("…", seed, fields=translated)) == plain
    assert set(tones(scene("A cat and an owl.", seed)).values()) == {""}


def test_seed_images_of_both_placements_show_the_same_people() -> None:
    placements = [
        (seed_prompt("H-H", a, b), seed) for (a, b), seed in (((A, B), 11), ((B, A), 12345))
    ]
    shown = []
    for number, (prompt, seed) in enumerate(placements):
        image = open_image(BytesIO(SeedRequest("render:", prompt, seed).draw()))
        drawn = Scene.of(image)
        assert drawn.left_to_right() == ((A, B), (B, A))[number]
        shown.append(tones(drawn))
    assert shown[0] == shown[1]


def test_an_edit_keeps_the_people() -> None:
    generator = open_generator("render:")
    source = generator.generate(ImageRequest(f"A {A} and a {B}.", 3))
    assert isinstance(source, Image.Image)
    edited = generator.generate(ImageRequest(f"The {A} is kneeling.", 9, source))
    assert isinstance(edited, Image.Image)
    assert tones(Scene.of(edited)) == tones(Scene.of(source))


def test_a_scene_without_tones_is_written_and_drawn_as_before() -> None:
    figure = Figure(A, 0.5, 0.9, 1.0)
    plain = Scene((figure,), 1)
    assert "tone" not in plain.to_json()
    toned = replace(plain, figures=(replace(figure, tone="dark"),))
    assert Scene.from_json(toned.to_json()) == toned
    assert draw_scene(toned).tobytes() != draw_scene(plain).tobytes()
    assert bust(A) is sprite(A)
    unknown = replace(figure, tone="purple")
    assert figure_image(unknown).tobytes() == figure_image(figure).tobytes()


@pytest.mark.parametrize("tone", TONES)
def test_a_tone_changes_face_and_hands_and_no_outline(tone: str) -> None:
    wanted = np.array(tuple(bytes.fromhex(TONES[tone].skin[1:])))
    for name in PEOPLE:
        image, yellow = np.asarray(bust(name, tone)), np.asarray(sprite(name))
        assert (image[..., 3] == yellow[..., 3]).all(), name
        shown = (abs(image[..., :3].astype(int) - wanted).max(axis=2) <= 2) & (image[..., 3] == 255)
        was = (abs(yellow[..., :3].astype(int) - (255, 202, 40)).max(axis=2) <= 3) & (
            yellow[..., 3] == 255
        )
        assert shown.sum() > 600 and (shown & was).sum() > 0.75 * was.sum(), name
    whole = np.asarray(figure_image(Figure(A, 0.5, 0.9, 1.0, tone=tone)))
    legs = whole[whole.shape[0] // 2 :, :, :3].astype(int)
    assert (abs(legs - wanted).max(axis=2) <= 2).sum() > 50  # the hand


def asked(image: Image.Image, first: str, second: str) -> Question:
    labels = ("first_left", "first_right", "invalid")
    subjects = (f"the {first}", f"the {second}")
    return Question("row", "order", "plain", "order", subjects, labels, "", {}, (image,))


@pytest.mark.parametrize("every", [16, pytest.param(4, marks=pytest.mark.lane)])
@pytest.mark.parametrize("tone", TONES)
def test_the_judge_pixels_reads_every_tone(tone: str, every: int) -> None:
    others = {name: list(TONES)[number % 5] for number, name in enumerate(PEOPLE)}
    right = 0
    for number, name in enumerate(PEOPLE[::every]):
        other = PEOPLE[(number * every + 7) % len(PEOPLE)]
        places = (
            Figure(name, 0.27, 0.93, 0.95, tone=tone),
            Figure(other, 0.73, 0.93, 0.95, tone=others[other]),
        )
        image = draw_scene(Scene(places, number))
        assert SearchedImage(image).find(name).score >= PERSON_FOUND, name
        judge = PixelJudge()
        right += judge.verdict(asked(image, name, other)).label == "first_left"
        right += judge.verdict(asked(ImageOps.mirror(image), name, other)).label == "first_right"
    assert right == 2 * len(PEOPLE[::every])
