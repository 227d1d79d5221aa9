"""A study file is read strictly: each fault by file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    "another key": (GOOD + "probe: [swap]\n", "12: probe: no key 'probe': did you mean probes?"),
    "a key twice": (but("b:", "a:"), "7: generators.a occurs twice, first in line 6"),
    "no YAML": (but('"render:"', '"render:'), "7: no YAML"),
    "missing": (but("data: rel\n", ""), "data: missing"),
    "a number": (but("limit: 2", "limit: 0"), "3: suites.t2i_homogenization.limit: "),
    "no number": (but("seeds: 2", "seeds: all"), "4: suites.t2i_correctness.seeds: "),
    "a setting": (but("seeds", "seds"), "4: suites.t2i_correctness.seds: no key 'seds': did"),
    "a suite": (but("t2i_corr", "t2i_cor"), "4: suites.t2i_corectness: no suite"),
    "a control": (but("[mirror]", "[miror]"), "11: probes.0: should be 'mirror' or 'swap', not"),
    "a kind": (
        but('"render:"', '"rendr:"'),
        "6: generators.a: no generator 'rendr': did you mean r",
    ),
    "a judge": (but("pixels", "pixel"), "9: judges.p: no judge 'pixel': did you mean pixels?"),
    "a name": (but("  a:", "  a/b:"), "6: generators.a/b: 'a/b' is no name of a file"),
    "case": (but("  b:", "  A:"), "7: generators.A: 'A' and 'a' differ in case only"),
    "one judge twice": (but('"openai:m"', "pixels"), "10: judges.q: 'q' is the same judge as 'p'"),
    "no settings": (but(" {limit: 2}", ""), "3: suites.t2i_homogenization: should be a mapping"),
    "a pattern": (
        GOOD + "except:\n- {judge: r}\n",
        "13: except.0.judge: 'r' fits no judge of p, q",
    ),
    "a key of a pattern": (GOOD + "only:\n- {sute: x}\n", "13: only.0.sute: no key 'sute': did"),
    "nothing left": (GOOD + "except:\n- {judge: '*'}\n", ": nothing is left to do"),
    "images by judge": (
        GOOD + "except:\n- {judge: p, seeds: 3}\n",
        "13: except.0.judge: every judge sees the same images: seeds goes without it",
    ),
    "labels": (
        GOOD + "labels: {t2i_homogenisation: x}\n",
        "12: labels.t2i_homogenisation: no suite",
    ),
    "a column": (
        GOOD
        + "table:\n  title: t\n  columns:\n  - {suite: t2i_correctness, score: hom, label: x}\n",
        "15: table.columns.0.score: t2i_correctness has no score 'hom'",
    ),
    "a scorer": (
        GOOD + "scorers:\n  a: 'picscore:'\n",
        "13: scorers.a: no scorer 'picscore': did you mean pickscore",
    ),
    "a judge's name": (
        GOOD + "scorers:\n  P: 'pickscore:'\n",
        "13: scorers.P: a judge is named 'P', too",
    ),
    "a column of a scorer": (
        GOOD
        + "table:\n  title: t\n  columns:\n"
        + "  - {suite: t2i_correctness, score: 'scorer:x', label: x}\n",
        "15: table.columns.0.score: no scorer 'x': there is none",
    ),
    "a score of a kind": (
        table("{suite: t2i_correctness, score: 'people:luck', label: x}"),
        "15: table.columns.0.score: no score 'people:luck': choose from people:kappa",
    ),
    "a line's score": (
        table("{suite: t2i_correctness, score: delta, label: x}", "lines: {a: {score: hom}}"),
        "16: table.lines.a: t2i_correctness has no score 'hom'",
    ),
    "a key of a line": (
        table("{suite: t2i_correctness, score: delta, label: x}", "lines: {a: {metod: m}}"),
        "16: table.lines.a.metod: no key 'metod': did you mean method?",
    ),
    "suites that can't be pooled": (
        table(
            "{suite: [t2i_correctness, t2i_homogenization], score: 'switched:hom:plain', label: x}"
        ),
        "15: table.columns.0.suite: switched:hom:plain is of one suite",
    ),
    "generators that can't be pooled": (
        table("{suite: t2i_correctness, score: delta, label: x}", "pooled: true", "rows: judge"),
        "15: table.columns.0.score: delta is of one generator, and the table is pooled",
    ),
    "generators that are pooled as lines": (
        table("{suite: t2i_correctness, score: 'people:kappa', label: x}", "pooled: true"),
        "16: table.pooled: only lines of judges are pooled",
    ),
    "a column without a suite": (
        table("{score: delta, label: x}"),
        "15: table.columns.0.suite: missing",
    ),
    "a suite of a corpus": (
        table("{suite: t2i_correctness, score: pairs, label: x}", "rows: corpus"),
        "15: table.columns.0.score: a corpus has the scores aligned",
    ),
    "corpora alone": ("corpora: {a: x}\njudges: {p: pixels}\n", "data: missing; a study has data"),
    "money": (GOOD + "max_usd: -1\n", "12: max_usd: "),
    "empty": ("", ": a study maps data"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_file_line_and_field(name: str) -> None:
    text, message = FAULTS[name]
    with pytest.raises(StudyError) as caught:
        parse_study(text, "my.yaml")
    assert str(caught.value).startswith("my.yaml") and message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"gone\.yaml: no study file: No such file"):
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
    with pytest.raises(UsageError, match="is no YAML"):
        parse_study(GOOD, "s", ["suites={"])
    with pytest.raises(UsageError, match="no key 'judge': did you mean judges"):
        parse_study(GOOD, "s", ["judge.p=pixels"])
