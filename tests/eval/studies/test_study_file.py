"""A study file is read strictly: each fault by file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.studies.spec import (
    StudyError,
    cells_of,
    parse_study,
    read_study,
    write_study,
)

GOOD = """\
data: rel
suites:
  t2i_homogenization: {limit: 2}
  t2i_correctness: {seeds: 2, probes: [swap]}
generators:
  a: "render:"
  b: "render:?order_bias=1"
judges:
  p: pixels
  q: "openai:m"
probes: [mirror]
"""


def but(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def table(column: str, *more: str) -> str:
    """The study with a table of one column, whose line is 15."""
    return "\n  ".join([GOOD + "table:", "title: t", f"columns:\n  - {column}", *more]) + "\n"


FAULTS = {
    "another key": (GOOD + "probe: [swap]\n", "unknown-field", [":12: probe", "probes"]),
    "a mapping for a key": (but("generators:", "? {generators: 1}\n:"), "bad-yaml", [":5"]),
    "a key twice": (but("b:", "a:"), "duplicate-id", [":7: generators.a", "line 6"]),
    "no YAML": (but('"render:"', '"render:'), "bad-yaml", [":7"]),
    "missing": (but("data: rel\n", ""), "missing-field", [": data"]),
    "missing for one suite": (
        but("data: rel\n", "").replace("{limit: 2}", "{data: own.txt, limit: 2}"),
        "missing-field",
        [": data"],
    ),
    "rows of some cells alone": (
        GOOD + 'except:\n  - {generator: a, data: "own.txt"}\n',
        "unknown-field",
        ["except.0.data"],
    ),
    "a number": (
        but("limit: 2", "limit: 0"),
        "out-of-range",
        [":3: suites.t2i_homogenization.limit"],
    ),
    "no number": (
        but("seeds: 2", "seeds: all"),
        "wrong-type",
        [":4: suites.t2i_correctness.seeds"],
    ),
    "too many seeds of its own": (
        but("seeds: 2", "seeds: 5"),
        "out-of-range",
        [":4: suites.t2i_correctness.seeds", "1 to 4"],
    ),
    "a seed twice": (
        but("seeds: 2", "seeds: [0, 1, 0]"),
        "bad-value",
        [":4: suites.t2i_correctness.seeds", "different seeds"],
    ),
    "a setting": (but("seeds", "seds"), "unknown-field", [":4: suites.t2i_correctness.seds"]),
    "a suite": (but("t2i_corr", "t2i_cor"), "unknown-name", [":4: suites.t2i_corectness"]),
    "a control": (
        but("[mirror]", "[miror]"),
        "unknown-name",
        [":11: probes.0", "'mirror'", "'swap'"],
    ),
    "a kind": (
        but('"render:"', '"rendr:"'),
        "unknown-name",
        [":6: generators.a", "'rendr'", "render?"],
    ),
    "a judge": (but("pixels", "pixel"), "unknown-name", [":9: judges.p", "'pixel'", "pixels?"]),
    "a name": (but("  a:", "  a/b:"), "bad-name", [":6: generators.a/b"]),
    "case": (but("  b:", "  A:"), "duplicate-id", [":7: generators.A", "'a'"]),
    "one judge twice": (but('"openai:m"', "pixels"), "duplicate-id", [":10: judges.q", "'p'"]),
    "no list": (
        but("probes: [mirror]", "probes: mirror"),
        "wrong-type",
        [":11: probes: should be a list: write [mirror]"],
    ),
    "no settings": (but(" {limit: 2}", ""), "wrong-type", [":3: suites.t2i_homogenization"]),
    "a pattern": (
        GOOD + "except:\n- {judge: r}\n",
        "unknown-name",
        [":13: except.0.judge", "'r'", "p, q"],
    ),
    "a key of a pattern": (GOOD + "only:\n- {sute: x}\n", "unknown-field", [":13: only.0.sute"]),
    "nothing left": (GOOD + "except:\n- {judge: '*'}\n", "nothing-to-do", []),
    "images by judge": (
        GOOD + "except:\n- {judge: p, seeds: 3}\n",
        "conflicting-options",
        [":13: except.0.judge"],
    ),
    "labels": (
        GOOD + "labels: {t2i_homogenisation: x}\n",
        "unknown-name",
        [":12: labels.t2i_homogenisation"],
    ),
    "a column": (
        GOOD
        + "table:\n  title: t\n  columns:\n  - {suite: t2i_correctness, score: hom, label: x}\n",
        "unknown-name",
        [":15: table.columns.0.score", "'hom'"],
    ),
    "a scorer": (
        GOOD + "scorers:\n  a: 'picscore:'\n",
        "unknown-name",
        [":13: scorers.a", "'picscore'", "pickscore"],
    ),
    "a margin": (
        GOOD + "margins: {order_bais: 5}\n",
        "unknown-name",
        [":12: margins.order_bais", "did you mean order_bias?"],
    ),
    "a negative margin": (
        GOOD + "margins: {order_bias: -5}\n",
        "out-of-range",
        [":12: margins.order_bias"],
    ),
    "a judge's name": (
        GOOD + "scorers:\n  P: 'pickscore:'\n",
        "duplicate-id",
        [":13: scorers.P"],
    ),
    "a column of a scorer": (
        GOOD
        + "table:\n  title: t\n  columns:\n"
        + "  - {suite: t2i_correctness, score: 'scorer:x', label: x}\n",
        "unknown-name",
        [":15: table.columns.0.score", "'x'"],
    ),
    "a score of a kind": (
        table("{suite: t2i_correctness, score: 'people:luck', label: x}"),
        "unknown-name",
        [":15: table.columns.0.score", "'people:luck'", "people:kappa"],
    ),
    "a line's score": (
        table("{suite: t2i_correctness, score: delta, label: x}", "lines: {a: {score: hom}}"),
        "unknown-name",
        [":16: table.lines.a", "'hom'"],
    ),
    "a key of a line": (
        table("{suite: t2i_correctness, score: delta, label: x}", "lines: {a: {metod: m}}"),
        "unknown-field",
        [":16: table.lines.a.metod", "method"],
    ),
    "suites that can't be pooled": (
        table(
            "{suite: [t2i_correctness, t2i_homogenization], score: 'switched:hom:plain', label: x}"
        ),
        "cannot-pool",
        [":15: table.columns.0.suite", "switched:hom:plain"],
    ),
    "suites of a line with several conditions": (
        table(
            "{suite: [t2i_correctness, t2i_homogenization], score: 'dose:gain:60/90', label: x}",
            "lines: {a: {generator: [a, b]}}",
        ),
        "cannot-pool",
        [":16: table.lines.a", "dose:gain:60/90"],
    ),
    "generators that can't be pooled": (
        table("{suite: t2i_correctness, score: delta, label: x}", "pooled: true", "rows: judge"),
        "cannot-pool",
        [":15: table.columns.0.score"],
    ),
    "generators that are pooled as lines": (
        table("{suite: t2i_correctness, score: 'people:kappa', label: x}", "pooled: true"),
        "cannot-pool",
        [":16: table.pooled", "judges"],
    ),
    "a column without a suite": (
        table("{score: delta, label: x}"),
        "missing-field",
        [":15: table.columns.0.suite"],
    ),
    "a suite of a corpus": (
        table("{suite: t2i_correctness, score: pairs, label: x}", "rows: corpus"),
        "unknown-name",
        [":15: table.columns.0.score"],
    ),
    "corpora alone": ("corpora: {a: x}\njudges: {p: pixels}\n", "missing-field", [": data"]),
    "money": (GOOD + "max_usd: -1\n", "out-of-range", [":12: max_usd"]),
    "empty": ("", "wrong-type", []),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_file_line_and_field(name: str) -> None:
    text, code, facts = FAULTS[name]
    with raises(code, "my.yaml", *facts, error=StudyError) as caught:
        parse_study(text, "my.yaml")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with raises("no-such-file", "gone.yaml", error=StudyError):
        read_study(tmp_path / "gone.yaml")


def test_cells_are_the_cross_product_with_exceptions() -> None:
    more = """
only:
- {suite: t2i_homogenization}
- {suite: t2i_correctness, generator: a}
except:
- {generator: b, judge: q}
- {suite: t2i_c*, seeds: 4, spec: "render:?missing=1"}
- {judge: q, persona: strict, probes: []}
"""
    cells = {
        (c.suite, c.generator, c.judge): (c.limit, c.seeds, c.probes, c.persona, c.spec)
        for c in cells_of(parse_study(GOOD + more, "s"))
    }
    hom, cor = "t2i_homogenization", "t2i_correctness"
    assert cells == {
        (hom, "a", "p"): (2, 1, ("mirror",), "standard", "render:"),
        (hom, "a", "q"): (2, 1, (), "strict", "render:"),
        (cor, "a", "p"): (None, 4, ("swap",), "standard", "render:?missing=1"),
        (cor, "a", "q"): (None, 4, (), "strict", "render:?missing=1"),
        (hom, "b", "p"): (2, 1, ("mirror",), "standard", "render:?order_bias=1"),
    }


@given(
    limit=st.none() | st.integers(1, 9),
    names=st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,8}", fullmatch=True), min_size=1),
    left_out=st.booleans(),
)
def test_a_written_study_is_read_as_the_same(
    limit: int | None, names: list[str], left_out: bool
) -> None:
    study = parse_study(GOOD, "s")
    found = study.model_copy(
        update={
            "generators": {name.lower(): "render:" for name in names} | {"z-last": "render:"},
            "suites": {"t2i_correctness": study.suites["t2i_correctness"]},
            "exceptions": parse_study(
                GOOD + f"except: [{{generator: b{'' if left_out else ', seeds: 3'}}}]\n", "s"
            ).exceptions
            if "b" in names
            else (),
        }
    )
    assert parse_study(write_study(found), "again") == found


def test_a_suite_may_name_its_own_rows() -> None:
    own = but("{limit: 2}", '{data: "own.csv?benchmark=hrs", limit: 2}')
    study = parse_study(own, "s.yaml")
    of = {suite: study.data_of(suite) for suite in study.suites}
    assert of == {"t2i_homogenization": "own.csv?benchmark=hrs", "t2i_correctness": "rel"}
    assert {cell.limit for cell in cells_of(study)} == {2, None}
    changed = parse_study(
        own, "s", ["suites.t2i_correctness.data=p=1.csv?benchmark=visor", "data="]
    )
    assert changed.data_of("t2i_correctness") == "p=1.csv?benchmark=visor" and not changed.data


def test_changes_take_the_place_of_entries() -> None:
    changes = [
        "generators.a=render:",
        "generators.b=",
        "suites.t2i_correctness.limit=7",
        "probes=[]",
        "judges.SD3.5=boxes:x",
    ]
    found = parse_study(GOOD, "s", changes)
    assert found.generators == {"a": "render:"}
    assert found.suites["t2i_correctness"].limit == 7 and found.probes == ()
    assert found.judges["SD3.5"] == "boxes:x"
    with raises("bad-yaml", "--set", "suites={", error=UsageError):
        parse_study(GOOD, "s", ["suites={"])
    with raises("unknown-field", "'judge'", "judges", error=UsageError):
        parse_study(GOOD, "s", ["judge.p=pixels"])
