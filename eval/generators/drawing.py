"""From a scene to its pixels."""

from __future__ import annotations

from PIL import Image, ImageDraw

from .backgrounds import draw_background
from .effects import draw_effect
from .people import HEIGHT as PERSON_HEIGHT
from .people import STANDING, draw_person
from .poses import POSES, Pose
from .scene import HEIGHT, WIDTH, Figure, Scene
from .sprites import clothes, sprite

PERSON_SCALE = 0.88
"""Scale of a person of size 1: about 300 pixels of the 384."""
THING_SIZE = 168
"""Longer side of an animal or object of size 1, pixels."""

_PLAIN = Pose("")


def draw_scene(scene: Scene) -> Image.Image:
    """RGB picture of `scene.WIDTH` x `scene.HEIGHT` pixels; a function of the scene alone."""
    canvas = draw_background(scene.background).convert("RGBA")
    for figure in scene.figures:
        _draw_figure(canvas, figure)
    return canvas.convert("RGB")


def figure_image(figure: Figure) -> Image.Image:
    """The figure alone as RGBA, posed, cropped to what is visible; without effects around it."""
    pose = POSES.get(figure.pose, _PLAIN)
    if clothes(figure.entity) is not None:
        posture = pose.posture(figure.toward, figure.flipped) if pose.person else STANDING
        image = draw_person(figure.entity, posture, PERSON_SCALE * figure.scale)
        image = image.crop(image.getbbox())
    else:
        image = _thing(figure, pose)
    if figure.flipped:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    turn = pose.turn if not pose.person or pose.turns_people else pose.lean
    if turn:
        image = image.rotate(turn * figure.toward, Image.Resampling.BICUBIC, expand=True)
        image = image.crop(image.getbbox())
    return image


def _thing(figure: Figure, pose: Pose) -> Image.Image:
    picture = sprite(figure.entity)
    scale = THING_SIZE * figure.scale / max(picture.size)
    size = (picture.width * scale * pose.stretch[0], picture.height * scale * pose.stretch[1])
    return picture.resize((round(size[0]), round(size[1])), Image.Resampling.LANCZOS)


def _draw_figure(canvas: Image.Image, figure: Figure) -> None:
    pose = POSES.get(figure.pose, _PLAIN)
    image = figure_image(figure)
    centre, ground = round(figure.x * WIDTH), round(figure.base * HEIGHT)
    lift = round(pose.lift * HEIGHT)
    top = max(2, ground - lift - image.height)
    left = min(max(2, centre - image.width // 2), WIDTH - image.width - 2)
    box = (left, top, left + image.width, top + image.height)
    _shadow(canvas, (left + right) // 2 if (right := box[2]) else centre, ground, image.width, lift)
    for effect in pose.behind:
        draw_effect(canvas, effect, box, figure.toward, image)
    if pose.shade != 100:
        image = _shaded(image, pose.shade)
    canvas.alpha_composite(image, (left, top))
    for effect in pose.over:
        draw_effect(canvas, effect, box, figure.toward, image)


def _shadow(canvas: Image.Image, centre: int, ground: int, width: int, lift: int) -> None:
    """A flat shadow on the floor; smaller and further from the figure the higher it is."""
    shadow = Image.new("RGBA", canvas.size)
    half = round(width * (0.42 if lift == 0 else 0.3))
    ImageDraw.Draw(shadow).ellipse(
        (centre - half, ground - 7, centre + half, ground + 7), (40, 40, 40, 70)
    )
    canvas.alpha_composite(shadow)


def _shaded(image: Image.Image, percent: int) -> Image.Image:
    colours = image.convert("RGB").point([min(255, i * percent // 100) for i in range(256)] * 3)
    colours.putalpha(image.getchannel("A"))
    return colours


__all__ = ["PERSON_HEIGHT", "draw_scene", "figure_image"]
