"""Draws docs/order.png: one pair in both orders of mention, by a generator that follows word order.

python tools/readme_figure.py
"""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import draw, open_generator

PROMPTS = ("A cat and a dog in a park.", "A dog and a cat in a park.")
GENERATORS = {
    "follows word order": "render:?order_bias=20",
    "does not": "render:",
}
SEEDS = (11, 12, 13)
SIZE = (224, 168)
GAP, LINE = 8, 30
INK, PAPER = "#222222", "#ffffff"


def figure() -> Image.Image:
    """Prompts as rows, generators as blocks of columns, one image a seed."""
    block = len(SEEDS) * (SIZE[0] + GAP)
    width = GAP + len(GENERATORS) * (block + 2 * GAP)
    height = LINE + len(PROMPTS) * (SIZE[1] + LINE + GAP)
    page = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(page)
    for column, (title, spec) in enumerate(GENERATORS.items()):
        generator = open_generator(spec)
        left = GAP + column * (block + 2 * GAP)
        pen.text((left, 6), f"A generator that {title}", INK, ImageFont.load_default(17))
        for row, prompt in enumerate(PROMPTS):
            top = LINE + row * (SIZE[1] + LINE + GAP)
            for number, seed in enumerate(SEEDS):
                image = draw(generator, ImageRequest(prompt, seed + 100 * row))
                page.paste(image.resize(SIZE), (left + number * (SIZE[0] + GAP), top))
            pen.text(
                (left, top + SIZE[1] + 4), f"\u201c{prompt}\u201d", INK, ImageFont.load_default(15)
            )
    return page


if __name__ == "__main__":
    figure().save(Path(__file__).parents[1] / "docs" / "order.png", optimize=True)
