"""Mirrored statements: who agrees, who only nods, and what waits for a person."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from counterprior.agents import session as sessions
from counterprior.agents.backends.scripted import ScriptedBackend
from counterprior.agents.chat import ChatRequest
from counterprior.agents.session import SessionSettings
from counterprior.agents.verification import Claim, Verification, reliability
from counterprior.builders.authoring.verification import verify_pairs
from counterprior.builders.constrained import read_pairs

KEYS = "QWERTYUIOP"


@pytest.fixture
def bank(small_bank: Path, cast: Any) -> Path:
    """Nine pairs: the shipped one of the small bank, four by this model, four by another."""
    entries = []
    for number, (a, b) in enumerate(itertools.pairwise(KEYS)):
        entry = cast.entry(a, b)
        for name in ("proposal", "status", "entry", "erratum", "new_standard", "domain"):
            del entry[name]
        author = {0: "curated", 1: "scripted:reader"}.get(number, "openai:m")
        entries.append({"id": f"keyboards-{a}-{b}".lower(), **entry, "author": author})
    file = small_bank / "constrained" / "keyboards.yaml"
    file.write_text(file.read_text() + yaml.safe_dump(entries, sort_keys=False))
    return small_bank


Reader = Callable[[str, str], str]


@pytest.fixture
def check(bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    asked: list[ChatRequest] = []

    def run(
        reader: Reader, name: str = "checked", replay: bool = False, every: bool = False
    ) -> Any:
        def script(request: ChatRequest) -> str:
            asked.append(request)
            statement = str(request.user[0]).partition("Statement: the ")[2]
            first, second = statement[0], statement.partition("left of the ")[2][0]
            said = reader(first, second)
            return said if "{" in said else json.dumps({"reason": "So.", "verdict": said})

        monkeypatch.setattr(sessions, "open_backend", lambda spec: ScriptedBackend(script, spec))
        settings = SessionSettings(tmp_path / "l.jsonl", "" if replay else "reader", replay=replay)
        return verify_pairs(settings, bank, tmp_path / name, every)

    run.asked = asked  # type: ignore[attr-defined]
    return run


def knows(first: str, second: str) -> str:
    order = KEYS + "ZXCVBNM"
    return "true" if order.index(first) < order.index(second) else "false"


def summary(tmp_path: Path) -> dict[str, Any]:
    text = (tmp_path / "checked" / "archive" / "verification.json").read_text()
    return dict(json.loads(text))


def queue(tmp_path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load((tmp_path / "checked" / "review" / "pairs.yaml").read_text()))


def test_a_reader_who_knows_agrees_and_is_noted(check: Any, tmp_path: Path) -> None:
    report = check(knows)
    assert report.counts == {
        "pairs": 10,
        "agreed": 10,
        "contradicted": 0,
        "undecided": 0,
        "failed": 0,
    }
    pairs = {p.id: p for p in read_pairs(tmp_path / "checked")["keyboards"]}
    assert len(pairs) == 10
    assert pairs["keyboards-q-w"].review == ("reviewer-model",)
    assert pairs["keyboards-w-e"].review == ()  # its reader wrote it
    assert summary(tmp_path)["kappa"] == 1.0 and summary(tmp_path)["discard_rate"] == 0.0
    assert not (tmp_path / "checked" / "review").exists()


def test_a_pair_that_was_read_is_not_read_again(check: Any, bank: Path, tmp_path: Path) -> None:
    check(knows)
    asked = len(check.asked)
    assert asked == 20
    check(knows, "again", replay=True)
    assert len(check.asked) == asked
    one, two = (tmp_path / n / "constrained" / "keyboards.yaml" for n in ("checked", "again"))
    assert one.read_bytes() == two.read_bytes()
    file = bank / "constrained" / "keyboards.yaml"
    mark = "author: openai:m"
    file.write_text(file.read_text().replace(mark, mark + "\n  review: [reviewer-model]"))
    assert check(knows, "third").counts["pairs"] == 3
    assert check(knows, "fourth", every=True).counts["pairs"] == 10


@pytest.mark.parametrize(("said", "yes_rate"), [("true", 1.0), ("false", 0.0)])
def test_constant_answers_score_chance_level(
    check: Any, tmp_path: Path, said: str, yes_rate: float
) -> None:
    assert check(lambda first, second: said).counts["undecided"] == 10
    found = summary(tmp_path)
    assert (found["accuracy"], found["kappa"], found["yes_rate"]) == (0.5, 0.0, yes_rate)
    # What models wrote waits; what people wrote stays, and is listed.
    assert [p.id for p in read_pairs(tmp_path / "checked")["keyboards"]] == [
        "keyboards-z-m",
        "keyboards-q-w",
    ]
    assert len(queue(tmp_path)) == 10


def test_a_wrong_answer_contradicts_the_entries_it_concerns(check: Any, tmp_path: Path) -> None:
    wrong = {"true": "false", "false": "true"}
    check(lambda a, b: wrong[knows(a, b)] if "R" in (a, b) else knows(a, b))
    assert summary(tmp_path)["contradicted"] == 2
    waiting = queue(tmp_path)
    assert {w["id"] for w in waiting} == {"keyboards-e-r", "keyboards-r-t"}
    assert waiting[0]["as_stated"] == {"verdict": "false", "reason": "So."}
    assert waiting[0]["entry"]["left"] == "the E key" and len(waiting[0]["calls"]) == 2


def test_doubt_and_failure_are_different_things(check: Any, tmp_path: Path) -> None:
    def reader(first: str, second: str) -> str:
        if "R" in (first, second):
            return '{"verdict": "perhaps"}'
        return "unsure" if "P" in (first, second) else knows(first, second)

    check(reader)
    found = summary(tmp_path)
    assert (found["agreed"], found["undecided"], found["failed"]) == (7, 1, 2)
    assert found["statements"] == 14 and found["accuracy"] == 1.0


def test_the_two_statements_of_a_pair_differ_only_in_the_claim(check: Any) -> None:
    check(knows)
    texts: dict[str, set[str]] = {}
    for request in check.asked:
        setting, _, statement = str(request.user[0]).partition("Statement:")
        texts.setdefault(setting, set()).add(statement)
    assert len(texts) == 10 and all(len(both) == 2 for both in texts.values())


def test_kappa_is_cohens() -> None:
    claim = Claim("i", "a", "b", "c", "d")
    said = [("true", "false")] * 6 + [("true", "true")] * 3 + [("false", "true")]
    results = [Verification(claim, a, b, ("", ""), ()) for a, b in said]  # type: ignore[arg-type]
    found = reliability(results)
    # Bank true: 9 of 10 said true; bank false: 4 of 10 said true. po = 15/20, pe = 1/2.
    assert found.accuracy == 0.75 and found.kappa == pytest.approx(0.5)
    assert reliability([]).kappa is None and reliability([]).discard_rate is None
