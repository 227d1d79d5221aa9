"""Spatial relations out of prompts: the rules against the released suites, and the model's lane."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents import session as sessions
from counterprior.agents.backends.scripted import ScriptedBackend
from counterprior.agents.chat import ChatRequest
from counterprior.agents.relation_files import extract_file
from counterprior.agents.relations import extract_by_rules
from counterprior.agents.session import SessionSettings
from counterprior.builders.phrases import in_one_sense
from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites import SUITES

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

NAMES = {
    "left_of": "left",
    "right_of": "right",
    "above": "top",
    "below": "bottom",
    "in_front_of": "front",
    "behind": "behind",
    "hidden_by": "behind",
}
REVERSE = {"right": "left", "bottom": "top", "behind": "front"}


def normal(first: str, relation: str, second: str) -> tuple[str, str, str]:
    side = NAMES[relation]
    return (second, REVERSE[side], first) if side in REVERSE else (first, side, second)


@pytest.mark.parametrize("name", ["spatial_uc", "spatial_visor", "spatial_3d"])
def test_the_rules_read_every_pair_of_the_release(name: str) -> None:
    rows = SUITES[name].build(SHIPPED, random.Random(0))
    for row in random.Random(1).sample(rows, min(len(rows), 1500)):
        found = [relation.normal() for relation in extract_by_rules(row.prompt)]
        assert found == [normal(row.object_a, row.relation, row.object_b)], row.prompt


def test_the_rules_read_every_chain_of_the_release() -> None:
    for row in SUITES["spatial_multi"].build(SHIPPED, random.Random(0)):
        found = [relation.normal() for relation in extract_by_rules(row.prompt)]
        subjects, references = (map(in_one_sense, n) for n in (row.subjects, row.references))
        stated = zip(subjects, row.relations, references, strict=True)
        assert found == [normal(*each) for each in stated], row.prompt


@pytest.mark.parametrize(
    ("prompt", "relations"),
    [
        (
            "A cat is sitting on top of a table, behind a lamp",
            [("cat", "top", "table"), ("lamp", "front", "cat")],
        ),
        ("two dogs; a red ball under the old bench", [("old bench", "top", "red ball")]),
        ("a cup above a plate behind a jug", [("cup", "top", "plate"), ("jug", "front", "plate")]),
        (
            "A balloon on the bottom of a chicken and on the left of a lamp",
            [("chicken", "top", "balloon"), ("balloon", "left", "lamp")],
        ),
        ("a bird on the top of a post", [("bird", "top", "post")]),
        ("a cat between a dog and a horse", [("cat", "between", "dog|horse")]),
        ("a cat between a horse and a dog", [("cat", "between", "dog|horse")]),
        ("a cat between dogs", []),
        ("a dog next to a cat", [("cat", "near", "dog")]),
        ("a cat to the lower left of a dog", [("dog", "top right", "cat")]),
        ("a cat above and to the left of a dog", [("cat", "top left", "dog")]),
        ("a house surrounded by trees", [("house", "inside", "trees")]),
        ("a ball behind it", []),
        ("a quiet morning", []),
        ("", []),
        ("left of", []),
        ("A leftover soup over there", [("leftover soup", "top", "there")]),
    ],
)
def test_the_rules_on_free_prompts(prompt: str, relations: list[tuple[str, str, str]]) -> None:
    assert [relation.normal() for relation in extract_by_rules(prompt)] == relations


def test_both_readings_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(request: ChatRequest) -> str:
        text = str(request.user[0])
        if "garbage" in text:
            return "none"
        told = [("dog", "right", "cat")] if "cat" in text else [("cup", "top", "sea")]
        keys = ("first", "relation", "second")
        return json.dumps({"relations": [dict(zip(keys, each, strict=True)) for each in told]})

    monkeypatch.setattr(sessions, "open_backend", lambda spec: ScriptedBackend(script, spec))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(
        "a cat left of a dog\n\na cup behind a jug\na garbage can\na cup behind a jug\n"
    )
    settings = SessionSettings(tmp_path / "l.jsonl", "m")
    told = json.loads(extract_file(settings, prompts, tmp_path / "out.jsonl", lambda *_: None))
    assert told == {
        "prompts": 2,
        "unread": 1,
        "same": 1,
        "shared": 1,
        "rules_only": 1,
        "model_only": 1,
        "f1": 0.5,
    }
    lines: list[Any] = [json.loads(x) for x in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["by_model"] is None for line in lines] == [False, False, True]
    assert lines[2]["problem"].startswith("invalid")
    with raises("no-such-file", "none.txt"):
        extract_file(settings, tmp_path / "none.txt", tmp_path / "o", lambda *_: None)


def test_conveyed_relations_are_another_reading(cli: Cli, tmp_path: Path) -> None:
    """By command: a ledger holds both readings, and each is replayed."""
    script = [
        {"role": "relations/extractor", "contains": [], "answer": {"relations": []}},
        {
            "role": "relations/reader",
            "contains": ["sitting"],
            "answer": {"relations": [{"first": "man", "relation": "top", "second": "chair"}]},
        },
    ]
    (tmp_path / "script.json").write_text(json.dumps(script))
    (tmp_path / "prompts.txt").write_text("a man sitting on a chair\n")
    command = ("spatial", "relations", "prompts.txt", "--ledger", "l.jsonl", "--out", "out.jsonl")
    for model in (("--backend", "scripted:script.json"), ("--replay",)):
        for option, relations in (((), 0), (("--conveyed",), 1)):
            done = cli(*command, *model, *option, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
            assert len(json.loads(line)["by_model"]) == relations
            assert json.loads(line)["by_rules"] == []
