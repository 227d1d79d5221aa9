"""SVG for a page: elements with escaped text, and axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

SERIES = 8
"""Colors and shapes that `style.css` tells apart."""
CHARACTER = 7.8
"""Width of a character at the size of the plots' text, pixels; a little too wide on purpose."""
ROW = 22
"""Height of a line of text with its space, pixels."""
COLORS = "#0b6bcb #c4560a #14804a #7a3cc2 #b3173c #00838f #8a6d00 #5b6570".split()
"""Of the series in a file of its own, which has no page's style."""
STYLE = (
    "text{font:13px sans-serif;fill:#333}.grid{stroke:#ddd}.axis{stroke:#777}"
    ".curve{fill:none;stroke-width:2}.regret{fill:none;stroke:#333;stroke-width:2}"
    ".mean{stroke:#333;stroke-width:2}.limit{stroke:#333;stroke-dasharray:5 4}"
    + "".join(f".s{n}{{stroke:{c}}}.mark.s{n}{{fill:{c}}}" for n, c in enumerate(COLORS))
)
_CORNERS = (
    (),
    ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    ((0, -5.5), (5, 3.8), (-5, 3.8)),
    ((0, -5.8), (5.8, 0), (0, 5.8), (-5.8, 0)),
)
"""Of a series' shape around its point, pixels; a circle where there are none."""


class PlotAxis(NamedTuple):
    """Maps values to pixels."""

    low: float
    """Least value."""
    high: float
    """Largest value."""
    start: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""

    def __call__(self, value: float) -> float:
        """The pixel of a value; values outside are put at the edge."""
        inside = min(max(value, self.low), self.high)
        return self.start + (self.end - self.start) * (inside - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers within the axis, at most `most` and a few.

        >>> PlotAxis(0, 100, 0, 1).ticks()
        [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        """
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * f for f in (1, 2, 2.5, 5, 10) if power * f >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


class Drawing:
    """An SVG figure that says in words what it shows."""

    def __init__(self, width: float, height: float, title: str) -> None:
        """title: what a screen reader says; the numbers stand in a table next to the figure."""
        size = {"width": _px(width), "height": _px(height)}
        box = {"viewBox": f"0 0 {_px(width)} {_px(height)}"}
        self.root = Element("svg", {**box, "role": "img", **size, "aria-label": title})

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        ends = {"x1": _px(x1), "y1": _px(y1), "x2": _px(x2), "y2": _px(y2)}
        SubElement(self.root, "line", {**ends, "class": style})

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        text = "M" + "L".join(f"{_px(x)},{_px(y)}" for x, y in points)
        SubElement(self.root, "path", {"d": text, "class": style})

    def text(self, x: float, y: float, text: str, anchor: str = "start", style: str = "") -> None:
        place = {"x": _px(x), "y": _px(y), "text-anchor": anchor, "dy": "0.34em"}
        SubElement(self.root, "text", {**place, "class": style} if style else place).text = text

    def mark(self, x: float, y: float, series: int, hint: str = "") -> None:
        """A point in the color and shape of a series; `hint` shows under the mouse."""
        if corners := _CORNERS[series % len(_CORNERS)]:
            points = " ".join(f"{_px(x + dx)},{_px(y + dy)}" for dx, dy in corners)
            point = SubElement(self.root, "polygon", {"points": points})
        else:
            point = SubElement(self.root, "circle", {"cx": _px(x), "cy": _px(y), "r": "4.5"})
        point.set("class", f"mark s{series % SERIES}")
        if hint:
            SubElement(point, "title").text = hint

    def bar(
        self, x1: float, x2: float, y: float, height: float, *, series: int, hint: str = ""
    ) -> None:
        """A filled box in the color of a series; `hint` shows under the mouse."""
        size = {"width": _px(x2 - x1), "height": _px(height)}
        style = f"mark s{series % SERIES}"
        box = SubElement(self.root, "rect", {"x": _px(x1), "y": _px(y), **size, "class": style})
        if hint:
            SubElement(box, "title").text = hint

    def markup(self) -> Markup:
        """The figure, escaped, to be put into HTML."""
        return Markup(tostring(self.root, encoding="unicode"))

    def file(self) -> str:
        """The figure as an SVG file of its own, which ends with a line feed."""
        style = Element("style")
        style.text = STYLE
        alone = Element("svg", {**self.root.attrib, "xmlns": "http://www.w3.org/2000/svg"})
        alone.extend([style, *self.root])
        return tostring(alone, encoding="unicode") + "\n"


class FluidDrawing(Drawing):
    """A figure as wide as its place on the page: x is a percentage of that, y are pixels.

    Texts and marks keep their size on every screen.
    """

    def __init__(self, height: float, title: str) -> None:
        size = {"width": "100%", "height": _px(height), "class": "fluid"}
        self.height = height
        self.root = Element("svg", {**size, "role": "img", "aria-label": title})

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        ends = {"x1": _share(x1), "y1": _px(y1), "x2": _share(x2), "y2": _px(y2)}
        SubElement(self.root, "line", {**ends, "class": style})

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        text = "M" + "L".join(f"{x:.2f},{_px(y)}" for x, y in points)
        size = {"width": "100%", "height": _px(self.height), "preserveAspectRatio": "none"}
        box = {"viewBox": f"0 0 100 {_px(self.height)}", **size}
        stretched = SubElement(self.root, "svg", box)
        SubElement(
            stretched, "path", {"d": text, "class": style, "vector-effect": "non-scaling-stroke"}
        )

    def text(self, x: float, y: float, text: str, anchor: str = "start", style: str = "") -> None:
        super().text(x, y, text, anchor, style)
        self.root[-1].set("x", _share(x))

    def mark(self, x: float, y: float, series: int, hint: str = "") -> None:
        super().mark(0, 0, series, hint)
        point = self.root[-1]
        self.root.remove(point)
        place = {"x": _share(x), "y": _px(y), "overflow": "visible"}
        SubElement(self.root, "svg", place).append(point)

    def bar(
        self, x1: float, x2: float, y: float, height: float, *, series: int, hint: str = ""
    ) -> None:
        super().bar(x1, x2, y, height, series=series, hint=hint)
        self.root[-1].attrib.update({"x": _share(x1), "width": _share(x2 - x1)})


def shortened(text: str, most: int) -> str:
    """At most `most` characters.

    >>> shortened("counterfactual", 8)
    'counter…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def _share(value: float) -> str:
    return f"{value:.2f}%"


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
