"""Vectors of the commonest words, made once and mapped by all workers and runs.

The words are those that the model brings (from the text that it was trained on), also with a
capital, as in titles. The table lies among the assets of the Hugging Face cache (`HF_ASSETS_CACHE`)
under a name that stands for the model and for this code. A worker that can neither read nor write
it computes what it needs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InUseError
from ...storage import whole_folder
from .fast_tok2vec import FastTok2Vec, Vectors, with_space
from .fast_words import PlainAttributes

if TYPE_CHECKING:
    from spacy.language import Language

_WORDS, _VECTORS = "words.txt", "vectors.npy"
_CHECKED = 1_000
"""Of so many words, one is computed again when the table is read."""
_TOLERANCE = 1e-4
"""Largest difference of a vector's values between two machines."""


@dataclass(frozen=True)
class CommonWords:
    """The table; empty where there is none."""

    rows: dict[str, int]
    """Word -> its number."""
    vectors: Vectors
    """Two rows of each word, in the order of their numbers: without and with a space that follows;
    (2 * words, width)."""


def common_words(nlp: Language, tok2vec: FastTok2Vec) -> CommonWords:
    """The table of a model: read, or made if it is not there or not what would be made."""
    plain = PlainAttributes(nlp)
    folder = _folder(nlp, tok2vec)
    try:
        found = _read(folder)
        if _holds(found, plain, tok2vec):
            return found
    except (OSError, ValueError):  # not there, or not whole
        pass
    try:
        with whole_folder(folder) as new:
            _write(new, _words(nlp), plain, tok2vec)
        return _read(folder)
    except (OSError, InUseError):
        return CommonWords({}, np.empty((0, tok2vec.width), "f4"))


def _folder(nlp: Language, tok2vec: FastTok2Vec) -> Path:
    """Where the table lies."""
    from huggingface_hub.constants import HF_ASSETS_CACHE

    here = Path(__file__)
    code = [here, *(here.with_name(f"fast_{what}.py") for what in ("words", "tok2vec"))]
    name = hashlib.sha256(f"{nlp.meta['name']} {nlp.meta['version']}".encode())
    for part in (*(file.read_bytes() for file in code), tok2vec.mixing[0].tobytes()):
        name.update(part)
    return Path(HF_ASSETS_CACHE) / "counterprior" / "words" / name.hexdigest()[:16]


def _words(nlp: Language) -> list[str]:
    """Words of ASCII letters that the model brings, each also with a capital."""
    strings: Any = nlp.vocab.strings
    brought = [word for word in strings if word.isascii() and word.isalpha()]
    return sorted({*brought, *(word.title() for word in brought if word.islower())})


def _computed(words: list[str], plain: PlainAttributes, tok2vec: FastTok2Vec) -> Vectors:
    attributes = [plain(word) for word in words]
    either = [tok2vec.mixed(with_space(attributes, np.full(len(words), s))) for s in (False, True)]
    return np.stack(either, axis=1).reshape(-1, tok2vec.width)


def _write(folder: Path, words: list[str], plain: PlainAttributes, tok2vec: FastTok2Vec) -> None:
    (folder / _WORDS).write_text("\n".join(words))
    np.save(folder / _VECTORS, _computed(words, plain, tok2vec))


def _read(folder: Path) -> CommonWords:
    """Raises OSError or ValueError."""
    words = (folder / _WORDS).read_text().split("\n")
    vectors = np.asarray(np.load(folder / _VECTORS, mmap_mode="r"))
    return CommonWords({word: number for number, word in enumerate(words)}, vectors)


def _holds(table: CommonWords, plain: PlainAttributes, tok2vec: FastTok2Vec) -> bool:
    """Whether a sample of the words is as it would be computed."""
    words = list(table.rows)[::_CHECKED]
    if table.vectors.shape != (2 * len(table.rows), tok2vec.width):
        return False
    found = table.vectors.reshape(-1, 2 * tok2vec.width)[::_CHECKED]
    expected = _computed(words, plain, tok2vec).reshape(found.shape)
    return bool(np.abs(found - expected).max() <= _TOLERANCE)
