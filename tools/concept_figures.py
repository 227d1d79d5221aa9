"""Draws the figures of docs/concepts as SVG; every number in them comes from our own code.

python tools/concept_figures.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.counterfactual import groups as released_groups
from counterprior.eval.geometry.boxes import Box, Size, offset
from counterprior.eval.geometry.checker.decide import holds
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.geometry.pse import pse
from counterprior.eval.stats.comparison import sign_flip
from counterprior.eval.stats.correction import ppi
from counterprior.eval.stats.intervals import wilson
from counterprior.eval.suites.altered import WORLDS
from counterprior.eval.suites.homogenization import order_and_entity_effect
from counterprior.eval.suites.worlds import GATE, gated, premise_ratio

WIDTH = 480
"""Of every figure, in its own units: text of 14 stays readable on a phone."""
FIRST, SECOND, INK, FAINT, PAPER = "#2458c5", "#b8480b", "#1f2328", "#8a929b", "#ffffff"


def text(
    x: float, y: float, said: str, anchor: str = "start", fill: str = INK, size: int = 14
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" '
        f'font-size="{size}">{escape(said)}</text>'
    )


def rect(
    x: float, y: float, width: float, height: float, fill: str = "none", stroke: str = "none"
) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = FAINT, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" '
        f'stroke-width="1.5"{dashed}/>'
    )


def dot(x: float, y: float, fill: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{fill}"/>'


def tile(x: float, y: float, left: str, right: str, size: float = 18) -> str:
    """An image with one thing on each side, each in the color of its thing."""
    half = size / 2
    return (
        rect(x, y, size, size, PAPER, FAINT)
        + rect(x + 2, y + 4, half - 3, size - 8, left)
        + rect(x + half + 1, y + 4, half - 3, size - 8, right)
    )


def hom() -> tuple[str, int]:
    """Twenty images of three generators, with Hom and its sign."""
    rows = {"always first": [1] * 20, "either": [1, -1] * 10, "mostly first": [1, 1, 1, 1, -1] * 4}
    drawn, y = "", 24
    for name, signs in rows.items():
        mean = float(np.mean(signs))
        drawn += text(10, y, f"{name}: Hom {100 * abs(mean):.0f}, signed {100 * mean:+.0f}")
        for number, sign in enumerate(signs):
            sides = (FIRST, SECOND) if sign > 0 else (SECOND, FIRST)
            drawn += tile(10 + 23 * number, y + 8, *sides)
        y += 58
    chance = 100 * sign_flip([1.0, -1.0] * 10, range(20)).null
    drawn += text(10, y, "Blue is the thing that the prompt names first.", fill=FIRST)
    drawn += text(10, y + 22, f"20 fair coins give Hom {chance:.0f} on average: its chance level.")
    return drawn, y + 36


def order_and_entity() -> tuple[str, int]:
    """The same four images of three generators, taken apart into two effects."""
    cases = {
        "follows word order": ((1, 1), (1, 1)),
        "puts the cat on the left": ((1, 1), (-1, -1)),
        "does a bit of both": ((1, 1), (1, -1)),
    }
    drawn, y = text(10, 20, "Blue: cat. Orange: dog. Two images of each prompt."), 52
    for name, (ab, ba) in cases.items():
        order, entity = order_and_entity_effect(np.array([np.mean(ab), np.mean(ba)]))
        drawn += text(10, y, f"{name}: order {order:+.1f}, entity {entity:+.1f}")
        for start, signs, first in ((10, ab, FIRST), (250, ba, SECOND)):
            other = SECOND if first == FIRST else FIRST
            said = "a cat and a dog" if first == FIRST else "a dog and a cat"
            drawn += text(start, y + 32, f"“{said}”", size=13)
            for number, sign in enumerate(signs):
                sides = (first, other) if sign > 0 else (other, first)
                drawn += tile(start + 122 + 40 * number, y + 12, *sides, size=32)
        y += 82
    return drawn, y - 24


def lock_in() -> tuple[str, int]:
    """What an image shows, by two questions about ice in a world in which it sinks."""
    places = {"real": [30], "altered": [66], "both": [30, 66], "neither": []}
    counted = {"real": "lock-in", "altered": "compliance"}
    drawn = text(10, 20, "“If ice were denser than water, draw a glass of iced water.”")
    for number, ((factual, altered), world) in enumerate(WORLDS.items()):
        x = 12 + 118 * number
        drawn += rect(x + 18, 44, 66, 82, "#dcebfa", INK) + rect(x + 18, 36, 66, 12, PAPER)
        for top in places[world]:
            drawn += rect(x + 28, top + 22, 18, 18, PAPER, FIRST)
            drawn += rect(x + 54, top + 22, 18, 18, PAPER, FIRST)
        drawn += text(x + 51, 150, f"floats? {factual}", "middle", size=13)
        drawn += text(x + 51, 169, f"sinks? {altered}", "middle", size=13)
        drawn += text(x + 51, 194, world, "middle", FIRST)
        drawn += text(x + 51, 214, counted.get(world, "confusion"), "middle", SECOND, 13)
    return drawn, 226


def retention() -> tuple[str, int]:
    """Scores of four groups on three levels, with the gate and both ratios."""
    scores = np.array([[0.9, 0.6, 0.3], [0.8, 0.9, 0.5], [1.0, 0.4, 0.1], [0.3, 0.7, 0.6]])
    counted = gated(scores)
    means = counted.mean(axis=0)
    prr, rrr = premise_ratio(means[:2], means[1:])

    def up(value: float) -> float:
        return 190 - 150 * value

    drawn = line(40, up(0), 460, up(0)) + line(40, up(GATE), 150, up(GATE), SECOND, "5 4")
    drawn += text(30, up(0) + 4, "0", "end") + text(30, up(1) + 4, "1", "end")
    drawn += text(46, up(GATE) - 6, f"gate {GATE}", fill=SECOND, size=13)
    for level, name in enumerate(("L1: the scene", "L2: + outcome told", "L3: law only")):
        x = 100 + 150 * level
        for group, value in enumerate(counted[:, level]):
            fill = FAINT if counted[group, 0] < GATE else FIRST
            drawn += dot(x + 14 * (group - 1.5), up(float(value)), fill)
        drawn += line(x - 34, up(means[level]), x + 34, up(means[level]), INK)
        drawn += text(x + 38, up(means[level]) + 5, f"{means[level]:.2f}")
        drawn += text(x, 214, name, "middle", size=13)
    drawn += text(10, 244, f"PRR = {means[1]:.2f} / √{means[0]:.2f} = {prr:.2f}")
    drawn += text(250, 244, f"RRR = {means[2]:.2f} / √{means[1]:.2f} = {rrr:.2f}")
    drawn += text(10, 268, "Grey: a group whose L1 fails the gate counts 0 above.", fill="#5b636c")
    return drawn, 280


def pse_figure() -> tuple[str, int]:
    """Two masks at three places, with PSE of "blue is left of orange"."""
    drawn = text(10, 20, "PSE of “blue is left of orange”")
    for number, shift in enumerate((0, 70, 94, 180)):
        x, masks = 10 + 118 * number, np.zeros((2, 80, 106), bool)
        blue, place = (60, 8) if shift == 180 else (8, 62 - shift // 2)
        masks[0, 30:60, blue : blue + 36] = True
        masks[1, 20:50, place : place + 36] = True
        value = float(pse(masks[0], masks[1], "left_of"))
        drawn += rect(x, 34, 106, 80, PAPER, FAINT)
        drawn += rect(x + blue, 64, 36, 30, FIRST)
        drawn += rect(x + place, 54, 36, 30, "none", SECOND)
        drawn += rect(x + place + 1, 55, 34, 28, "none", SECOND)
        drawn += text(x + 53, 138, f"{value:.2f}", "middle", FIRST if value >= 0.5 else SECOND, 16)
    drawn += text(10, 166, "From 0.5 on the relation holds. In the third image the center of")
    drawn += text(10, 186, "blue is left of that of orange, but the two mostly overlap.")
    return drawn, 198


def abstention() -> tuple[str, int]:
    """Three images with the checker's verdict, and its margin."""
    margin, size = CheckerRules().geometry.margin, Size(100, 100)
    fills = {"PASS": "#1a7f37", "FAIL": "#b3173c", "UNDECIDABLE": "#6b5900"}
    drawn = text(10, 20, "“Blue is left of orange”")
    for number, (a, b) in enumerate(((10, 60), (34, 40), (60, 10))):
        x = 20 + 156 * number
        boxes = Box(a, 40, a + 26, 70), Box(b, 30, b + 26, 60)
        delta = offset(*boxes, "left_of", size)
        verdict = holds(delta, "left_of", margin)
        drawn += rect(x, 34, 120, 100, PAPER, FAINT)
        drawn += rect(x + 10 + a, 74, 26, 30, FIRST) + rect(x + 10 + b, 64, 26, 30, SECOND)
        drawn += text(x + 60, 158, verdict, "middle", fills[verdict])
        drawn += text(x + 60, 178, f"distance {delta:+.2f}", "middle", size=13)
    drawn += text(10, 208, f"Centers within {margin:g} of the image's side decide nothing.")
    return drawn, 220


def judge_correction() -> tuple[str, int]:
    """A rate by a judge who errs, by few labels, and by both."""
    draw = np.random.default_rng(0)
    truth = draw.random(1000) < 0.5
    said = np.where(truth, draw.random(1000) < 0.98, draw.random(1000) < 0.2)
    labeled, rest = slice(0, 100), slice(100, None)
    few = int(truth[labeled].sum())
    both = ppi(said[rest], said[labeled], truth[labeled], (0.0, 1.0))
    rows = (
        ("judge alone, 1000 images", float(said.mean()), wilson(int(said.sum()), 1000), SECOND),
        ("people alone, 100 images", few / 100, wilson(few, 100), FAINT),
        ("both (PPI++)", both.value, both.interval, FIRST),
    )

    def across(value: float) -> float:
        return 20 + 440 * (value - 0.3) / 0.5

    true = float(truth.mean())
    drawn = line(across(true), 14, across(true), 190, INK, "5 4")
    drawn += text(across(true) + 6, 22, f"truth {true:.2f}")
    for number, (name, value, ends, color) in enumerate(rows):
        y = 64 + 48 * number
        drawn += line(across(ends.low), y, across(ends.high), y, color) + dot(
            across(value), y, color
        )
        where = f"{name}: {value:.2f} [{ends.low:.2f}, {ends.high:.2f}]"
        drawn += rect(18, y - 26, 8 * len(where), 20, PAPER) + text(20, y - 12, where)
    drawn += line(20, 190, 460, 190)
    for tick in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        drawn += text(across(tick), 208, f"{tick:.1f}", "middle", size=13)
    return drawn, 218


def groups() -> tuple[str, int]:
    """How many groups of altered worlds each discipline and branch has, as released."""
    branches: dict[str, Counter[str]] = {}
    for _, law, _ in released_groups(SHIPPED):
        branches.setdefault(law.discipline, Counter())[law.branch] += 1
    scale, y = 230 / max(counts.total() for counts in branches.values()), 22
    drawn = ""
    for discipline, counts in sorted(branches.items(), key=lambda item: -item[1].total()):
        total = counts.total()
        drawn += text(152, y + 12, discipline, "end")
        drawn += rect(158, y, scale * total, 16, FIRST)
        drawn += text(164 + scale * total, y + 13, f"{total} groups")
        y += 24
        for branch, number in counts.most_common():
            drawn += text(152, y + 9, branch.replace("_", " "), "end", FAINT, 11)
            drawn += rect(158, y, scale * number, 10, SECOND)
            drawn += text(164 + scale * number, y + 9, str(number), fill=FAINT, size=11)
            y += 15
        y += 10
    return drawn, y + 4


FIGURES: dict[str, Callable[[], tuple[str, int]]] = {
    "hom": hom,
    "order-and-entity": order_and_entity,
    "lock-in": lock_in,
    "groups": groups,
    "retention": retention,
    "pse": pse_figure,
    "abstention": abstention,
    "judge-correction": judge_correction,
}


def draw(name: str) -> str:
    """The SVG of a figure, on white so that it reads on any page."""
    drawn, height = FIGURES[name]()
    shapes = drawn.replace("/>", "/>\n").replace("</text>", "</text>\n")
    paper = rect(0, 0, WIDTH, height, PAPER)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif">\n{paper}\n{shapes}</svg>\n'
    )


def main(names: Sequence[str] = tuple(FIGURES)) -> None:
    for name in names:
        (Path(__file__).parents[1] / "docs" / "concepts" / f"{name}.svg").write_text(draw(name))


if __name__ == "__main__":
    main()
