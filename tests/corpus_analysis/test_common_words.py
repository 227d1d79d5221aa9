"""The table of the commonest words: made once, checked when it is read, never needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub.constants
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from counterprior.corpus_analysis.captions import common_words as module
from counterprior.corpus_analysis.captions.common_words import common_words
from counterprior.corpus_analysis.captions.miner import Miner, MinerSettings
from counterprior.corpus_analysis.captions.parser import ModelMissing

if TYPE_CHECKING:
    from spacy.language import Language

GOLDEN = Path(__file__).parents[1] / "golden" / "captions.jsonl"


@pytest.fixture(scope="module")
def miner() -> Miner:
    try:
        return Miner(MinerSettings())
    except ModelMissing as error:
        pytest.skip(str(error))


def test_the_table_of_common_words_is_made_once_and_remade_if_damaged(
    miner: Miner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_ASSETS_CACHE", str(tmp_path / "assets"))
    monkeypatch.setattr(module, "_words", lambda nlp: ["Cat", "and", "cat", "dog"])
    monkeypatch.setattr(module, "_CHECKED", 2)
    nlp, fast = miner.parser.nlp, miner.parser.fast
    assert fast is not None

    def read() -> tuple[list[str], NDArray[np.float32], int]:
        table = common_words(nlp, fast.tok2vec)
        file = next((tmp_path / "assets").rglob("vectors.npy"))
        return list(table.rows), table.vectors.copy(), file.stat().st_ino

    words, vectors, made = read()
    assert words == ["Cat", "and", "cat", "dog"] and read()[2] == made
    computed = np.concatenate([fast.tok2vec.mixed(_read(nlp, word)) for word in words])
    assert np.abs(vectors - computed).max() < 1e-5
    folder = next((tmp_path / "assets").rglob("vectors.npy")).parent
    for name, damaged in {
        "vectors.npy": lambda data: data[:-96],
        "words.txt": lambda data: data + b"\nbird",
    }.items():
        file = folder / name
        file.write_bytes(damaged(file.read_bytes()))
        again = read()
        assert again[2] != made and again[0] == words, name
        assert (again[1] == vectors).all()
        made = again[2]
    np.save(folder / "vectors.npy", vectors + np.float32(0.01))
    assert (read()[1] == vectors).all()


def _read(nlp: Language, word: str) -> NDArray[np.uint64]:
    """What the model reads of a word at the end and where a space follows, from spaCy's own
    documents."""
    columns: list[int | str] = ["NORM", "PREFIX", "SUFFIX", "SHAPE", "SPACY", "IS_SPACE"]
    docs = nlp.make_doc(word), nlp.make_doc(f"{word} x")
    return np.concatenate([doc.to_array(columns)[:1] for doc in docs])


def test_without_a_place_for_the_table_the_pairs_are_the_same(
    miner: Miner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "assets")
    monkeypatch.setattr(huggingface_hub.constants, "HF_ASSETS_CACHE", place)
    without = Miner(MinerSettings())
    used, unused = miner.parser.fast, without.parser.fast
    assert used is not None and unused is not None
    assert len(used.common.rows) > 90_000 and not unused.common.rows
    rows = pa.array([json.loads(line)["caption"] for line in GOLDEN.read_text().splitlines()][::9])
    assert without(rows) == miner(rows)
