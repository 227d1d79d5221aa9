"""spaCy's tok2vec with the same weights and the same numbers, three to four times as fast.

Two observations: what embedding and mixing make of a token depends on its word type alone, so it is
computed once a type; and each window layer is one matrix product with maxout, norm and residual,
for which NumPy's BLAS is as good as anything. The result differs from spaCy's in the sixth decimal;
`parser.load_parser` compares the two before it trusts this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spacy.tokens import Doc

Vectors = NDArray[np.float32]

_COLUMNS: list[int | str] = ["NORM", "PREFIX", "SUFFIX", "SHAPE", "SPACY", "IS_SPACE", "ORTH"]
"""What MultiHashEmbed.v2 of the 3.8 models reads, in its order; then ORTH."""
_TYPE = [6, 0, 4]
"""ORTH, NORM and SPACY: all that the first six depend on."""
_PIECES = 3
_TOKENS_AT_ONCE = 2_000
"""Tokens whose windows are held at once: 7 MB, about what a core's cache holds."""
_MAX_TYPES = 400_000
"""Word types kept: 150 MB at width 96."""


class UnknownLayout(ValueError):
    """The model isn't built as this module expects."""


class FastTok2Vec:
    """Stands in for `predict` of a tok2vec pipe of MultiHashEmbed.v2 and MaxoutWindowEncoder.v2."""

    def __init__(self, pipe: Any) -> None:
        """Raises UnknownLayout for any other architecture."""
        try:
            embed, encode = pipe.model.layers
            self.hashes = _layers(embed, "hashembed")
            (self.mix,), (self.norm,) = _layers(embed, "maxout"), _layers(embed, "layernorm")
            self.pad: int = encode.attrs["pad"]
            maxouts, norms = _layers(encode, "maxout"), _layers(encode, "layernorm")
        except (ValueError, KeyError, AttributeError) as error:
            raise UnknownLayout(f"tok2vec has another layout ({error})") from None
        if len(self.hashes) != len(_COLUMNS) - 1 or len(maxouts) != len(norms) or not maxouts:
            raise UnknownLayout(f"{len(self.hashes)} hash tables, {len(maxouts)} layers")
        self.vectors: dict[bytes, Vectors] = {}
        """Word type -> its row after embedding and mixing."""
        self.layers = [_weights(m, n) for m, n in zip(maxouts, norms, strict=True)]

    def predict(self, docs: Iterable[Doc]) -> list[Vectors]:
        """One array of shape (tokens, width) a document."""
        found: list[Vectors] = []
        part: list[Doc] = []
        tokens = 0
        for doc in docs:
            if part and tokens + len(doc) > _TOKENS_AT_ONCE:
                found += self._encode(part)
                part, tokens = [], 0
            part.append(doc)
            tokens += len(doc)
        return found + self._encode(part)

    def _encode(self, documents: list[Doc]) -> list[Vectors]:
        lengths = [len(d) for d in documents]
        width = len(self.layers[0][2])
        if not any(lengths):
            return [np.zeros((0, width), np.float32) for _ in documents]
        # `pad` rows of zeros between captions keep the windows apart, as spaCy does.
        starts = np.cumsum([self.pad] + [k + self.pad for k in lengths])[:-1]
        X = np.zeros((sum(lengths) + self.pad * (len(lengths) + 1), width), np.float32)
        places = [np.arange(s, s + k) for s, k in zip(starts, lengths, strict=True)]
        X[np.concatenate(places)] = self._embed(documents)
        window = np.zeros((len(X), 3 * width), np.float32)  # left neighbour, itself, right one
        for W, bias, gain, shift in self.layers:
            window[1:, :width], window[:, width : 2 * width] = X[:-1], X
            window[:-1, 2 * width :] = X[1:]
            pieces = window @ W
            pieces += bias
            Y = np.maximum(pieces[:, :width], pieces[:, width : 2 * width])
            np.maximum(Y, pieces[:, 2 * width :], out=Y)
            Y -= Y.mean(1, keepdims=True)
            Y *= (1 / np.sqrt(np.einsum("ij,ij->i", Y, Y) / width + 1e-8))[:, None]
            Y *= gain
            Y += shift
            X = X + Y
        return [X[s : s + k] for s, k in zip(starts, lengths, strict=True)]

    def _embed(self, docs: list[Doc]) -> Vectors:
        attributes = np.concatenate([d.to_array(_COLUMNS) for d in docs])
        types, first, back = np.unique(
            attributes[:, _TYPE], axis=0, return_index=True, return_inverse=True
        )
        keys = [row.tobytes() for row in types]
        if len(self.vectors) > _MAX_TYPES:
            self.vectors.clear()
        if new := [i for i, key in enumerate(keys) if key not in self.vectors]:
            rows = attributes[first[new]]
            parts = [h.predict(np.ascontiguousarray(rows[:, i])) for i, h in enumerate(self.hashes)]
            mixed = self.norm.predict(self.mix.predict(np.concatenate(parts, 1)))
            self.vectors.update(zip((keys[i] for i in new), mixed, strict=True))
        return np.stack([self.vectors[key] for key in keys])[back.ravel()]


def _layers(model: Any, name: str) -> list[Any]:
    return [node for node in model.walk() if node.name == name]


def _weights(maxout: Any, norm: Any) -> tuple[Vectors, Vectors, Vectors, Vectors]:
    """A window layer: weights (3 * width, pieces * width), piece by piece; bias; gain; shift."""
    W, bias = maxout.get_param("W"), maxout.get_param("b")
    width, pieces, inputs = W.shape
    if pieces != _PIECES or inputs != 3 * width:
        raise UnknownLayout(f"window layer of shape {W.shape}")
    flat = np.ascontiguousarray(W.transpose(1, 0, 2).reshape(-1, inputs).T)
    return flat, bias.T.reshape(-1), norm.get_param("G"), norm.get_param("b")
