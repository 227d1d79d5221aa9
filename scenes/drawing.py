"""Drawing a scene: from figures and background to pixels."""

from __future__ import annotations

from PIL import Image, ImageDraw

from .backgrounds import draw_background
from .effects import draw_effect
from .people import draw_person
from .poses import POSES, Pose
from .scene import HEIGHT, WIDTH, Figure, Scene
from .sprites import clothes, sprite

PERSON_SCALE = 0.88
"""Scale of a person of size 1: about 300 of the 384 pixels."""
THING_SIZE = 172
"""Longer side of an animal or object of size 1, pixels."""
MARGIN = 3
"""Pixels that stay free at the edge of the image."""

_PLAIN = Pose("")


def draw_scene(scene: Scene) -> Image.Image:
    """RGB image of `scene.WIDTH` x `scene.HEIGHT` pixels; a function of the scene alone."""
    canvas = draw_background(scene.background).convert("RGBA")
    for figure in scene.figures:
        _draw_figure(canvas, figure)
    return canvas.convert("RGB")


def figure_image(figure: Figure) -> Image.Image:
    """The figure alone as RGBA, posed and cropped, without the effects around it."""
    pose = _pose(figure)
    if clothes(figure.entity) is not None:
        image = draw_person(figure.entity, pose.posture(), PERSON_SCALE * figure.scale, figure.tone)
        mirrored, turn = figure.faces < 0, pose.lean
    else:
        image = _thing(figure, pose)
        mirrored, turn = figure.faces > 0, pose.turn  # the art looks to the left
    if mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if turn:
        image = image.rotate(turn * figure.faces, Image.Resampling.BICUBIC, expand=True)
    if pose.shade != 100:
        image = _shaded(image, pose.shade)
    return image.crop(image.getbbox())


def acting_image(figure: Figure) -> Image.Image:
    """The figure with its effects but without its shadow, as RGBA, cropped."""
    canvas = Image.new("RGBA", (WIDTH, HEIGHT))
    image, box = placed_image(figure)
    _draw_with_effects(canvas, figure, image, box)
    return canvas.crop(canvas.getbbox())


def _pose(figure: Figure) -> Pose:
    return POSES.get(figure.pose, _PLAIN)


def _thing(figure: Figure, pose: Pose) -> Image.Image:
    image = sprite(figure.entity)
    scale = THING_SIZE * figure.scale / max(image.size)
    size = (image.width * scale * pose.stretch[0], image.height * scale * pose.stretch[1])
    return image.resize((round(size[0]), round(size[1])), Image.Resampling.LANCZOS)


def _shaded(image: Image.Image, percent: int) -> Image.Image:
    colors = image.convert("RGB").point([i * percent // 100 for i in range(256)] * 3)
    colors.putalpha(image.getchannel("A"))
    return colors


def _draw_figure(canvas: Image.Image, figure: Figure) -> None:
    image, box = placed_image(figure)
    ground, lift = round(figure.base * HEIGHT), _lift(figure)
    _draw_shadow(canvas, box[0] + image.width // 2, ground, image.width, lift)
    _draw_with_effects(canvas, figure, image, box)


def placed_image(figure: Figure) -> tuple[Image.Image, tuple[int, int, int, int]]:
    """The figure's image and its box on the canvas, moved inside the edges."""
    image = figure_image(figure)
    top = max(MARGIN, round(figure.base * HEIGHT) - _lift(figure) - image.height)
    left = round(figure.x * WIDTH) - image.width // 2
    left = min(max(MARGIN, left), WIDTH - MARGIN - image.width)
    return image, (left, top, left + image.width, top + image.height)


def _lift(figure: Figure) -> int:
    """Height above the ground, pixels."""
    return round(_pose(figure).lift * HEIGHT)


def _draw_with_effects(
    canvas: Image.Image, figure: Figure, image: Image.Image, box: tuple[int, int, int, int]
) -> None:
    pose = _pose(figure)
    for effect in pose.behind:
        draw_effect(canvas, effect, box, figure.faces, image)
    canvas.alpha_composite(image, box[:2])
    for effect in pose.over:
        draw_effect(canvas, effect, box, figure.faces, image)


def _draw_shadow(canvas: Image.Image, center: int, ground: int, width: int, lift: int) -> None:
    """A flat shadow on the floor, narrower under a figure in the air."""
    half = width * (3 if lift else 4) // 10
    shadow = Image.new("RGBA", (2 * half + 1, 15))
    ImageDraw.Draw(shadow).ellipse((0, 0, 2 * half, 14), (40, 40, 40, 70))
    left, top = center - half, min(ground - 7, HEIGHT - 15)
    canvas.alpha_composite(shadow, (max(0, left), top), (max(0, -left), 0))
