"""Labels: one form of row, read strictly."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.human_labels import (
    Label,
    by_annotator,
    check_labels,
    consensus,
    labels_of_images,
    read_labels,
    single_labels,
)
from counterprior.parsing import RowError

A, B = "a" * 64, "b" * 64


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_file_form_and_every_alias_gives_the_same_labels(tmp_path: Path) -> None:
    rows = [{"case": "a", "label": "yes", "question": "q"}, {"sample_id": 7, "verdict": 1}]
    expected = [Label("a", "yes", "q"), Label("7", "1")]
    assert read_labels(write(tmp_path / "l.jsonl", *rows)) == expected
    (tmp_path / "l.json").write_text(json.dumps(rows))
    assert read_labels(tmp_path / "l.json") == expected
    with (tmp_path / "l.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sample_id", "question", "human_verdict", "annotator", "notes"])
        table.writerows([["a", "q", " yes ", "", "x"], ["7", "", "1", "", ""]])
    found = read_labels(tmp_path / "l.csv")
    assert found == expected and found[1].place == f"{tmp_path / 'l.csv'}:3"
    optional = {"question": None, "annotator": None, "image": None, "clicked": None}
    assert read_labels(write(tmp_path / "l.jsonl", rows[0] | optional)) == [Label("a", "yes")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"label": "yes"}, ":2: case: Field required"),
        ({"case": "b"}, ":2: label: Field required"),
        ({"case": "b", "label": " "}, ":2: label: String should have at least 1"),
        ({"case": "a", "label": "no"}, ":2: case: 'a' is labeled twice: keep one, or name"),
        ({"case": "a", "label": "yes"}, ":2: case: 'a' is labeled twice"),
    ],
)
def test_rows_that_are_no_labels_are_named(
    tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    path = write(tmp_path / "l.jsonl", {"case": "a", "label": "yes"}, row)
    with pytest.raises(RowError) as caught:
        read_labels(path)
    assert f"{path}{reason}" in str(caught.value)


def test_one_annotator_labels_a_case_once_or_clicks_again(tmp_path: Path) -> None:
    rows = [{"case": "a", "label": label, "annotator": "ann"} for label in ("yes", "no")]
    with raises("duplicate-id", ":2: case", "case: 'a'", "by 'ann'", "keep one", error=RowError):
        read_labels(write(tmp_path / "l.jsonl", *rows))
    clicked = [row | {"clicked": f"0{n}:00"} for n, row in enumerate(rows)]
    assert read_labels(write(tmp_path / "l.jsonl", *clicked)) == [Label("a", "no", annotator="ann")]
    several = [rows[0], rows[1] | {"annotator": "bo"}, rows[1] | {"question": "q"}]
    several += [rows[1] | {"image": A}]
    assert len(read_labels(write(tmp_path / "l.jsonl", *several))) == 4


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (
            Label("c9", "yes", "q"),
            ("unknown-reference", ":1: case", "l:1", "case 'c9'", "2", "e.g", "c1"),
        ),
        (Label("c1", "yes", "r"), ("unknown-name", ":1: question", "l:1", "r", "q, side")),
        (Label("c1", "yes"), ("unknown-name", ":1: question", "l:1", "q, side")),
        (Label("c1", "YES", "q"), ("unknown-name", ":1: label", "l:1", "YES")),
        (Label("c1", "yes", "side"), ("unknown-name", ":1: label", "l:1", "yes", "left, right")),
    ],
)
def test_rejects_labels_of_unknown_cases_questions_and_answers(
    label: Label, reason: tuple[str, ...]
) -> None:
    answers = {"q": ("yes", "no", "missing"), "side": ("left", "right")}
    known = [Label("c1", "missing", "q"), Label("c2", "left", "side")]
    assert check_labels(known, {"c1", "c2"}, answers) == known
    with raises(*reason, error=RowError):
        check_labels([*known, Label(**{**vars(label), "place": "l:1"})], {"c1", "c2"}, answers)


def test_a_label_without_a_question_belongs_to_the_only_one() -> None:
    assert check_labels([Label("c", "yes")], {"c"}, {"q": ("yes",)}) == [Label("c", "yes", "q")]
    assert check_labels([Label("c", "any", "x")], {"c"}) == [Label("c", "any", "x")]
    with raises("unknown-reference", "case 'c'", error=RowError):
        check_labels([Label("c", "yes")], set())


def test_labels_of_other_images_are_left_out() -> None:
    labels = [Label("c", "yes", "q", image=A), Label("c", "no", "q", image=B), Label("d", "no")]
    assert labels_of_images(labels, {"c": A}) == [labels[0], labels[2]]
    assert labels_of_images(labels[:2], {"c": B}, several=True) == [labels[1]]
    with raises("missing-field", "`image`", "SHA", "256", error=RowError):
        labels_of_images(labels, {"c": A}, several=True)
    with raises("bad-value", "0.png", "SHA", "256", error=RowError):
        labels_of_images([Label("c", "yes", image="0.png")], {"c": A})


def test_one_label_a_question_or_none() -> None:
    labels = [Label("c", "yes", "q", annotator=who) for who in ("ann", "bo")]
    assert single_labels(labels) == {("c", "q"): "yes"}
    with raises("duplicate-id", "c", "yes", "and 'no'", error=RowError):
        single_labels([*labels, Label("c", "no", "q", annotator="cy")])
    of_a = Label("c", "yes", "q", image=A)
    assert single_labels([*labels, of_a]) == {("c", "q"): "yes"}
    with raises("conflicting-labels", "'c'", error=RowError):
        single_labels([of_a, Label("c", "yes", "q", image=B)])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=12))
def test_the_consensus_is_what_most_say_whatever_the_order(votes: list[tuple[str, str]]) -> None:
    labels = [Label(c, said, "q", f"w{n}") for n, (c, said) in enumerate(votes)]
    found = consensus(labels)
    assert found == consensus(labels[::-1]) and {case for case, *_ in found} == {
        c for c, _ in votes
    }
    for (case, *_), label in found.items():
        counts = {said: votes.count((case, said)) for said in "xy"}
        tied = counts["x"] == counts["y"]
        assert label == (None if tied else max(counts, key=lambda said: counts[said]))
    assert sum(len(given) for given in by_annotator(labels).values()) == len(votes)


def test_the_latest_click_counts_wherever_its_line_stands(tmp_path: Path) -> None:
    def row(label: str, clicked: str = "") -> dict[str, str]:
        stamp = {"clicked": clicked} if clicked else {}
        return {"case": "a", "label": label, "annotator": "ann"} | stamp

    late, early = row("no", "2026-11-24T09:30:00Z"), row("yes", "2026-11-24T10:00:00+02:00")
    for rows in ([late, early], [early, late]):
        assert [one.label for one in read_labels(write(tmp_path / "l.jsonl", *rows))] == ["no"]
    # In the same second, as the page writes them, the later line is the later click.
    twice = [row("yes", "2026-11-24T09:30:00Z"), late]
    assert [one.label for one in read_labels(write(tmp_path / "l.jsonl", *twice))] == ["no"]
    for rows in ([late, row("yes")], [row("yes"), late]):
        with raises("duplicate-id", ":2: case", "labeled twice", error=RowError):
            read_labels(write(tmp_path / "l.jsonl", *rows))
