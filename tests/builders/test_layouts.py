"""Layouts that code recomputes: facts that anyone can look up, and what bad checks get."""

from typing import Any

import pytest

from counterprior.builders.layouts import LAYOUTS, LayoutError, coordinates, verify_check

TRUE: list[dict[str, Any]] = [
    {"layout": "qwerty", "left": "Q", "right": "P"},
    {"layout": "qwerty", "left": "Tab", "right": "Backspace"},
    {"layout": "azerty", "left": "A", "right": "Z"},
    {"layout": "azerty", "left": "L", "right": "M"},
    {"layout": "qwertz", "left": "T", "right": "Z"},
    {"layout": "qwertz", "left": "Y", "right": "X"},
    {"layout": "dvorak", "left": "A", "right": "S"},
    {"layout": "numpad", "left": "7", "right": "9"},
    {"layout": "phone_keypad", "left": "*", "right": "#"},
    {"layout": "calculator", "left": "4", "right": "*"},
    {"layout": "number_line", "left": "-3", "right": "0.5"},
    {"layout": "piano", "left": "F#3", "right": "Bb3"},
    {"layout": "piano", "left": "B3", "right": "C4"},
    {"layout": "clock", "left": "9", "right": "3"},
    {"layout": "clock", "left": "11", "right": "1"},
    {"layout": "chess_white", "left": "a8", "right": "h1"},
    {"layout": "chess_black", "left": "h1", "right": "a8"},
    {"layout": "dartboard", "left": "11", "right": "6"},
    {"layout": "compass", "left": "W", "right": "NE"},
    {"layout": "periodic_table", "left": "Na", "right": "Cl"},
    {"layout": "periodic_table", "left": "Fe", "right": "Cu"},
    {"layout": "flag_vertical_bands", "flag": "FR", "left": "blue", "right": "red"},
    {"layout": "flag_vertical_bands", "flag": "BE", "left": "black", "right": "yellow"},
    {"layout": "ascending", "left": "violet", "right": "red", "value": [400, 700], "axis": "nm"},
    {"layout": "world_map", "left": "Lisbon", "right": "Athens", "lon": [-9.14, 23.73]},
    {"layout": "descending", "left": "TMS", "right": "x", "value": [5, 0], "axis": "ppm"},
    {"layout": "sequence", "left": "F", "right": "K", "order": "OBAFGKM"},
    {"layout": "sequence", "left": "5'", "right": "3'", "order": ["5'", "3'"]},
    {
        "layout": "reading_order",
        "left": "Edit",
        "right": "Help",
        "items": ["File", "Edit", "Help"],
        "direction": "ltr",
    },
    {
        "layout": "reading_order",
        "left": "green",
        "right": "red",
        "items": ["red", "green"],
        "direction": "rtl",
    },
    {"layout": "spreadsheet_columns", "left": "Z", "right": "AA", "direction": "ltr"},
    {"layout": "spreadsheet_columns", "left": "F", "right": "B", "direction": "rtl"},
    {
        "layout": "own_side",
        "left": "liver",
        "right": "spleen",
        "own": [1, -1],
        "seen_from": "front",
    },
    {
        "layout": "own_side",
        "left": "port",
        "right": "starboard",
        "own": [-1, 1],
        "seen_from": "behind",
    },
    {
        "layout": "hoist_order",
        "left": "canton",
        "right": "fly",
        "hoist": [0.2, 0.9],
        "face": "obverse",
    },
    {
        "layout": "hoist_order",
        "left": "fly",
        "right": "canton",
        "hoist": [0.9, 0.2],
        "face": "reverse",
    },
    {"layout": "book_spread", "left": "12", "right": "13", "binding": "ltr"},
    {"layout": "book_spread", "left": "13", "right": "12", "binding": "rtl"},
    {"layout": "tooth_chart", "left": "48", "right": "38", "system": "FDI"},
    {"layout": "tooth_chart", "left": "18", "right": "11", "system": "FDI"},
    {"layout": "tooth_chart", "left": "32", "right": "17", "system": "universal"},
    {"layout": "tooth_chart", "left": "A", "right": "J", "system": "universal_primary"},
    {
        "layout": "resistor_bands",
        "left": "yellow",
        "right": "gold",
        "ohms": 4700,
        "tolerance": "gold",
    },
    {"layout": "dip_package", "left": 1, "right": 14, "pins": 14, "notch": "up", "view": "top"},
    {"layout": "dip_package", "left": 8, "right": 1, "pins": 8, "notch": "up", "view": "bottom"},
    {"layout": "thin_lens", "left": "object", "right": "image", "f": 10, "object_distance": 30},
    {"layout": "thin_lens", "left": "image", "right": "object", "f": 10, "object_distance": 6},
    {
        "layout": "lateral_marks",
        "left": "red",
        "right": "green",
        "region": "A",
        "travel": "entering",
    },
    {
        "layout": "lateral_marks",
        "left": "red",
        "right": "green",
        "region": "B",
        "travel": "leaving",
    },
    {"layout": "key_position", "left": "a", "right": "b", "x": [1, 2], "board": "104 keys"},
    {"layout": "reaction", "left": "CH4", "right": "CO2", "equation": "CH4 + 2 O2 -> CO2 + 2 H2O"},
    {"layout": "bearing", "left": "270", "right": "90", "value": [270, 90]},
    {"layout": "runway", "left": "09", "right": "27"},
    {"layout": "sky", "left": "Betelgeuse", "right": "Bellatrix", "ra_h": [5.92, 5.42], "up": "N"},
    {"layout": "sky", "left": "a", "right": "b", "ra_h": [23.9, 0.1], "up": "S"},
    {
        "layout": "moon_phase",
        "left": "dark",
        "right": "lit",
        "phase": "first quarter",
        "hemisphere": "N",
    },
    {"layout": "polar_north", "left": "America", "right": "Asia", "lon": [-100, 95], "down": 0},
    {"layout": "calendar_week", "left": "Sun", "right": "Sat", "start": "Sun"},
    {"layout": "calendar_week", "left": "Sat", "right": "Sun", "start": "Mon"},
]


@pytest.mark.parametrize(
    "check", TRUE, ids=[f"{i}-{c['layout']}-{c['left']}-{c['right']}" for i, c in enumerate(TRUE)]
)
def test_a_true_check_passes_and_its_mirror_fails(check: dict[str, Any]) -> None:
    verify_check(check)
    mirrored = check | {"left": check["right"], "right": check["left"]}
    for values in ("value", "lon", "x", "ra_h", "own", "hoist"):
        if values in check:
            mirrored[values] = check[values][::-1]
    with pytest.raises(LayoutError, match="is not left of"):
        verify_check(mirrored)


def test_every_layout_is_tested() -> None:
    assert {check["layout"] for check in TRUE} == set(LAYOUTS)


@pytest.mark.parametrize(
    "check",
    [
        {"layout": "qwerty", "left": "Q", "right": "?"},
        {"layout": "clock", "left": "0", "right": "13"},
        {"layout": "chess_white", "left": "i1", "right": "a1"},
        {"layout": "periodic_table", "left": "Xx", "right": "H"},
        {"layout": "flag_vertical_bands", "flag": "NG", "left": "green", "right": "white"},
        {"layout": "flag_vertical_bands", "flag": "XX", "left": "green", "right": "white"},
        {"layout": "ascending", "left": "a", "right": "b", "value": [1], "axis": "x"},
        {"layout": "ascending", "left": "a", "right": "b", "value": [1, 2], "axis": ""},
        {"layout": "world_map", "left": "a", "right": "b", "lon": [10, 12]},
        {"layout": "number_line", "left": "one", "right": "2"},
        {"layout": "heart", "left": "a", "right": "b"},
        {"layout": "qwerty", "left": "Q"},
    ],
)
def test_a_check_that_can_not_be_computed_says_why(check: dict[str, Any]) -> None:
    with pytest.raises(LayoutError, match=check["layout"]):
        coordinates(check)


def test_vertical_neighbors_have_no_left() -> None:
    with pytest.raises(LayoutError):
        verify_check({"layout": "clock", "left": "12", "right": "6"})
    with pytest.raises(LayoutError):
        verify_check({"layout": "periodic_table", "left": "H", "right": "Li"})
