"""Values that records have in common are held once, and no record says anything else for it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from counterprior.errors import DataError
from counterprior.eval.core import Case, Verdict
from counterprior.eval.engine.run import CaseResult
from counterprior.eval.store import shared as shared_module
from counterprior.eval.store.answers import AnswerLog
from counterprior.eval.store.cases import CaseFile, read_cases
from counterprior.eval.store.shared import LONGEST, SharedValues
from counterprior.eval.store.verdicts import Answered
from counterprior.storage import log_line, read_records


def case(seed: int) -> Case:
    return deepcopy(
        Case(
            row="row-1",
            variant="swapped",
            seed=seed,
            number=0,
            prompt=f"a cat and {'a dog'}",
            clusters=("cat/dog", "cat", "dog"),
            groups={"pair_type": "A-A"},
            weights={"order": 1.0},
        )
    )


def answered(verdict: Verdict) -> Answered:
    return Answered(
        key="k",
        case="row-1-swapped-7",
        image="",
        question="order",
        probe="original",
        labels=tuple(["cat", "dog", "invalid"]),
        answers=dict([("1", "cat"), ("2", "dog")]),
        sided=True,
        verdict=verdict,
    )


def test_equal_groups_and_clusters_are_one_object() -> None:
    shared = SharedValues()
    first, second = shared.share(case(1)), shared.share(case(2))
    assert (first, second) == (case(1), case(2))
    assert first.groups is second.groups
    assert first.clusters is second.clusters


def test_answers_differ_in_their_labels_alone() -> None:
    shared = SharedValues()
    first, second = (shared.share(answered(Verdict(label, "1"))) for label in ("cat", "cat"))
    other = shared.share(answered(Verdict("dog", "1")))
    assert first.verdict is second.verdict
    assert first.answers is other.answers
    assert (first.verdict.label, other.verdict.label) == ("cat", "dog")


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("cat", "1", number=1.0),
        Verdict("cat", "1", probabilities={"cat": 1.0}),
        Verdict("cat", "1", mass=0.5),
        Verdict("cat", "1" * (LONGEST + 1)),
    ],
)
def test_verdicts_with_numbers_or_long_answers_stay_apart(verdict: Verdict) -> None:
    shared = SharedValues()
    plain = shared.share(answered(Verdict("cat", "1")))
    measured = shared.share(answered(verdict))
    assert measured.verdict is verdict
    assert plain.verdict == Verdict("cat", "1")


VERDICT: dict[str, Any] = {
    **{"key": "k", "case": "c", "image": "a" * 64, "question": "order", "probe": "original"},
    **{"labels": ["cat", "dog"], "answers": {"1": "cat", "2": "dog"}, "sided": True},
    **{"label": "cat", "raw": "1"},
}
VERDICTS: tuple[dict[str, Any], ...] = (
    {},
    {"key": "l", "image": "b" * 64},
    {"image": ""},
    {"label": "dog"},
    {"sided": False},
    {"labels": ["dog", "cat"]},
    {"answers": {"2": "dog", "1": "cat"}},
    {"number": 1.0},
    {"number": 1},
    {"number": 0.5, "probabilities": {"cat": 0.5, "dog": 0.5}, "mass": 0.9},
    {"frame": 0},
    {"frame": 1},
    {"usd": "0.01"},
    {"raw": "1" * (LONGEST + 1)},
    {"raw": "\ud800"},
)
IMAGE = {"case": "c", "status": "made", "file": "images/c.png", "sha256": "a" * 64}
IMAGES: tuple[dict[str, Any], ...] = (
    {},
    {"file": "images/d.png", "sha256": "b" * 64},
    {"file": "/elsewhere/c.png", "stamp": [3, 4]},
    {"rate": 8.0, "frames": 16},
    {"rate": 8.0, "frames": 17},
    {"status": "error", "message": "no", "file": "", "sha256": ""},
)


@pytest.mark.parametrize("most", [1, 1_000])
@pytest.mark.parametrize(
    ("kind", "record", "changes"),
    [(Answered, VERDICT, VERDICTS), (CaseResult, IMAGE, IMAGES)],
)
def test_records_that_are_parsed_together_are_those_that_are_parsed_alone(
    kind: type[Any],
    record: dict[str, Any],
    changes: Sequence[dict[str, Any]],
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_module, "MOST", most)
    # Each after one that is alike, and all of them once more.
    records = [{**record, **change} for change in changes for change in (change, {})] * 2
    records = [{**one, "case": f"c{number}"} for number, one in enumerate(records)]
    (tmp_path / "log.jsonl").write_bytes(b"".join(map(log_line, records)))
    log = AnswerLog(tmp_path, "log", kind, key="case")
    together = [payload for payloads in log.read().values() for payload in payloads]
    alone = [kind.from_record(one, "") for one in read_records(tmp_path / "log.jsonl")]
    assert together == alone
    assert list(map(repr, together)) == list(map(repr, alone)), "1 is not 1.0"


@pytest.mark.parametrize(
    ("kind", "record", "change", "field"),
    [
        (Answered, VERDICT, {"image": "XYZ"}, "image"),
        (Answered, VERDICT, {"key": 1}, "key"),
        (Answered, VERDICT, {"sided": "perhaps"}, "sided"),
        (Answered, VERDICT, {"shoe": 1}, "shoe"),
        (Answered, VERDICT, {"label": 1}, "verdict.label"),
        (CaseResult, IMAGE, {"sha256": "XYZ"}, "sha256"),
        (CaseResult, IMAGE, {"file": "images/../../c.png"}, "file"),
        (CaseResult, IMAGE, {"file": "/etc/passwd"}, "file"),
        (CaseResult, IMAGE, {"shoe": 1}, "shoe"),
    ],
)
def test_a_bad_record_among_alike_ones_is_named(
    kind: type[Any], record: dict[str, Any], change: dict[str, Any], field: str, tmp_path: Path
) -> None:
    records = [{**record, "case": f"c{number}"} for number in range(4)]
    records[2] |= change
    (tmp_path / "log.jsonl").write_bytes(b"".join(map(log_line, records)))
    with pytest.raises(DataError, match=f"log.jsonl:3: {field}: "):
        AnswerLog(tmp_path, "log", kind, key="case").read()


def test_cases_that_are_read_together_are_those_that_are_read_alone(tmp_path: Path) -> None:
    plain = asdict(case(1)) | {"clusters": ["cat/dog", "cat", "dog"]}
    del plain["fields"]
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"seed": 2},
        {"number": 3},
        {"variant": "plain"},
        {"key": {"order": "a"}},
        {},
    )
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"".join(log_line({**plain, **change}) for change in changes))
    assert read_cases(path) == list(CaseFile(path))
    assert [one.seed for one in read_cases(path)] == [1, 2, 1, 1, 1, 1]
