"""spaCy's greedy arc-eager parser over a whole batch at once, in NumPy.

spaCy advances each caption by its own C++ state. Here the captions of a batch advance in lockstep:
one gather, one matrix product and a few masked assignments are a transition of all of them. The
rules are those of `spacy/pipeline/_parser_internals/arc_eager.pyx`: its moves, when each is valid,
and that a word that was reduced without a head goes back to the buffer, once.
`fast_parser.load_fast` compares heads and labels with spaCy's before this is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fast_tok2vec import Indices, UnknownLayout, Vectors, parts

_SHIFT, _REDUCE, _LEFT, _RIGHT, _BREAK = range(5)
_KINDS = "SDLRB"
"""First letters of spaCy's names of moves, in the order above."""
_STACKED = np.array([1, -1, -1, 1, 0])
_BUFFERED = np.array([-1, 0, 0, -1, 0])
"""How many words a move adds to the stack, and to the buffer if it puts none back."""
_FEATURES = 8
"""Words that a state looks at; `_Batch.features` has which."""
_NEVER = -1e9
"""Added to the score of an invalid move."""
_TOKENS_AT_ONCE = 4_000
"""Tokens of captions that advance together: 16 MB of what each adds to a state in each role. A few
captions alone, the longest of a batch, advance as slowly as hundreds."""
_BELOW = 3
"""Empty places below each stack and buffer, so that one may look at what is not there."""


class FastTransitions:
    """Heads and labels for captions whose token vectors are known."""

    def __init__(self, pipe: Any) -> None:
        """`pipe`: spaCy's parser. Raises UnknownLayout for any other architecture."""
        try:
            tokens, lower, upper = pipe.model.layers
            (linear,) = (node for node in tokens.walk() if node.name == "linear")
            features, width, pieces, inputs = lower.get_param("W").shape
        except (ValueError, KeyError, AttributeError) as error:
            raise UnknownLayout(f"the parser has another layout ({error})") from None
        names = [pipe.moves.get_class_name(i) for i in range(pipe.moves.n_moves)]
        if (
            features != _FEATURES
            or pieces != 2  # what `_scores` takes the greater of
            or pipe.cfg["beam_width"] != 1
            or pipe.model.attrs["unseen_classes"]
            or any(name[0] not in _KINDS or name.endswith("-subtok") for name in names)
        ):
            raise UnknownLayout("the parser has other moves or features")
        self.labels = [name[2:] for name in names]
        """Move -> the label that it gives; empty if none."""
        self.kinds = np.array([_KINDS.index(name[0]) for name in names], np.int8)
        self.linear = linear.get_param("W").T.copy(), linear.get_param("b")
        # Pieces first, so that a maxout compares two contiguous halves.
        W = lower.get_param("W").transpose(0, 2, 1, 3).reshape(-1, inputs)
        self.lower = np.ascontiguousarray(W.T)
        self.padding = lower.get_param("pad")[0].transpose(0, 2, 1).reshape(features, -1)
        self.bias = lower.get_param("b").T.reshape(-1)
        # Validity and bias are further inputs of the last product: it then yields scores of which
        # the greatest is that of the best valid move.
        invalid = np.where(self.kinds == np.arange(5)[:, None], np.float32(_NEVER), np.float32(0))
        rows = [upper.get_param("W").T, invalid, upper.get_param("b")[None]]
        self.upper = np.ascontiguousarray(np.concatenate(rows), np.float32)
        self.width = width
        self._room = np.empty((0, 0), np.float32)
        """What each word adds to a state in each role; kept, as new memory takes time to get."""

    def parse(self, vectors: Vectors, lengths: Indices) -> tuple[Indices, Indices]:
        """Head and move of each token of captions that stand one after the other in `vectors`.

        Heads are rows of `vectors`, -1 for a root; moves index `labels`. Captions of about the same
        length best stand together.
        """
        heads, moves = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.int64)
        for captions, tokens in parts(lengths, _TOKENS_AT_ONCE):
            batch = self._parsed(vectors[tokens], lengths[captions])
            moves[tokens] = batch.moves[:-1]
            heads[tokens] = np.where(batch.heads < 0, -1, batch.heads + tokens.start)[:-1]
        return heads, moves

    def _parsed(self, vectors: Vectors, lengths: Indices) -> _Batch:
        W, bias = self.linear
        if len(self._room) <= len(vectors):
            self._room = np.empty((len(vectors) + 1, len(self.bias) * _FEATURES), np.float32)
        known = self._room[: len(vectors) + 1]
        np.matmul(vectors @ W + bias, self.lower, out=known[:-1])
        known[-1] = self.padding.reshape(-1)  # of words that are not there, which have row -1
        known = known.reshape(-1, len(self.bias))
        batch = _Batch(lengths)
        places = np.arange(_FEATURES)
        while len(batch.stack_top):
            seen = batch.features()
            valid = batch.valid(seen)
            moves = self._scores(known, seen * _FEATURES + places, valid).argmax(1)
            batch.apply(moves, self.kinds.take(moves), seen)
        return batch

    def _scores(self, known: Vectors, rows: Indices, valid: NDArray[np.bool_]) -> Vectors:
        hidden = np.add.reduce(known.take(rows, axis=0), axis=1)
        hidden += self.bias
        inputs = np.empty((len(rows), len(self.upper)), np.float32)
        width = self.width
        np.maximum(hidden[:, :width], hidden[:, width:], out=inputs[:, :width])
        inputs[:, width:-1] = ~valid
        inputs[:, -1] = 1
        return inputs @ self.upper


class _Batch:
    """The states of the captions that are not finished, and what was found so far.

    Words are rows of the whole batch. Each array by word has a last place for row -1, the word that
    is not there.
    """

    def __init__(self, lengths: Indices) -> None:
        ends = np.cumsum(lengths)
        tokens = int(ends[-1]) if len(ends) else 0
        self.heads, self.moves, self.last_left, self.last_right, self.before = (
            np.full(tokens + 1, -1) for _ in range(5)
        )
        self.unshiftable, self.starts = (np.zeros(tokens + 1, bool) for _ in range(2))
        self.starts[(ends - lengths)[lengths > 0]] = True
        # A stack and a buffer per caption, both with their top at the end.
        bases = ends - lengths + _BELOW * np.arange(1, len(lengths) + 1)
        self.stack = np.full(tokens + _BELOW * len(lengths) + 1, -1)
        self.buffer = self.stack.copy()
        caption = np.repeat(np.arange(len(lengths)), lengths)
        row = np.arange(tokens)
        self.buffer[(bases + ends - 1)[caption] - row] = row
        bases = bases[lengths > 0]
        self.stack_base, self.stack_top = bases, bases.copy()
        self.buffer_base, self.buffer_top = bases, bases + lengths[lengths > 0]

    def features(self) -> Indices:
        """The words that each state looks at, in the model's order."""
        top = self.stack_top
        first, upper = self.buffer.take(self.buffer_top - 1), self.stack.take(top - 1)
        found = np.empty((len(top), _FEATURES), np.int64)
        found[:, 0] = first
        found[:, 1] = self.buffer.take(self.buffer_top - 2)
        found[:, 2] = upper
        found[:, 3] = self.stack.take(top - 2)
        found[:, 4] = self.stack.take(top - 3)
        found[:, 5] = self.last_left.take(first)
        found[:, 6] = self.last_left.take(upper)
        found[:, 7] = self.last_right.take(upper)
        return found

    def valid(self, seen: Indices) -> NDArray[np.bool_]:
        """Which kinds of move each state allows."""
        first, second = seen[:, 0], seen[:, 1]
        stacked = self.stack_top > self.stack_base
        two = self.buffer_top > self.buffer_base + 1
        begun = self.starts.take(first)
        found = np.empty((len(seen), 5), bool)
        found[:, _SHIFT] = ~stacked | (two & ~begun & ~self.unshiftable.take(first))
        found[:, _REDUCE] = stacked
        found[:, _LEFT] = found[:, _RIGHT] = stacked & (first >= 0) & ~begun
        found[:, _BREAK] = two & (second == first + 1) & ~self.starts.take(second)
        return found

    def apply(self, moves: Indices, kinds: NDArray[np.int8], seen: Indices) -> None:
        """Makes one move in each state; drops the captions that are finished."""
        first, upper = seen[:, 0], seen[:, 2]
        # Right for states that push or put back, above the top for all others.
        self.stack[self.stack_top] = first
        self.buffer[self.buffer_top] = upper
        stacked, buffered = _STACKED.take(kinds), _BUFFERED.take(kinds)
        at = (kinds == _LEFT).nonzero()[0]
        if len(at):
            child, head = upper.take(at), first.take(at)
            # An arc that this one replaces is the latest on that side of the former head.
            self.last_right[self.heads.take(child)] = self.before.take(child)
            self.last_right[-1] = -1
            self.heads[child], self.moves[child] = head, moves.take(at)
            self.last_left[head] = child
            self.unshiftable[head] = False
        at = (kinds == _RIGHT).nonzero()[0]
        if len(at):
            child, head = first.take(at), upper.take(at)
            self.heads[child], self.moves[child] = head, moves.take(at)
            self.before[child] = self.last_right.take(head)
            self.last_right[head] = child
        at = (kinds == _REDUCE).nonzero()[0]
        if len(at):
            # A word without a head goes back, unless it is alone on the stack.
            alone = self.stack_top.take(at) == self.stack_base.take(at) + 1
            at = at[~alone & (self.heads.take(upper.take(at)) < 0)]
            self.unshiftable[upper.take(at)] = True
            buffered[at] = 1
        at = (kinds == _BREAK).nonzero()[0]
        if len(at):
            self.starts[seen[at, 1]] = True
        self.stack_top += stacked
        self.buffer_top += buffered
        unfinished = (self.stack_top > self.stack_base) | (self.buffer_top > self.buffer_base)
        if not unfinished.all():
            self.stack_base, self.stack_top = (
                self.stack_base[unfinished],
                self.stack_top[unfinished],
            )
            self.buffer_base = self.buffer_base[unfinished]
            self.buffer_top = self.buffer_top[unfinished]
