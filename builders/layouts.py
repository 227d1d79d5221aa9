"""Layouts that code can recompute: each gives the horizontal coordinates of a pair's things.

A bank entry cites one in `check`; the build fails if the coordinates contradict the entry.
Coordinates grow to the viewer's right. Their units depend on the layout; only their order counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import DataError

LayoutCheck = Mapping[str, Any]


class LayoutError(DataError):
    """A check that names an unknown layout or key, or contradicts the coordinates."""


def coordinates(check: LayoutCheck) -> tuple[float, float]:
    """Horizontal coordinates of a check's left and right thing.

    >>> coordinates({"layout": "qwerty", "left": "Q", "right": "P"})
    (2.0, 11.0)

    Raises LayoutError for an unknown layout, key or a missing value.
    """
    layout = check.get("layout")
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise LayoutError(f"layout {layout!r} is unknown: choose from {', '.join(sorted(LAYOUTS))}")
    try:
        return LAYOUTS[layout](check)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise LayoutError(f"check {dict(check)}: {error!r} is no key of layout {layout}") from None


def verify_check(check: LayoutCheck) -> None:
    """Raises LayoutError unless the left thing's coordinate is smaller than the right one's."""
    left, right = coordinates(check)
    if not left < right:
        raise LayoutError(
            f"check {dict(check)}: {check.get('left')} at {left:g} is not left of "
            f"{check.get('right')} at {right:g}"
        )


def _keys(positions: Mapping[str, float]) -> Callable[[LayoutCheck], tuple[float, float]]:
    return lambda check: (positions[str(check["left"])], positions[str(check["right"])])


def _function(position: Callable[[str], float]) -> Callable[[LayoutCheck], tuple[float, float]]:
    return lambda check: (position(str(check["left"])), position(str(check["right"])))


def _row(keys: str, start: float) -> dict[str, float]:
    return {key: start + i for i, key in enumerate(keys)}


_FUNCTION_KEYS = {f"F{n}": 1.5 + n + 0.5 * ((n - 1) // 4) for n in range(1, 13)}
# Centers on a full-size board, in key widths, rows staggered by 0.5, 0.25 and 0.5.
_FRAME = {
    **{"Esc": 0.5, "Tab": 0.75, "CapsLock": 0.875, "Shift_L": 1.125, "Ctrl_L": 0.625},
    **{"Space": 6.875, "Backspace": 14.0, "Enter": 13.875, "Shift_R": 13.625, "Ctrl_R": 14.375},
    **_FUNCTION_KEYS,
}


def _board(top: str, home: str, bottom: str) -> dict[str, float]:
    digits = _row("1234567890", 1.5)
    return {**_FRAME, **digits, **_row(top, 2.0), **_row(home, 2.25), **_row(bottom, 2.75)}


_QWERTY = _board("QWERTYUIOP", "ASDFGHJKL", "ZXCVBNM")
_BOARDS = {
    "qwerty": _QWERTY,
    # The key between the left shift and the bottom row's first letter moves that row by one.
    "azerty": {
        **_QWERTY,
        **_row("AZERTYUIOP", 2.0),
        **_row("QSDFGHJKLM", 2.25),
        **_row("WXCVBN", 2.75),
    },
    "qwertz": {**_QWERTY, "Z": _QWERTY["Y"], "Y": _QWERTY["Z"]},
    "dvorak": _board("',.PYFGCRL", "AOEUIDHTNS", ";QJKXBMWVZ"),
}


def _pad(*rows: str) -> dict[str, float]:
    return {key: float(x) for row in rows for x, key in enumerate(row.split())}


_NUMPAD = {**_pad("_ / * -", "7 8 9 +", "4 5 6", "1 2 3 Enter"), "0": 0.5, ".": 2.0}
_PHONE = _pad("1 2 3", "4 5 6", "7 8 9", "* 0 #")
_CALCULATOR = _pad("7 8 9 /", "4 5 6 *", "1 2 3 -", "0 . = +")

_SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def _pitch(note: str) -> float:
    """Semitones above C0, e.g. of `F#3`."""
    accidental = {"#": 1, "b": -1}.get(note[1], 0)
    octave = int(note[2:] if accidental else note[1:])
    return float(12 * octave + _SEMITONES[note[0]] + accidental)


def _sine(degrees: float) -> float:
    return round(math.sin(math.radians(degrees)), 9)


def _clock(hour: str) -> float:
    number = int(hour)
    if not 1 <= number <= 12:
        raise ValueError(hour)
    return _sine(30 * number)


def _chess(square: str, sign: int) -> float:
    if len(square) != 2 or square[0] not in "abcdefgh" or square[1] not in "12345678":
        raise ValueError(square)
    return sign * float("abcdefgh".index(square[0]))


_DARTS = [20, 1, 18, 4, 13, 6, 10, 15, 2, 17, 3, 19, 7, 16, 8, 11, 14, 9, 12, 5]


def _dartboard(sector: str) -> float:
    return _sine(18 * _DARTS.index(int(sector)))


_WINDS = ("N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW").split()


def _compass(point: str) -> float:
    return _sine(22.5 * _WINDS.index(point))


_PERIODS = [
    "H . . . . . . . . . . . . . . . . He",
    "Li Be . . . . . . . . . . B C N O F Ne",
    "Na Mg . . . . . . . . . . Al Si P S Cl Ar",
    "K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr",
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe",
    "Cs Ba . Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn",
    "Fr Ra . Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og",
]
_GROUPS = {
    symbol: float(group)
    for period in _PERIODS
    for group, symbol in enumerate(period.split(), 1)
    if symbol != "."
}

_VERTICAL_BANDS = {
    **{"FR": "blue white red", "IT": "green white red", "IE": "green white orange"},
    **{"BE": "black yellow red", "RO": "blue yellow red", "TD": "blue yellow red"},
    **{"ML": "green yellow red", "GN": "red yellow green", "CI": "orange white green"},
    **{"NG": "green white green", "PE": "red white red", "MX": "green white red"},
    **{"AD": "blue yellow red", "MD": "blue yellow red", "SN": "green yellow red"},
    **{"CM": "green red yellow", "CA": "red white red"},
}
"""Vertical bands from the hoist to the fly, obverse, hoist at the viewer's left."""


def _flag(check: LayoutCheck) -> tuple[float, float]:
    bands = _VERTICAL_BANDS[check["flag"]].split()
    names = (str(check["left"]), str(check["right"]))
    if any(bands.count(name) != 1 for name in names):
        raise ValueError(f"band of {check['flag']}")
    return float(bands.index(names[0])), float(bands.index(names[1]))


def _ascending(check: LayoutCheck) -> tuple[float, float]:
    if not check["axis"]:
        raise ValueError("axis")
    left, right = check["value"]
    return float(left), float(right)


_MINIMUM_DEGREES = 3.0


def _world_map(check: LayoutCheck) -> tuple[float, float]:
    left, right = (float(degrees) for degrees in check["lon"])
    if not (-180 <= left <= 180 and -180 <= right <= 180) or abs(left - right) < _MINIMUM_DEGREES:
        raise ValueError(f"lon {left:g}, {right:g} (needs {_MINIMUM_DEGREES:g} degrees apart)")
    return left, right


def _descending(check: LayoutCheck) -> tuple[float, float]:
    """An axis that by convention falls to the right, e.g. chemical shift."""
    left, right = _ascending(check)
    return -left, -right


def _sequence(check: LayoutCheck) -> tuple[float, float]:
    """Places in an order from left to right: a list of labels, or a string of characters."""
    order = [str(label) for label in check["order"]]
    names = (str(check["left"]), str(check["right"]))
    if any(order.count(name) != 1 for name in names):
        raise ValueError(f"order {order}")
    return float(order.index(names[0])), float(order.index(names[1]))


def _direction(check: LayoutCheck) -> int:
    return {"ltr": 1, "rtl": -1}[check["direction"]]


def _reading_order(check: LayoutCheck) -> tuple[float, float]:
    """Places in a reading order that runs to the right (`ltr`) or to the left (`rtl`)."""
    left, right = _sequence({**check, "order": check["items"]})
    return left * _direction(check), right * _direction(check)


def _spreadsheet_columns(check: LayoutCheck) -> tuple[float, float]:
    """Numbers of columns A, B, ..., Z, AA, ..."""

    def number(letters: str) -> int:
        total = 0
        for letter in letters:
            total = 26 * total + "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(letter) + 1
        return total * _direction(check)

    return float(number(check["left"])), float(number(check["right"]))


def _hoist_order(check: LayoutCheck) -> tuple[float, float]:
    """Shares of a flag's length from the hoist, which is at the left of the obverse."""
    sign = {"obverse": 1, "reverse": -1}[check["face"]]
    left, right = check["hoist"]
    return float(sign * left), float(sign * right)


def _book_spread(check: LayoutCheck) -> tuple[float, float]:
    """Facing pages of a book: the even one is left if the binding is `ltr`, right if `rtl`."""
    even = {"ltr": -1.0, "rtl": 1.0}[check["binding"]]
    left, right = (int(check[side]) for side in ("left", "right"))
    if abs(left - right) != 1 or min(left, right) % 2:
        raise ValueError(f"pages {left} and {right} do not face each other")
    return (even, -even) if left % 2 == 0 else (-even, even)


_SEEN_FROM = {"front": -1, "behind": 1, "above": 1, "below": -1, "own_left": -1, "own_right": 1}
"""Whether the body's own coordinate grows to the viewer's right; from above its front is up."""


def _own_side(check: LayoutCheck) -> tuple[float, float]:
    """Coordinates of a body: to its own right, or, where it is seen from a side, forward."""
    sign = _SEEN_FROM[check["seen_from"]]
    left, right = check["own"]
    return float(sign * left), float(sign * right)


def _tooth_chart(check: LayoutCheck) -> tuple[float, float]:
    """Teeth on a chart of a patient who faces the viewer."""

    def fdi(tooth: str) -> float:
        # Quadrants 1 and 4 are the patient's right, places are counted from the middle.
        return float(int(tooth[1:]) * {"1": -1, "2": 1, "3": 1, "4": -1}[tooth[0]])

    def counted(number: int, teeth: int) -> float:
        # The upper row is counted to the viewer's right, the lower one back again.
        if not 1 <= number <= teeth:
            raise ValueError(number)
        return float(number if number <= teeth // 2 else teeth + 1 - number)

    place: dict[str, Callable[[str], float]] = {
        "FDI": fdi,
        "universal": lambda tooth: counted(int(tooth), 32),
        "universal_primary": lambda tooth: counted("ABCDEFGHIJKLMNOPQRST".index(tooth) + 1, 20),
    }
    where = place[check["system"]]
    return where(str(check["left"])), where(str(check["right"]))


_COLORS = "black brown red orange yellow green blue violet gray white".split()


def _resistor_bands(check: LayoutCheck) -> tuple[float, float]:
    """Bands of a four-band resistor, read from the first digit at the left."""
    digits = f"{int(check['ohms'])}"
    first, second, zeros = digits[0], digits[1], len(digits) - 2
    if set(digits[2:]) - {"0"}:
        raise ValueError(f"ohms {digits}")
    bands = [_COLORS[int(first)], _COLORS[int(second)], _COLORS[zeros], check["tolerance"]]
    return _sequence({**check, "order": bands})


def _dip_package(check: LayoutCheck) -> tuple[float, float]:
    """Pins of an integrated circuit, notch up: counted counter-clockwise from above."""
    pins = int(check["pins"])
    if check["notch"] != "up" or pins % 2:
        raise ValueError(f"pins {pins}, notch {check['notch']}")
    mirrored = {"top": 1, "bottom": -1}[check["view"]]

    def place(pin: int) -> float:
        if not 1 <= pin <= pins:
            raise ValueError(pin)
        return float(mirrored * (-1 if pin <= pins // 2 else 1))

    return place(int(check["left"])), place(int(check["right"]))


def _thin_lens(check: LayoutCheck) -> tuple[float, float]:
    """Object and image of a lens at 0, light travelling to the right."""
    distance, focal = float(check["object_distance"]), float(check["f"])
    places = {"object": -distance, "image": 1 / (1 / focal - 1 / distance)}
    return places[check["left"]], places[check["right"]]


def _lateral_marks(check: LayoutCheck) -> tuple[float, float]:
    """Colors of the channel's sides for a vessel; port is left (IALA regions A and B)."""
    port = {"A": "red", "B": "green"}[check["region"]]
    sign = {"entering": 1, "leaving": -1}[check["travel"]]
    if {check["left"], check["right"]} != {"red", "green"}:
        raise ValueError("red and green")
    left, right = (-sign if check[side] == port else sign for side in ("left", "right"))
    return float(left), float(right)


def _key_position(check: LayoutCheck) -> tuple[float, float]:
    """Centers of keys on the named board, in key widths from its left edge."""
    if not check["board"]:
        raise ValueError("board")
    left, right = check["x"]
    return float(left), float(right)


def _reaction(check: LayoutCheck) -> tuple[float, float]:
    """0 for a reactant, 1 for a product of ``a A + b B -> c C``."""
    sides = [
        [term.split()[-1] for term in side.split(" + ")] for side in check["equation"].split("->")
    ]
    reactants, products = sides

    def place(species: str) -> float:
        if (species in reactants) == (species in products):
            raise ValueError(species)
        return float(species in products)

    return place(str(check["left"])), place(str(check["right"]))


def _bearing(check: LayoutCheck) -> tuple[float, float]:
    """Bearings in degrees, clockwise from the top."""
    left, right = check["value"]
    return _sine(left), _sine(right)


def _runway(designator: str) -> float:
    """The end with this number lies opposite to the heading that the number names."""
    return -_sine(10 * int(designator.rstrip("LCR")))


def _sky(check: LayoutCheck) -> tuple[float, float]:
    """Right ascension in hours; it grows to the left with north up, to the right with south up."""
    left, right = check["ra_h"]
    eastward = (left - right + 12) % 24 - 12
    if {"N": False, "S": True}[check["up"]]:
        eastward = -eastward
    return 0.0, float(eastward)


def _moon_phase(check: LayoutCheck) -> tuple[float, float]:
    """The lit half seen upright, at the right in a northern first quarter."""
    lit = {"first quarter": 1.0, "last quarter": -1.0}[check["phase"]]
    lit *= {"N": 1, "S": -1}[check["hemisphere"]]
    place = {"lit": lit, "dark": -lit}
    return place[check["left"]], place[check["right"]]


def _polar_north(check: LayoutCheck) -> tuple[float, float]:
    """Longitudes round the North Pole, with the meridian `down` pointing down."""
    left, right = check["lon"]
    return _sine(left - check["down"]), _sine(right - check["down"])


_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def _calendar_week(check: LayoutCheck) -> tuple[float, float]:
    start = _DAYS.index(check["start"])
    left, right = (_DAYS.index(check[side]) for side in ("left", "right"))
    return float((left - start) % 7), float((right - start) % 7)


LAYOUTS: dict[str, Callable[[LayoutCheck], tuple[float, float]]] = {
    **{name: _keys(board) for name, board in _BOARDS.items()},
    "numpad": _keys(_NUMPAD),
    "phone_keypad": _keys(_PHONE),
    "calculator": _keys(_CALCULATOR),
    "number_line": _function(float),
    "piano": _function(_pitch),
    "clock": _function(_clock),
    "chess_white": _function(lambda square: _chess(square, 1)),
    "chess_black": _function(lambda square: _chess(square, -1)),
    "dartboard": _function(_dartboard),
    "compass": _function(_compass),
    "periodic_table": _keys(_GROUPS),
    "flag_vertical_bands": _flag,
    "ascending": _ascending,
    "descending": _descending,
    "sequence": _sequence,
    "reading_order": _reading_order,
    "spreadsheet_columns": _spreadsheet_columns,
    "own_side": _own_side,
    "hoist_order": _hoist_order,
    "book_spread": _book_spread,
    "tooth_chart": _tooth_chart,
    "resistor_bands": _resistor_bands,
    "dip_package": _dip_package,
    "thin_lens": _thin_lens,
    "lateral_marks": _lateral_marks,
    "key_position": _key_position,
    "reaction": _reaction,
    "bearing": _bearing,
    "runway": _function(_runway),
    "sky": _sky,
    "moon_phase": _moon_phase,
    "polar_north": _polar_north,
    "world_map": _world_map,
    "calendar_week": _calendar_week,
}
"""Every layout by name; a check holds `layout`, `left`, `right` and what the layout needs."""
