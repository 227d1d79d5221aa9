"""Outcomes as columns: what scores need of each is read once, whatever groups it is in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..core import ORIGINAL, Cluster, Outcome, cluster_of
from ..stats.bootstrap import Array


@dataclass(frozen=True)
class Texts:
    """A text of each outcome, e.g. its label."""

    names: Sequence[str]
    """The texts that occur; those of a part may occur outside it only."""
    numbers: NDArray[np.intp]
    """Shape (n,): place of each outcome's text among the names."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return cls(list(places), np.array([places[text] for text in texts], dtype=np.intp))

    def counts(self) -> dict[str, int]:
        """Text -> number of outcomes, of those that occur."""
        counts = np.bincount(self.numbers, minlength=len(self.names)).tolist()
        return {name: count for name, count in zip(self.names, counts, strict=True) if count}

    def excluded(self, scored: Mapping[str, Any]) -> dict[str, int]:
        """Counts of the texts that are not scored, sorted."""
        return {name: n for name, n in sorted(self.counts().items()) if name not in scored}

    def values(self, of: Callable[[str], float]) -> Array:
        """Shape (n,): a value of each outcome's text."""
        return np.array([of(name) for name in self.names], dtype=float)[self.numbers]

    def are(self, text: str) -> NDArray[np.bool_]:
        """Shape (n,): whether it is this text."""
        return np.array([name == text for name in self.names], dtype=bool)[self.numbers]


class Outcomes(Sequence[Outcome]):
    """Outcomes, or a part of them: what is read of all is there for each part."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = list(outcomes)
        self._texts: dict[Hashable, Texts] = {}
        self._numbers: dict[Hashable, NDArray[np.intp]] = {}
        self._whole: Outcomes = self
        self._places: NDArray[np.intp] | slice = slice(None)
        """Of a part, among the outcomes of the whole."""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Outcomes:
        """The outcomes, with what was read of them before."""
        return outcomes if isinstance(outcomes, cls) else cls(outcomes)

    def part(self, places: Sequence[int]) -> Outcomes:
        """Those at some places, in this order."""
        part = Outcomes([self._outcomes[place] for place in places])
        part._whole = self._whole
        part._places = np.arange(len(self._whole))[self._places][np.array(places, dtype=np.intp)]
        return part

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._outcomes)

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> list[Outcome]: ...
    def __getitem__(self, place: int | slice) -> Outcome | list[Outcome]:
        return self._outcomes[place]

    def texts(self, name: Hashable, read: Callable[[Outcome], str]) -> Texts:
        """What `read` returns of each; the same name means the same."""
        if name not in self._texts:
            if self._whole is self:
                texts = Texts.of([read(outcome) for outcome in self._outcomes])
            else:
                of_whole = self._whole.texts(name, read)
                texts = Texts(of_whole.names, of_whole.numbers[self._places])
            self._texts[name] = texts
        return self._texts[name]

    def numbers(
        self, name: str, read: Callable[[Sequence[Outcome]], NDArray[np.intp]]
    ) -> NDArray[np.intp]:
        """Numbers that `read` returns of all, shape (n, ...); of a part, those of its outcomes."""
        if name not in self._numbers:
            if self._whole is self:
                numbers = read(self._outcomes)
            else:
                numbers = self._whole.numbers(name, read)[self._places]
            self._numbers[name] = numbers
        return self._numbers[name]


def labels_of(outcomes: Sequence[Outcome], question: str, probe: str = ORIGINAL) -> Texts:
    """The labels of a question, as `Outcome.label`."""
    return Outcomes.of(outcomes).texts(
        ("label", question, probe), lambda outcome: outcome.label(question, probe)
    )


def variants_of(outcomes: Sequence[Outcome]) -> Texts:
    """The variants of the cases."""
    return Outcomes.of(outcomes).texts("variant", lambda outcome: outcome.case.variant)


def cluster_numbers(outcomes: Sequence[Outcome]) -> NDArray[np.intp]:
    """Cluster of each outcome: shape (n,), or (n, 2) of both members of its pair."""
    return Outcomes.of(outcomes).numbers("cluster", partial(_numbers, _clusters, cluster_of))


def pair_numbers(outcomes: Sequence[Outcome]) -> NDArray[np.intp]:
    """Shape (n,): the narrowest cluster of each outcome, as if its members never recurred."""
    return Outcomes.of(outcomes).numbers("pair", partial(_numbers, _clusters, itemgetter(0)))


def row_numbers(outcomes: Sequence[Outcome]) -> NDArray[np.intp]:
    """Shape (n,): the row of each outcome."""
    return Outcomes.of(outcomes).numbers("row", partial(_numbers, _row, str))


def _clusters(outcome: Outcome) -> Sequence[str]:
    return outcome.case.clusters


def _row(outcome: Outcome) -> str:
    return outcome.case.row


def _numbers(
    key: Callable[[Outcome], Hashable],
    cluster: Callable[[Any], Cluster],
    outcomes: Sequence[Outcome],
) -> NDArray[np.intp]:
    """The place of the name of each key's cluster among all, sorted; numpy sorts texts many times
    slower. Several outcomes share a key, whose cluster is looked up once."""
    keys = [key(outcome) for outcome in outcomes]
    clusters = {key: cluster(key) for key in dict.fromkeys(keys)}
    names = {n for c in clusters.values() for n in (c if isinstance(c, tuple) else (c,))}
    places = {name: place for place, name in enumerate(sorted(names))}
    numbers = np.array(
        [
            [places[name] for name in c] if isinstance(c, tuple) else places[c]
            for c in clusters.values()
        ],
        dtype=np.intp,
    )
    number_of = {key: number for number, key in enumerate(clusters)}
    return numbers[[number_of[key] for key in keys]]
