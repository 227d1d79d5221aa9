"""Ten messages as a user reads them.

The only tests that hold the wording of an error: all others match its code and its facts. To
improve a message, change it here and where it is raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from counterprior.agents.budget import Budget, Price, PriceTable
from counterprior.agents.chat import ChatRequest
from counterprior.cards.versions import Version
from counterprior.errors import CounterpriorError
from counterprior.eval.generators import open_generator
from counterprior.eval.studies.spec import parse_study
from counterprior.human_labels import read_labels
from counterprior.parsing import read_rows
from counterprior.specs import Spec
from counterprior.storage import Lock, read_records


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def lock_twice(folder: Path) -> None:
    with Lock(folder / "lock", "the run"), Lock(folder / "lock", "the run"):
        raise AssertionError("locked twice")


def spend(folder: Path) -> None:
    prices = PriceTable({"openai:m": Price(Decimal(1), Decimal(2))})
    request = ChatRequest("scout", "", ("Name a word.",), max_tokens=100_000)
    Budget(prices, Decimal("0.1")).reserve(
        {"kind": "openai", "model": "m", "provider": "custom"}, request
    )


MESSAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a spec without a kind": (
        lambda _: Spec.parse(":photos"),
        "spec ':photos' has no kind: write kind:argument?key=value",
    ),
    "a generator that does not exist": (
        lambda _: open_generator("rendr:"),
        "no generator 'rendr': did you mean render? choose from caption, chat-image, command, "
        "diffusers, folder, hub, inference, openai-image, openai-video, organism, "
        "python, render",
    ),
    "a version with a prefix": (
        lambda _: Version.parse("v1.0"),
        "version 'v1.0' is not of the form 1.0.0: write three numbers and nothing else",
    ),
    "a row with an empty field": (
        lambda folder: read_labels(written(folder / "labels.csv", "case,label\na,\n")),
        "labels.csv:2: label: is empty: write a value",
    ),
    "a line that was cut off": (
        lambda folder: list(read_rows(written(folder / "rows.jsonl", '{"a": 1}\n{"a'))),
        "rows.jsonl:2: not JSON (Unterminated string starting at: line 1 column 2 (char 1)); the "
        "last line was cut off: delete it",
    ),
    "a key of a study file": (
        lambda _: parse_study("data: d\nprobe: [swap]\n", "my.yaml"),
        "my.yaml:2: probe: no key 'probe': did you mean probes?",
    ),
    "a damaged log": (
        lambda folder: list(read_records(written(folder / "log.jsonl", "{}\n[]\n{}\n"))),
        "log.jsonl:2: not a JSON object: restore the file from a backup, or run `counterprior "
        "doctor FOLDER --repair`",
    ),
    "a locked folder": (
        lock_twice,
        f"the run is in use by process {os.getpid()}: wait until it ends",
    ),
    "a call beyond the budget": (
        spend,
        "the next call of scout may cost 0.2002 USD, which would exceed the cap of 0.1 USD: 0.0000 "
        "USD are spent and 0.0000 USD are under way. Nothing is lost: run the same command again "
        "with a higher --max-usd",
    ),
    "a file that does not exist": (
        lambda folder: list(read_rows(folder / "gone.csv")),
        "gone.csv: no such file: check the path",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_says_what_is_wrong_and_what_to_do(case: str, tmp_path: Path) -> None:
    action, message = MESSAGES[case]
    with pytest.raises(CounterpriorError) as caught:
        action(tmp_path)
    assert str(caught.value).replace(f"{tmp_path}/", "") == message
