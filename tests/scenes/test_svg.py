"""Drawings as SVG files: what a browser shows is what is read, and anything else is refused."""

import math
import shutil
import subprocess
from pathlib import Path

import pytest
from drawn_files import HEAD, drawn
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.scenes.canvas import above_baseline, text_width
from counterprior.scenes.svg import VIEW, SvgLayer, read_layers
from counterprior.scenes.vector import ShapeError, VectorShape


def read(content: str) -> list[VectorShape]:
    """The shapes of a layer."""
    (layer,) = read_layers(drawn({"scene": content}).encode())
    return list(layer.shapes)


def bounds(content: str) -> tuple[float, ...]:
    (shape,) = read(content)
    return shape.bounds()


@pytest.mark.parametrize(
    ("element", "box"),
    [
        ('<rect x="10" y="20" width="30" height="40"/>', (10, 20, 40, 60)),
        ('<rect x="10" y="20" width="30" height="40" rx="5"/>', (10, 20, 40, 60)),
        ('<circle cx="10" cy="20" r="5"/>', (5, 15, 15, 25)),
        ('<ellipse cx="10" cy="20" rx="5" ry="2"/>', (5, 18, 15, 22)),
        ('<line x1="1" y1="2" x2="3" y2="5"/>', (1, 2, 3, 5)),
        ('<polyline points="1,2 3,5 0,1"/>', (0, 1, 3, 5)),
        ('<polygon points="1 2 3 5 0 1"/>', (0, 1, 3, 5)),
        ('<path d="m1 2c0 3 6 3 6 0z"/>', (1, 2, 7, 4.25)),
        ('<path d="M0,10 A10 10 0 0 1 20 10"/>', (0, 0, 20, 10)),
        ('<g transform="translate(5)"><rect width="1" height="2"/></g>', (5, 0, 6, 2)),
        ('<rect width="1" height="2" transform="scale(2,3) translate(1 1)"/>', (2, 3, 4, 9)),
        ('<rect width="1" height="2" transform="rotate(90)"/>', (-2, 0, 0, 1)),
        ('<rect width="1" height="2" transform="rotate(90 1 1)"/>', (0, 0, 2, 1)),
        ('<rect width="1" height="2" transform="matrix(1 0 0 -1 3 0)"/>', (3, -2, 4, 0)),
        ('<rect width="1" height="2" transform="skewX(45)"/>', (0, 0, 3, 2)),
        ('<rect width="1" height="2" transform="skewY(45)"/>', (0, 0, 1, 3)),
    ],
)
def test_every_shape_of_svg_is_where_svg_has_it(element: str, box: tuple[float, ...]) -> None:
    assert bounds(element) == pytest.approx(box, abs=0.02)


def test_colors_and_widths_are_of_the_style_the_element_or_what_is_around_it() -> None:
    styled, plain, bare, wide = read(
        '<g style="fill:red; stroke:navy" stroke-width="3">'
        '<rect width="1" height="1" fill="blue" style="fill:#00ff00;stroke-width:2px"/>'
        '<rect width="1" height="1"/><rect width="1" height="1" fill="none" stroke="none"/>'
        '<rect width="1" height="1" transform="scale(2 8)"/></g>'
    )
    assert (styled.fill, styled.stroke, styled.width) == ("#00ff00", "#000080", 2)
    assert (plain.fill, plain.stroke, plain.width) == ("#ff0000", "#000080", 3)
    assert (bare.fill, bare.stroke) == ("", "")
    assert wide.width == 3 * math.sqrt(2 * 8)
    # As in SVG, what says nothing is black, one unit wide and without an outline.
    shape = next(
        read_layers(drawn({"a": '<rect width="1" height="1"/>'}, PLAIN).encode())[0].shapes
    )
    assert (shape.fill, shape.stroke, shape.width) == ("#000000", "", 1)


PLAIN = HEAD.replace(' fill="none"', "")


def test_a_text_is_where_its_anchor_and_its_baseline_have_it() -> None:
    middle, start, end = read(
        '<g font-size="50" fill="red"><text x="100" y="200" text-anchor="middle" '
        'dominant-baseline="central">Ab</text><text x="100" y="200">Ab</text>'
        '<text style="text-anchor:end;font-size:25px" x="100" y="200">Ab</text></g>'
    )
    assert (middle.text, middle.at, middle.height) == ("Ab", (100, 200), 50)
    half, up = text_width("Ab") * 25, above_baseline() * 50
    assert start.at == pytest.approx((100 + half, 200 - up)) and 0 < up < 25
    assert end.at == pytest.approx((100 - half / 2, 200 - up / 2)) and end.height == 25


def test_each_line_of_a_text_is_one_and_moves_with_its_group() -> None:
    one, two = read(
        '<g transform="translate(5 6) scale(2)"><text x="1" y="2" fill="red" font-size="9" '
        'dominant-baseline="central" text-anchor="middle"><tspan x="1" y="2"> A </tspan>\n'
        '<tspan x="3" y="20" fill="blue">B</tspan></text></g>'
    )
    assert (one.text, one.at, one.height, one.fill) == ("A", (7, 10), 18, "#ff0000")
    assert (two.text, two.at, two.height, two.fill) == ("B", (11, 46), 18, "#0000ff")


def test_layers_have_the_name_that_inkscape_shows_and_may_be_hidden() -> None:
    head = HEAD.replace(
        "<svg ", '<svg xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" '
    )
    box = '<rect width="1" height="1"/>'
    text = drawn({"real": box, "parts": {"a b": box, "{part}": box + box}}, head)
    text = text.replace('<g id="a b"', '<g inkscape:label="a b" id="g7" style="display:none"')
    real, parts = read_layers(text.encode())
    assert (real.name, len(list(real.shapes)), parts.name, len(list(parts.shapes))) == (
        *("real", 1),
        *("parts", 3),
    )
    assert [part.name for part in parts.content if isinstance(part, SvgLayer)] == ["a b", "{part}"]


def test_what_editors_add_besides_is_passed_over() -> None:
    head = HEAD.replace("<svg ", '<svg xmlns:sodipodi="http://sodipodi.sourceforge.net/" ')
    notes = '<!-- a --><title>T</title><desc>D</desc><sodipodi:namedview id="n"/><metadata/><defs/>'
    (layer,) = read_layers((head + notes + '<g id="over"><title>T</title></g></svg>').encode())
    assert layer == SvgLayer("over")


@pytest.mark.parametrize(
    ("content", "code", "facts"),
    [
        ('<use href="#a"/>', "unsupported", ("<use>",)),
        ('<image href="a.png"/>', "unsupported", ("<image>",)),
        ("<style>.a {fill: red}</style>", "unsupported", ("<style>",)),
        ('<rect id="r7" opacity="0.5"/>', "unsupported", ("rect r7", "opacity '0.5'")),
        ('<g style="opacity:.5"/>', "unsupported", ("opacity '.5'",)),
        ('<g fill-rule="evenodd"/>', "unsupported", ("fill-rule 'evenodd'", "nonzero")),
        ('<rect style="fill:red; display : none"/>', "unsupported", ("hidden",)),
        ('<rect style="transform:scale(2)"/>', "unsupported", ("transform",)),
        ('<line stroke-linecap="round"/>', "unsupported", ("stroke-linecap 'round'", "butt")),
        ('<text style="font-weight:bold">A</text>', "unsupported", ("font-weight 'bold'",)),
        ('<rect display="none"/>', "unsupported", ("hidden",)),
        ('<rect clip-path="url(#c)" width="1" height="1"/>', "unsupported", ("clip-path",)),
        ('<rect stroke-dasharray="1 2"/>', "unsupported", ("stroke-dasharray",)),
        ('<rect transform="rotate(1deg)"/>', "bad-value", ("'1deg'",)),
        ('<rect transform="perspective(1)"/>', "unsupported", ("perspective(1)",)),
        ('<rect transform="rotate(1 2)"/>', "unsupported", ("rotate(1 2)",)),
        ('<rect transform="rotate(1"/>', "unsupported", ("rotate(1",)),
        ('<rect width="1"/>', "bad-value", ("rect 1",)),
        ('<rect width="1em" height="1"/>', "bad-value", ("'1em'",)),
        ('<rect width="1" height="1" stroke-width="1%"/>', "bad-value", ("'1%'",)),
        ("<circle r='1'/><polygon/>", "bad-value", ("polygon 2", "'points'")),
        ('<path d="M0 0 L 1" transform="scale(2)"/>', "bad-value", ("path 1", "M0 0 L 1")),
        ('<text transform="rotate(9)">A</text>', "unsupported", ("turned",)),
        ('<text transform="scale(1 2)">A</text>', "unsupported", ("stretched",)),
        ('<text transform="scale(-1)">A</text>', "unsupported", ("mirrored",)),
        ('<text dx="1">A</text>', "unsupported", ("dx",)),
        ('<text x="1 2">A</text>', "bad-value", ("'1 2'",)),
        ('<text text-anchor="left">A</text>', "unsupported", ("'left'",)),
        ('<text dominant-baseline="middle">A</text>', "unsupported", ("'middle'",)),
        ("<text>A<tspan>B</tspan></text>", "unsupported", ("<tspan>",)),
        ("<text><tspan>A</tspan>B</text>", "unsupported", ("<tspan>",)),
        ("<text><tspan>A</tspan><tspan>B</tspan></text>", "unsupported", ("<tspan>",)),
        ("<text><textPath>A</textPath></text>", "unsupported", ("text 1",)),
    ],
)
def test_what_would_look_otherwise_in_a_browser_is_refused(
    content: str, code: str, facts: tuple[str, ...]
) -> None:
    with raises(code, "layer 'scene'", *facts, error=ShapeError):
        read(content)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", ("XML",)),
        (HEAD, ("XML",)),
        ("<svg/>", ('<svg xmlns="http://www.w3.org/2000/svg">',)),
        (HEAD.replace(VIEW, "0 0 210 297") + "</svg>", ("'0 0 210 297'", VIEW)),
        (HEAD.replace("viewBox", "viewbox") + "</svg>", ("None", VIEW)),
        (HEAD + '<rect width="1" height="1"/></svg>', ("rect", "in no layer")),
        (
            '<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa">'
            + "".join(
                f'<!ENTITY {b} "{f"&{a};" * 10}">'
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            )
            + "]>"
            + HEAD
            + '<g id="a"><text>&i;</text></g></svg>',
            ("XML", "amplification"),
        ),
        (
            f'<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]>{HEAD}<g id="a"><text>&a;'
            "</text></g></svg>",
            ("XML", "entity"),
        ),
    ],
)
def test_a_file_that_is_no_drawing_is_refused(text: str, facts: tuple[str, ...]) -> None:
    with raises("bad-value", *facts, error=ShapeError):
        read_layers(text.encode())


@pytest.mark.lane
@pytest.mark.skipif(shutil.which("inkscape") is None, reason="Inkscape is not installed")
def test_a_drawing_that_inkscape_saved_is_the_same(tmp_path: Path) -> None:
    for path in sorted(DEFAULT_BANK.glob("*/*/*.svg"))[::25]:
        saved = tmp_path / path.name
        subprocess.run(
            ["inkscape", path, "--export-type=svg", f"--export-filename={saved}"],
            check=True,
            capture_output=True,
        )
        assert [(layer.name, list(layer.shapes)) for layer in read_layers(saved.read_bytes())] == [
            (layer.name, list(layer.shapes)) for layer in read_layers(path.read_bytes())
        ], path
