"""The renderer: known truth in, pixels out."""

import functools
import hashlib
import math
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops
from refusals import raises

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.i2i_homogenization import instruction, seed_prompt
from counterprior.builders.taxonomy import suits
from counterprior.errors import DataError, UsageError
from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.render import RenderGenerator
from counterprior.images import encode_drawing, encode_png
from counterprior.scenes.biases import preference
from counterprior.scenes.drawing import draw_scene, figure_image
from counterprior.scenes.effects import EFFECTS
from counterprior.scenes.language import layout, mentions
from counterprior.scenes.poses import POSES, find_pose
from counterprior.scenes.scene import HEIGHT, WIDTH, Figure, Scene
from counterprior.scenes.sprites import ALIASES, entity_names, sprite
from counterprior.specs import Spec

TAXONOMY = SHIPPED.taxonomy
PLAIN = open_generator("render:")


def draw(prompt: str, seed: int = 0, spec: str = "render:") -> Image.Image:
    return open_generator(spec).generate(ImageRequest(prompt, seed))


def edit(source: Image.Image, text: str, seed: int = 0, spec: str = "render:") -> Image.Image:
    return open_generator(spec).generate(ImageRequest(text, seed, source))


def test_the_atlas_has_exactly_the_entities_of_the_taxonomy() -> None:
    assert set(entity_names()) == set(TAXONOMY.entities)


def small(name: str) -> Any:
    """The figure as it stands in a scene, 24 x 32 pixels on gray."""
    figure = figure_image(Figure(name, 0.5, 0.9, 1.0))
    canvas = Image.new("RGB", (max(figure.width, figure.height * 3 // 4), figure.height), "#808080")
    canvas.paste(figure, ((canvas.width - figure.width) // 2, 0), figure)
    return np.asarray(canvas.resize((24, 32)), dtype=float)


@pytest.mark.slow
def test_no_two_entities_look_the_same() -> None:
    names = entity_names()
    images = np.stack([small(name) for name in names]).reshape(len(names), -1)
    distances = np.sqrt(((images[:, None] - images[None]) ** 2).mean(axis=2))
    np.fill_diagonal(distances, np.inf)
    closest = np.unravel_index(distances.argmin(), distances.shape)
    assert distances.min() > 6, (names[closest[0]], names[closest[1]], distances.min())


def test_sprites_are_cut_out() -> None:
    for name in entity_names():
        alpha = np.asarray(sprite(name).getchannel("A"))
        assert 0.1 < (alpha > 128).mean() <= 1, name
        assert max(alpha.shape) >= 120, name


def test_the_same_request_gives_the_same_bytes_in_another_process() -> None:
    prompts = ["A cat on the left and an owl on the right.", "One bus."]
    code = (
        "import hashlib; from counterprior.eval.generators import *\n"
        "from counterprior.images import encode_png\n"
        f"for prompt in {prompts}:\n"
        "    image = open_generator('render:').generate(ImageRequest(prompt, 3))\n"
        "    print(hashlib.sha256(encode_png(image)).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONHASHSEED": "1"}
    )
    three, four = (
        [hashlib.sha256(encode_png(draw(prompt, seed))).hexdigest() for prompt in prompts]
        for seed in (3, 4)
    )
    assert done.stdout.split() == three, done.stderr
    assert not {*three} & {*four}


def center(image: Image.Image, figure: Figure) -> float:
    """Where the figure is in the image, found from the pixels: share of the width."""
    shown = np.asarray(image, dtype=float)
    template = figure_image(figure)
    every = slice(None, None, 3)  # pixels that are compared, down and across
    pixels = np.asarray(template, dtype=float)[every, every]
    mask = pixels[..., 3] > 250
    top = round(figure.base * HEIGHT) - template.height
    best = (np.inf, 0.0)
    for left in range(0, WIDTH - template.width, 4):
        for rows in (-4, 0, 4):
            if top + rows < 0 or top + rows + template.height > HEIGHT:
                continue
            patch = shown[top + rows : top + rows + template.height, left : left + template.width]
            error = float(np.abs(patch[every, every][mask] - pixels[..., :3][mask]).mean())
            best = min(best, (error, (left + template.width / 2) / WIDTH))
    return best[1]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.lane)])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("cat", "owl"),
        ("male chef", "female nurse"),
        *(
            pytest.param(*two, marks=pytest.mark.lane)
            for two in (("laptop", "vase"), ("horse", "guinea pig"))
        ),
    ],
)
def test_an_explicit_layout_is_what_the_pixels_show(left: str, right: str, seed: int) -> None:
    for prompt in (
        seed_prompt("A-A", left, right),
        f"A {right} on the right and a {left} on the left.",
        f"A {left} to the left of a {right}.",
        f"A {right} to the right of a {left}.",
    ):
        image = draw(prompt, seed)
        figures = {f.entity: f for f in Scene.of(image).figures}
        assert center(image, figures[left]) < 0.45 < 0.55 < center(image, figures[right])


@pytest.mark.parametrize(
    ("bias", "low", "high"), [("0", 0.4, 0.6), ("2.5", 0.86, 0.99), ("-2.5", 0.01, 0.14)]
)
def test_the_order_bias_is_the_one_that_was_set(bias: str, low: float, high: float) -> None:
    left = 0
    for seed in range(300):
        scene = planned("One cat and one dog.", seed, f"render:?order_bias={bias}")
        left += scene.left_to_right()[0] == "cat"
    assert low < left / 300 < high


def planned(prompt: str, seed: int, spec: str) -> Scene:
    """The scene alone: these statistics need no pixels."""
    return RenderGenerator.read(Spec.parse(spec)).scene(ImageRequest(prompt, seed))


def test_an_entity_preference_holds_in_both_orders_of_mention() -> None:
    sd = 1.0
    tilt = preference("owl", sd) - preference("cat", sd)
    expected = 1 / (1 + math.exp(-tilt))
    assert 0.7 < expected < 0.99
    for prompt in ("One cat and one owl.", "One owl and one cat."):
        scenes = [planned(prompt, seed, f"render:?preference_sd={sd}") for seed in range(200)]
        share = sum(scene.left_to_right()[0] == "owl" for scene in scenes) / 200
        assert abs(share - expected) < 0.07
    assert preference("cat", 0) == 0


def test_neutral_axes() -> None:
    above = Scene.of(draw("One cat and one dog, one above the other."))
    assert abs(above.figures[0].base - above.figures[1].base) > 0.3
    depth = Scene.of(draw("A cat behind a dog."))
    assert [f.entity for f in depth.figures] == ["cat", "dog"]
    assert depth.figures[0].base < depth.figures[1].base


@pytest.mark.parametrize("fault", ["missing", "extra", "duplicate", "overlap", "vertical", "wrong"])
def test_faults_happen_when_asked_for_and_are_recorded(fault: str) -> None:
    prompt = "A cat on the left and an owl on the right."
    image = draw(prompt, 5, f"render:?{fault}=1")
    scene = Scene.of(image)
    assert scene.faults == (fault,)
    names = Counter(f.entity for f in scene.figures)
    x, base = [f.x for f in scene.figures], [f.base for f in scene.figures]
    shown = {
        "missing": len(scene.figures) == 1,
        "extra": len(names) == 3,
        "duplicate": max(names.values()) == 2,
        "overlap": abs(x[0] - x[-1]) < 0.1,
        "vertical": abs(base[0] - base[-1]) > 0.3,
        "wrong": len(set(names) & {"cat", "owl"}) == 1 and len(names) == 2,
    }
    assert shown[fault]
    assert ImageChops.difference(image, draw(prompt, 5)).getbbox() is not None


ACTIONS = [a for a in TAXONOMY.actions.values() if a.visible]


def test_every_visible_action_of_the_taxonomy_has_a_pose() -> None:
    for action in ACTIONS:
        check_poses(action)


def check_poses(action: Any) -> None:
    texts = [action.participle, action.clause]
    if action.directed:
        texts += [action.directed.active, action.directed.passive]
    if action.pair:
        members = [find_pose(member.clause) for member in action.pair]
        assert None not in members and members[0] != members[1]
    for text in filter(None, texts):
        assert find_pose(text) is not None, text
    for other in action.contrast:
        assert find_pose(action.clause) != find_pose(TAXONOMY.actions[other].clause or "")


NEUTRAL = {"standing", "intact", "unoccupied"}
"""What every figure is like before an edit."""


def test_no_name_asks_for_a_pose() -> None:
    assert [name for name in (*entity_names(), *ALIASES) if find_pose(name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "The female chef is scolding the male photographer with a wagging finger.",
        "The male photographer is being scolded by the female chef with a wagging finger.",
    ],
)
def test_what_is_done_to_a_photographer_is_no_photograph(text: str) -> None:
    source = draw(seed_prompt("H-H", "female chef", "male photographer"), 2)
    assert pose_of(edit(source, text), "female chef") == "scolding"


@pytest.mark.slow
def test_every_pose_changes_the_image_and_only_near_its_figure() -> None:
    for name in sorted(set(POSES) - NEUTRAL):
        box = changed_box(name)
        assert box is not None and box[2] <= 0.66 * WIDTH, name


def changed_box(name: str) -> tuple[int, int, int, int] | None:
    """Box of the pixels, from left to right, that a pose of the left figure changes."""
    kind = next((a.kind for a in ACTIONS if name in {find_pose(t) for t in texts_of(a)}), "object")
    showing = [a for a in ACTIONS if name in {find_pose(t) for t in texts_of(a)}]
    actor = next(e.name for a in showing for e in TAXONOMY.of_kind(kind) if suits(a, e))
    return ImageChops.difference(beside_a_clock(actor), beside_a_clock(actor, name)).getbbox()


@functools.cache
def beside_a_clock(actor: str, pose: str = "") -> Image.Image:
    """An actor in a pose, on the left, and a clock."""
    figure = Figure(actor, 0.27, 0.9, 0.9, pose=pose)
    return draw_scene(Scene((figure, Figure("table clock", 0.8, 0.9, 0.9)), 1))


def texts_of(action: Any) -> list[str]:
    texts = [action.clause, action.participle]
    if action.directed:
        texts += [action.directed.active]
    texts += [member.clause for member in action.pair or ()]
    return [text for text in texts if text]


def test_poses_use_known_effects_and_all_of_them() -> None:
    used = {effect for pose in POSES.values() for effect in (*pose.behind, *pose.over)}
    assert used == set(EFFECTS)


SEED = draw(seed_prompt("A-A", "dog", "pig"), 1)


def pose_of(image: Image.Image, entity: str) -> str:
    return Scene.of(image).pose_of(entity)


def test_an_edit_binds_actions_to_the_entities_it_names() -> None:
    for text in (
        "The dog is standing on all fours and the pig is lying down on the ground.",
        "The pig is lying down on the ground and the dog is standing on all fours.",
    ):
        edited = edit(SEED, text)
        assert (pose_of(edited, "dog"), pose_of(edited, "pig")) == ("standing", "lying")


def test_a_binding_bias_follows_the_order_of_mention_instead() -> None:
    text = "The pig is lying down on the ground and the dog is looking up at the sky."
    edited = edit(SEED, text, spec="render:?binding_bias=1")
    assert pose_of(edited, "dog") == "lying"  # the dog is the left one


@pytest.mark.parametrize(
    "text",
    [
        "The male chef is pointing at the male waiter.",
        "The male waiter is being pointed at by the male chef.",
    ],
)
def test_a_directed_edit_makes_the_agent_act_towards_the_other(text: str) -> None:
    for left, right, faces in (("chef", "waiter", 1), ("waiter", "chef", -1)):
        source = draw(seed_prompt("H-H", f"male {left}", f"male {right}"), 2)
        chef = next(f for f in Scene.of(edit(source, text)).figures if f.entity == "male chef")
        assert (chef.pose, chef.faces) == ("pointing", faces)
        assert pose_of(edit(source, text), "male waiter") == ""


def test_an_open_edit_lets_one_act_by_the_order_bias() -> None:
    text = instruction("animal", "is lying down on the ground")
    left = sum(
        pose_of(edit(SEED, text, s, "render:?order_bias=2.5"), "dog") != "" for s in range(40)
    )
    assert 31 <= left <= 40
    assert all(
        (pose_of(e := edit(SEED, text, s), "dog") == "") != (pose_of(e, "pig") == "")
        for s in range(5)
    )


def test_an_edited_image_can_be_edited_again_from_its_file() -> None:
    import io

    with Image.open(io.BytesIO(encode_png(SEED))) as reopened:
        assert reopened.mode == "RGB"
        assert Scene.of(edit(reopened, "The dog is lying down on the ground.")).figures


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("of", ["a scene", "noise of odd sides"])
def test_a_drawing_is_the_same_image_from_its_file(of: str, flat: bool) -> None:
    import io

    noise = np.random.default_rng(5).integers(0, 256, (37, 23, 3), np.uint8)
    image = SEED if of == "a scene" else Image.fromarray(noise)
    data = encode_drawing(image, flat=flat)
    with Image.open(io.BytesIO(data)) as file:
        file.verify()  # the digest of each part
    with Image.open(io.BytesIO(data)) as reopened:
        assert (reopened.mode, reopened.size) == ("RGB", image.size)
        assert reopened.tobytes() == image.tobytes()
        assert reopened.info.get("scene") == image.info.get("scene")
    assert encode_drawing(image, flat=flat) == data


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("", "no entity"), ("A unicorn and a dragon.", "no entity of the atlas")],
)
def test_a_prompt_without_entities_is_an_error(prompt: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        draw(prompt)


def test_rejects_edits_that_cannot_be_drawn() -> None:
    with raises("no-scene", "`render:`", error=DataError):
        edit(Image.new("RGB", (64, 64)), "The dog is lying down on the ground.")
    with pytest.raises(ValueError, match="shows nothing that is named"):
        edit(SEED, "The cat is lying down on the ground.")
    with pytest.raises(ValueError, match="no pose of the renderer"):
        edit(SEED, "One animal is reciting a poem.")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("render:?color=red", ("unknown-option", "color")),
        ("render:?order_bias=much", ("bad-option", "order_bias", "'much'")),
        ("render:?order_bias=nan", ("bad-option", "order_bias", "'nan'")),
        ("render:?missing=2", ("bad-option", "missing", "0 to 1", "'2'")),
        ("render:folder", ("bad-spec", "render", "'folder'")),
    ],
)
def test_a_wrong_option_is_a_usage_error(spec: str, reason: tuple[str, ...]) -> None:
    with raises(*reason, error=UsageError):
        open_generator(spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("magic:", ("unknown-name", "magic")),
        (":", ("bad-spec", "':'")),
        ("render:?missing=1&missing=1", ("duplicate-option", "render:?missing=1&missing=1")),
    ],
)
def test_a_wrong_spec_names_what_is_wrong(spec: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_generator(spec)


def test_the_identity_names_version_atlas_and_changed_options() -> None:
    plain = open_generator("render:").identity()
    biased = open_generator("render:?order_bias=1").identity()
    assert plain["kind"] == "render"
    assert set(biased.items()) - set(plain.items()) == {("order_bias", "1")}


@settings(max_examples=40)
@given(st.lists(st.sampled_from(entity_names()), min_size=1, max_size=4, unique=True))
def test_every_entity_is_found_in_order_of_mention(names: list[str]) -> None:
    text = "One " + " and one ".join(names) + "."
    assert [m.entity for m in mentions(text)] == names
    assert layout(text, mentions(text)).order is None


def test_scenes_survive_json() -> None:
    scene = Scene((Figure("cat", 0.2, 0.9, 1.0, -1, "lying"),), 3, ("missing",))
    assert Scene.from_json(scene.to_json()) == scene
    for text in ("{}", "no JSON", "[]", '{"figures": [{"x": 1}], "background": 1, "faults": []}'):
        with raises("no-scene", "scene", error=DataError):
            Scene.from_json(text)


def test_a_scene_says_who_stands_where_and_does_what() -> None:
    owl, cat = Figure("owl", 0.7, 0.9, 1.0, pose="flying"), Figure("cat", 0.3, 0.9, 1.0)
    scene = Scene((owl, cat), 0)
    assert scene.left_to_right() == ("cat", "owl")
    assert (scene.pose_of("owl"), scene.pose_of("cat")) == ("flying", "")
    with pytest.raises(KeyError):
        scene.pose_of("dog")
