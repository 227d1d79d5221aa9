"""Drawings as SVG files: what a browser shows is what is read, and anything else is refused."""

import shutil
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from drawn_files import ALL, HEAD, drawn
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.scenes.canvas import above_baseline, text_width
from counterprior.scenes.svg import VIEW, SvgLayer, read_layers
from counterprior.scenes.vector import (
    ShapeError,
    VectorImage,
    VectorShape,
    VectorStyle,
    draw_vector,
)


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
        ('<rect width="30" height="40" rx="90"/>', (0, 0, 30, 40)),
        ('<rect x="1px" y="1e1" width="+.5" height="2.5E1"/>', (1, 10, 1.5, 35)),
        ('<path d="m1 2c0 3 6 3 6 0z"/>', (1, 2, 7, 4.25)),
        ('<path d="M1e1.5l3-.5.5.5"/>', (10, 0, 13.5, 0.5)),
        ('<path d="M0 10a10 10 0 0110-10,10 10 0 0110 10"/>', (0, 0, 20, 10)),
        ('<path d="M0 0A0 5 0 0 1 20 10L5 5"/>', (0, 0, 20, 10)),
        ('<path d="M007 010h1"/>', (7, 10, 8, 10)),
        ('<g transform="scale(1e3)"><circle cx=".0124" r=".0124"/></g>', (0, -12.4, 24.8, 12.4)),
        ('<rect width="1" height="2" transform=" translate( 5-2 ) , scale(2)"/>', (5, -2, 7, 2)),
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
        '<rect width="1" height="1" transform="scale(-4 4)"/></g>'
    )
    assert (styled.fill, styled.stroke, styled.width) == ("#00ff00", "#000080", 2)
    assert (plain.fill, plain.stroke, plain.width) == ("#ff0000", "#000080", 3)
    assert (bare.fill, bare.stroke) == ("", "")
    assert wide.width == 3 * 4
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
    text = text.replace(
        '<g id="a b"',
        '<g inkscape:label="a b" id="g7" style="display:none" inkscape:groupmode="layer"',
    ).replace('<g id="real"', '<g id="real" display="none"')
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
        ('<rect style="OPACITY:.3"/>', "unsupported", ("opacity '.3'",)),
        ('<rect style="fill:red;/**/opacity:.3"/>', "unsupported", ("opacity",)),
        ('<rect style="scale:2"/>', "unsupported", ("'scale'", "remove it")),
        ('<rect style="width:2px"/>', "unsupported", ("'width'", "remove it")),
        ('<text style="font:bold 9px Sans">A</text>', "unsupported", ("'font'", "remove it")),
        ('<rect transform-origin="5 5"/>', "unsupported", ("transform-origin",)),
        ('<rect systemLanguage="de"/>', "unsupported", ("systemLanguage",)),
        ('<g><g display="none"/></g>', "unsupported", ("group 1", "hidden", "only layers")),
        ("<rect><set/></rect>", "unsupported", ("<set> in a shape",)),
        (
            '<g id="g7"><circle r="1" stroke="red" transform="scale(9 1)"/></g>',
            "unsupported",
            ("'g7'", "circle 1", "stretched", "to a path"),
        ),
        (f"<rect {ALL} transform='scale(0 1)'/>", "unsupported", ("no area",)),
        (f"<rect {ALL} stroke-width='-1'/>", "bad-value", ("stroke-width '-1'", "negative")),
        (f"<rect {ALL} stroke-width='1001'/>", "unsupported", ("stroke-width '1001'",)),
        (f"<rect {ALL} stroke-width='nan'/>", "bad-value", ("stroke-width 'nan'",)),
        (f"<rect {ALL} fill='hsv(0,0%,0%)'/>", "unknown-name", ("'hsv(0,0%,0%)'",)),
        (f"<rect {ALL} fill='rgb(300,0,0)'/>", "unknown-name", ("'rgb(300,0,0)'",)),
        ('<rect width="0" height="1"/>', "bad-value", ("width is 0",)),
        ('<rect width="-1" height="1"/>', "bad-value", ("width '-1'", "negative")),
        ('<rect width="\u00a01" height="1"/>', "bad-value", ("width",)),
        ('<rect width="1_0" height="1"/>', "bad-value", ("'1_0'",)),
        ('<rect width="\u0661" height="1"/>', "bad-value", ("'\u0661'",)),
        ('<circle r="-1"/>', "bad-value", ("r '-1'", "negative")),
        ('<ellipse rx="1" ry="0"/>', "bad-value", ("ry is 0",)),
        ('<rect width="1" height="1" rx="-1"/>', "bad-value", ("rx '-1'", "negative")),
        ('<polygon points="1 1 L 2 2"/>', "bad-value", ("points", "'1 1 L 2 2'")),
        ('<polygon points="1 1 2"/>', "bad-value", ("polygon 1", "3 numbers")),
        ('<path d="M0 0L1e7 0"/>', "bad-value", ("path 1", "1e+07 is too large")),
        ('<path d="M0 0L1 1,,2 2"/>', "bad-value", ("'1 1,,2 2'",)),
        ('<path d="M0 0L1. 1"/>', "bad-value", ("'1. 1'",)),
        ('<path d="M0 0L1 1 2"/>', "bad-value", ("L has 3 numbers",)),
        ('<path d="M0 0L"/>', "bad-value", ("L has no numbers",)),
        ('<path d="M0 0z1"/>', "bad-value", ("z has 1 numbers",)),
        ('<path d="M0 0A1 1 0 2 0 3 3"/>', "bad-value", ("seven numbers of an arc",)),
        (f'<path d="M0 0{"h1" * 5000}"/>', "bad-value", ("5001 points", "simplify")),
        (f'<path d="M0 0{"h1" * 5000}q"/>', "bad-value", ("M0 0h1h1", "…", "q has no numbers")),
        ('<rect transform="rotate(1deg)"/>', "bad-value", ("'1deg'",)),
        ('<rect transform="translate(1,,2)"/>', "bad-value", ("'1,,2'",)),
        ('<rect transform="scale(2),,scale(2)"/>', "unsupported", ("'scale(2),,scale(2)'",)),
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
        ('<text stroke="red">A</text>', "unsupported", ("text with a stroke",)),
        ('<text font-size="0">A</text>', "unsupported", ("font-size 0", "at least 9")),
        ('<text style="white-space:pre-line">A</text>', "unsupported", ("'pre-line'",)),
        (
            '<text xml:space="preserve"><tspan x="1" y="1">A</tspan> </text>',
            "unsupported",
            ("after a <tspan>",),
        ),
        ('<text><tspan transform="scale(2)">A</tspan></text>', "unsupported", ("transform",)),
        (
            '<text><tspan x="1" y="2">A</tspan><tspan x="3">B</tspan></text>',
            "unsupported",
            ("an x and a y",),
        ),
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
        (HEAD.replace("viewBox", "viewbox") + "</svg>", ("''", VIEW)),
        (HEAD + '<rect width="1" height="1"/></svg>', ("rect", "in no layer", "move it")),
        ('<?xml version="1.0" encoding="foo"?>' + HEAD + "</svg>", ("XML", "encoding")),
        ('<?xml version="1.0" encoding="utf-7"?>' + HEAD + "</svg>", ("XML", "encoding")),
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


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (HEAD.replace("<svg ", '<svg transform="scale(2)" ') + "</svg>", ("transform of <svg>",)),
        (HEAD.replace("<svg ", '<svg style="background:red" ') + "</svg>", ("background",)),
        ('<?xml-stylesheet href="a.css"?>' + HEAD + "</svg>", ("<?xml-stylesheet?>", "own fill")),
        (HEAD + "<defs><style>g {fill: red}</style></defs></svg>", ("<style>", "own fill")),
        (HEAD + "<g>" * 200_000 + "</g>" * 200_000 + "</svg>", ("64 elements", "ungroup")),
    ],
)
def test_what_changes_a_whole_file_is_refused(text: str, facts: tuple[str, ...]) -> None:
    with raises("unsupported", *facts, error=ShapeError):
        read_layers(text.encode())


@pytest.mark.parametrize("name", ["a\nb", "\x9b31m", "\u2028", "'"])
def test_a_message_is_one_short_line_whatever_the_names_are(name: str) -> None:
    label = quoteattr(name, {"\n": "&#10;"})
    for where in (f"<g id={label}><rect/></g>", f"<g id='a'><rect id={label}/></g>"):
        with raises("bad-value", "rect", "'width'", error=ShapeError) as caught:
            read_layers((HEAD + where + "</svg>").encode())
        assert str(caught.value).isprintable() and len(str(caught.value)) < 99


def test_files_are_read_in_other_encodings_and_with_other_spellings_of_the_view() -> None:
    text = drawn({"scene": '<rect width="1" height="1" fill=" red "/>'})
    expected = read_layers(text.encode())
    assert expected == read_layers(text.encode("utf-16")) == read_layers(text.encode("utf-8-sig"))
    assert expected == read_layers(text.replace(VIEW, "-1e2,-100.0,1200,1200").encode())


def test_spaces_in_a_text_are_read_as_browsers_draw_them() -> None:
    (shape,) = read('<text fill="red" stroke="red" stroke-width="0">\n A  B\n  C\u00a0</text>')
    assert shape.text == "A B C\u00a0"
    for kept in ('xml:space="preserve"', 'style="white-space:pre"'):
        (shape,) = read(f'<text {kept} font-size="50" x="10" fill="red"> A\n  B </text>')
        assert shape.text == " A   B " and shape.at[0] == 10 + text_width(" A   B ") * 25
        assert not read(f"<text {kept}> \n</text>")
    (shape,) = read('<g xml:space="preserve"><text xml:space="default" fill="red"> A </text></g>')
    assert shape.text == "A"


def test_a_stroke_may_be_stretched_by_no_more_than_is_seen() -> None:
    (shape,) = read(f'<rect {ALL} stroke="red" stroke-width="10" transform="scale(.99 1)"/>')
    assert shape.width == pytest.approx(10, abs=0.06)
    (shape,) = read(f'<rect {ALL} fill="red" stroke-width="10" transform="scale(.5 1)"/>')
    assert not shape.stroke


def test_a_stroke_of_width_0_is_none() -> None:
    (shape,) = read(f'<rect {ALL} stroke="red" stroke-width="0"/>')
    assert not shape.stroke


def test_opaque_styles_of_inkscape_are_read() -> None:
    style = (
        "font-variation-settings:normal;opacity:1;fill:#ff0000;fill-opacity:1;stroke:none;"
        "stroke-linejoin:bevel;stroke-miterlimit:4;stroke-dasharray:none;stroke-opacity:1;"
        "paint-order:fill markers stroke;-inkscape-stroke:none;stop-color:#000000;font-weight:400"
    )
    (shape,) = read(f'<rect {ALL} style="{style}"/>')
    assert shape.fill == "#ff0000"


def test_a_radius_that_is_missing_is_the_other() -> None:
    both, across, down = read(
        "".join(f"<rect width='9' height='9' {r}/>" for r in ("rx='2' ry='2'", "rx='2'", "ry='2'"))
    )
    assert both == across == down
    assert read("<rect width='9' height='9' rx='2' ry='0'/>") == read(
        "<rect width='9' height='9'/>"
    )


def test_many_layers_beside_each_other_are_not_deep() -> None:
    assert len(read_layers((HEAD + "<g/>" * 500 + "</svg>").encode())) == 500


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("direction", "rtl"),
        ("writing-mode", "tb"),
        ("baseline-shift", "super"),
        ("alignment-baseline", "hanging"),
        ("letter-spacing", "3px"),
        ("word-spacing", "3px"),
        ("font-style", "italic"),
        ("font-variant", "small-caps"),
        ("font-stretch", "condensed"),
        ("text-transform", "uppercase"),
        ("text-decoration-line", "underline"),
        ("paint-order", "stroke"),
        ("vector-effect", "non-scaling-stroke"),
        ("mix-blend-mode", "multiply"),
        ("visibility", "hidden"),
        ("filter", "url(#f)"),
        ("mask", "url(#m)"),
        ("marker-end", "url(#m)"),
    ],
)
def test_properties_with_another_value_are_refused(name: str, value: str) -> None:
    for written in (f'{name}="{value}"', f'style="{name}:{value}"'):
        with raises("unsupported", "text t1", name, value, "only", error=ShapeError):
            read(f'<text id="t1" {written} fill="red">A</text>')


def red_columns(content: str, style: VectorStyle = "flat") -> int:
    """How many columns of an image have a pixel of the shape's color, or of ink."""
    image = VectorImage(parts=(), scene=tuple(read(content)), ground="white", style=style)
    return int((np.asarray(draw_vector(image))[..., 1] < 128).any(axis=0).sum())


def test_corners_of_strokes_are_round() -> None:
    sharp = "<polyline points='200,400 500,500 200,600' stroke='red' stroke-width='100'/>"
    line = "<line x1='200' y1='500' x2='500' y2='500' stroke='red' stroke-width='100'/>"
    # Round, the corner is half a width longer; sharp, it would be one and a half.
    assert 10 <= red_columns(sharp) - red_columns(line) <= 25


def test_lines_in_one_color_are_as_wide_as_drawn_but_for_thin_ones() -> None:
    def line(width: int) -> str:
        return f"<line x1='500' y1='200' x2='500' y2='800' stroke='red' stroke-width='{width}'/>"

    assert red_columns(line(100), "ink") == red_columns(line(100)) > 30
    assert red_columns(line(1), "ink") == red_columns(line(6)) > red_columns(line(1))


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
