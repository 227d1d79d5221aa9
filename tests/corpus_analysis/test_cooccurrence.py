"""How often captions name two things, and link them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from refusals import raises

from counterprior.builders.attributes import (
    AttributePair,
    Cooccurrence,
    Counted,
    rarity_faults,
    read_counts,
    sought,
    write_counts,
)
from counterprior.builders.bank import BankError
from counterprior.builders.suite import SHIPPED
from counterprior.corpus_analysis.captions.parser import ModelMissing, load_parser
from counterprior.corpus_analysis.captions.text import normalize
from counterprior.corpus_analysis.mining.cooccurrence import SeenTogether, count_together

CAPTIONS = [
    "a glass bridge over a river",  # linked, in one step
    "two bridges made of glass in the fog",  # linked, in three
    "a bridge, seen by a man who holds a tall glass of milk",  # together only
    "a stone bridge",
    "a Stone  bridge ",  # another text
    "a glass bridge over a river",  # the same text
    "fiberglass abridged",  # neither is a word of its own
    "polar-bears with green fur",
]
SOUGHT = {
    "glass-bridge": ("bridge", "glass"),
    "bear": ("polar bear", "green"),
    "none": ("dalmatian", "striped"),
}


def write(path: Path, captions: list[str]) -> None:
    path.write_text("".join(json.dumps({"url": "u", "caption": c}) + "\n" for c in captions))


def test_captions_are_counted_by_word_and_by_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        parser = load_parser()
    except ModelMissing as missing:
        pytest.skip(str(missing))
    monkeypatch.setattr(
        "counterprior.corpus_analysis.mining.cooccurrence.load_parser", lambda: parser
    )
    path = tmp_path / "captions.jsonl"
    write(path, CAPTIONS)
    found = count_together([str(path)], SOUGHT)
    assert found.captions == {"captions.jsonl": 7}
    texts = sorted({normalize(caption) for caption in CAPTIONS})
    assert found.digest == sha256("\n".join(texts).encode()).hexdigest()
    assert found.counts == {
        "glass-bridge": SeenTogether(first=5, together=3, linked=2),
        "bear": SeenTogether(first=1, together=1, linked=1),
        "none": SeenTogether(first=0, together=0, linked=0),
    }
    path.write_text(
        "".join(json.dumps({"url": "u", "caption": t}) + "\n" for t in reversed(CAPTIONS))
    )
    assert count_together([str(path)], SOUGHT) == found  # the order of captions changes nothing


def test_hundred_shipped_attributes_are_as_rare_as_a_glass_bridge() -> None:
    pairs, counted = SHIPPED.attributes, SHIPPED.counted
    assert set(sought(pairs)) == set(counted.counts) and len(pairs) == 100
    assert not list(rarity_faults(pairs, counted))
    by_kind = {
        kind: [counted.sightings(f"{pair.id}/{kind}") for pair in pairs]
        for kind in ("rare", "common")
    }
    # The counts can see: what is common is linked in many captions, what is rare in none.
    assert sum(seen.linked for seen in by_kind["rare"]) == 0
    assert sum(seen.linked > 0 for seen in by_kind["common"]) > 30
    assert {seen.captions for seen in by_kind["rare"]} == {15_550 + 9_988}


PAIR = AttributePair(
    id="a",
    concept="hat",
    rare="on a glacier",
    common="felt",
    prompt="{}",
    shows="{}",
    rare_word="glacier",
)


def counted(**linked: int) -> Counted:
    names = {"glass-bridge": "bridge", "a/rare": "rare", "a/common": "common"}
    return Counted(
        {
            name: Cooccurrence(name=name, concept=9, together=linked[key], linked=linked[key])
            for name, key in names.items()
            if key in linked
        },
        (),
    )


def test_an_attribute_that_is_seen_more_often_than_the_reference_is_named() -> None:
    assert sought([PAIR])["a/rare"] == ("hat", "glacier")
    assert not list(rarity_faults([PAIR], counted(bridge=1, rare=1, common=5)))
    ((name, message),) = rarity_faults([PAIR], counted(bridge=1, rare=2, common=5))
    assert name == "a" and "in 2 captions, glass with bridge in 1" in message
    ((name, message),) = rarity_faults([PAIR], counted(bridge=1, rare=1))
    assert name == "a/common" and "count it" in message
    assert not list(rarity_faults([PAIR], Counted({}, ())))  # a bank without counts


@pytest.mark.parametrize(
    ("together", "sources", "message"),
    [(2, "- {name: n, license: l, captions: 3}", ("out-of-range",)), (4, "", ("no-such-file",))],
)
def test_rejects_impossible_counts(
    tmp_path: Path, together: int, sources: str, message: tuple[str, ...]
) -> None:
    some = Cooccurrence(name="x", concept=9, together=together, linked=3)
    write_counts(tmp_path / "cooccurrence.yaml", [some])
    if sources:
        (tmp_path / "captions.yaml").write_text(sources)
    with raises(*message, error=BankError):
        read_counts(tmp_path)
