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

from .fast_tok2vec import Indices, UnknownLayout, Vectors

_SHIFT, _REDUCE, _BREAK, _LEFT, _RIGHT, _PUT_BACK = range(6)
_KINDS = "SDBLR"
"""First letters of spaCy's names of moves, in the order above. A word that is put back is a word
reduced before it has a head."""
_TOPS = np.array([[-1, 0, 0, 0, -1, 1], [1, -1, 0, -1, 1, -1]])
"""How many words a move adds to the buffer, and to the stack."""
_WORDS = _TOPS.sum(0)
"""The same for both together."""
_FEATURES = 8
"""Words that a state looks at; `_Batch.features` has which."""
_FIRST, _SECOND, _UPPER, _LOWER = range(4)
"""Of these: the first two of the buffer, the upper two of the stack."""
_STARTS, _UNSHIFTABLE, _ABSENT = 1, 2, 4
"""What is known of a word: it begins a sentence; it was put back; it is not there."""
_OF_FIRST, _OF_SECOND, _OF_UPPER, _ADJACENT = 1, 8, 64, 512
"""Places of what is known of three words, and of whether the first two are neighbors, in a state's
row of `_INVALID`."""
_OF_WORDS = np.array([_OF_FIRST, _OF_SECOND, _OF_UPPER])
_NEVER = -1e9
"""Added to the score of an invalid move."""
_BELOW = 3
"""Empty places below each stack and buffer, so that one may look at what is not there."""


def _invalid() -> Vectors:
    """For each kind of state, by what is known of its words, 1 for each kind of move that it
    doesn't allow; then a 1 for the bias."""
    state = np.arange(2 * _ADJACENT)

    def known(bit: int, of: int) -> NDArray[np.bool_]:
        return state // of & bit > 0

    stacked, two = ~known(_ABSENT, _OF_UPPER), ~known(_ABSENT, _OF_SECOND)
    begun, back = known(_STARTS, _OF_FIRST), known(_UNSHIFTABLE, _OF_FIRST)
    valid = np.zeros((len(state), len(_KINDS)), bool)
    valid[:, _SHIFT] = ~stacked | (two & ~begun & ~back)
    valid[:, _REDUCE] = stacked
    valid[:, _BREAK] = two & known(1, _ADJACENT) & ~known(_STARTS, _OF_SECOND)
    valid[:, _LEFT] = valid[:, _RIGHT] = stacked & ~known(_ABSENT, _OF_FIRST) & ~begun
    return np.pad(~valid, ((0, 0), (0, 1)), constant_values=True).astype(np.float32)


_INVALID = _invalid()


class FastTransitions:
    """Heads and labels for captions whose token vectors are known."""

    def __init__(self, pipe: Any, room: int) -> None:
        """`pipe`: spaCy's parser. `room`: tokens that are parsed together, or a longer caption's.

        Raises UnknownLayout for any other architecture.
        """
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
        self._room = np.ones((room + 1, len(self.bias) * _FEATURES), np.float32)
        """What each word adds to a state in each role; taken when a worker starts, and kept, since
        new memory takes time to get."""

    def parse(self, vectors: Vectors, lengths: Indices) -> tuple[Indices, Indices]:
        """Head and move of each token of captions that stand one after the other in `vectors`.

        Heads are rows of `vectors`, -1 for a root; moves index `labels`. Captions of about the same
        length best stand together. Holds 4 kB per token, which is what each adds to a state in each
        role.
        """
        W, bias = self.linear
        if len(self._room) <= len(vectors):
            self._room = np.empty((len(vectors) + 1, len(self.bias) * _FEATURES), np.float32)
        known = self._room[: len(vectors) + 1]
        np.matmul(vectors @ W + bias, self.lower, out=known[:-1])
        known[-1] = self.padding.reshape(-1)  # of words that are not there, which have row -1
        known[:, : len(self.bias)] += self.bias  # once in each state: with its first word
        known = known.reshape(-1, len(self.bias))
        batch = _Batch(lengths)
        roles = np.arange(_FEATURES)[:, None]
        while len(batch.left):
            seen = batch.features()
            rows = seen * _FEATURES
            rows += roles
            moves = self._scores(known.take(rows, axis=0), batch.invalid(seen)).argmax(1)
            batch.apply(moves, self.kinds.take(moves), seen)
        return batch.heads[:-1], batch.moves[:-1]

    def _scores(self, added: Vectors, invalid: Vectors) -> Vectors:
        """Of each move in each state. added: what its words add to it, (8, states, 2 * width)."""
        hidden = np.add.reduce(added, axis=0)
        inputs = np.empty((len(hidden), len(self.upper)), np.float32)
        width = self.width
        np.maximum(hidden[:, :width], hidden[:, width:], out=inputs[:, :width])
        inputs[:, width:] = invalid
        return inputs @ self.upper


class _Batch:
    """The states of the captions that are not finished, and what was found so far.

    Words are rows of the whole batch. Each array by word has a last place for row -1, the word that
    is not there.
    """

    _at = np.array([0, 0, 1, 1, 1])
    _down = np.array([[-1], [-2], [-1], [-2], [-3]])
    """From which top the first five words are looked for, and how far from it."""
    _beside = np.array([_FIRST, _UPPER, _UPPER])
    _moved = np.array([_UPPER, _FIRST])
    """What a move may put on the buffer, and on the stack."""
    _child, _head = np.full((2, len(_TOPS[0])), -1)
    _child[[_LEFT, _RIGHT]] = _head[[_RIGHT, _LEFT]] = _UPPER, _FIRST

    def __init__(self, lengths: Indices) -> None:
        lengths = lengths[lengths > 0]
        ends = np.cumsum(lengths)
        tokens = int(ends[-1]) if len(ends) else 0
        self.tokens = tokens
        self.heads, self.moves, self.before = (np.full(tokens + 1, -1) for _ in range(3))
        self.last = np.full(2 * (tokens + 1), -1)
        """The last child to the left of each word, then to the right. Row -1 is the end of both."""
        self._side = np.array([[0], [0], [tokens + 1]])
        self.known = np.zeros(tokens + 1, np.int64)
        self.known[ends - lengths] = _STARTS
        self.known[-1] = _ABSENT
        # A buffer and a stack per caption, both with their top at the end.
        bases = ends - lengths + _BELOW * np.arange(1, len(lengths) + 1)
        room = tokens + _BELOW * len(lengths) + 1
        self.held = np.full(2 * room, -1)
        row = np.arange(tokens)
        self.held[np.repeat(bases + ends - 1, lengths) - row] = row
        self.tops = np.stack([bases + lengths, bases + room])
        self.left = lengths
        """Words on each caption's buffer and stack."""

    def features(self) -> Indices:
        """The words that each state looks at, in the model's order: (8, states)."""
        found = np.empty((_FEATURES, len(self.left)), np.int64)
        places = self.tops.take(self._at, axis=0)
        places += self._down
        self.held.take(places, out=found[:5])
        places = found.take(self._beside, axis=0)
        places += self._side
        self.last.take(places, out=found[5:])
        return found

    def invalid(self, seen: Indices) -> Vectors:
        """1 for each kind of move that a state doesn't allow, else 0, and a 1: (states, 6)."""
        state = _OF_WORDS @ self.known.take(seen[:3])
        state += _ADJACENT * (seen[_SECOND] - seen[_FIRST] == 1)
        invalid: Vectors = _INVALID.take(state, axis=0)
        return invalid

    def apply(self, moves: Indices, kinds: NDArray[np.int8], seen: Indices) -> None:
        """Makes one move in each state; drops the captions that are finished."""
        # Right for states that push or put back, above the top for all others.
        self.held[self.tops] = seen.take(self._moved, axis=0)
        at = (kinds >= _LEFT).nonzero()[0]
        if len(at):
            kind = kinds.take(at)
            child, head = seen[self._child.take(kind), at], seen[self._head.take(kind), at]
            # An arc that this one replaces is the latest on that side of the former head.
            self.last[self.tokens + 1 + self.heads.take(child)] = self.before.take(child)
            self.heads[child], self.moves[child] = head, moves.take(at)
            side = head + (self.tokens + 1) * (kind == _RIGHT)
            self.before[child] = self.last.take(side)
            self.last[side] = child
            self.known[head] &= ~_UNSHIFTABLE
        at = (kinds == _REDUCE).nonzero()[0]
        if len(at):
            # A word without a head goes back, unless it is alone on the stack.
            upper = seen[_UPPER].take(at)
            back = (seen[_LOWER].take(at) >= 0) & (self.heads.take(upper) < 0)
            self.known[upper[back]] |= _UNSHIFTABLE
            kinds[at[back]] = _PUT_BACK
        at = (kinds == _BREAK).nonzero()[0]
        if len(at):
            self.known[seen[_SECOND].take(at)] |= _STARTS
        self.tops += _TOPS.take(kinds, axis=1)
        self.left += _WORDS.take(kinds)
        if not self.left.all():
            unfinished = self.left.nonzero()[0]
            self.tops, self.left = self.tops[:, unfinished], self.left[unfinished]
