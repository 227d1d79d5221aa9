"""Where the records of a run's cases stand: a hash table over arrays, without the cases' names."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

At = tuple[int, int]
"""Session and place of a record: of two the greater is the newer one."""


class PlaceIndex:
    """Case -> its records, in 36 bytes a record or less; a dictionary of names takes 150.

    A name is known by its 64-bit hash alone: whoever reads a record sees whose it is. One thread
    may add while others look up.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._sessions = array("I")
        self._places = array("Q")
        self._before = array("I")
        """Number of the record of the same case before it, from 1; 0 for the first."""
        self._newest = array("I", [0]) * 64
        """Slot of a case -> number of its last record, from 1; 0 where the slot is free."""
        self._cases = 0
        self._in_order = True

    def __len__(self) -> int:
        """Cases with a record."""
        return self._cases

    def __contains__(self, case: str) -> bool:
        return bool(self._last(hash(case)))

    def add(self, case: str, at: At) -> None:
        """Notes a record that comes after all that were noted."""
        if self._places and at < (self._sessions[-1], self._places[-1]):
            self._in_order = False
        if 2 * self._cases >= len(self._newest):
            self._newest = self._grown()
        name = hash(case)
        slot = self._slot(self._newest, name)
        before = self._newest[slot]
        for column, value in zip(
            (self._hashes, self._sessions, self._places, self._before),
            (name, *at, before),
            strict=True,
        ):
            column.append(value)
        self._newest[slot] = len(self._hashes)
        self._cases += not before

    def of(self, case: str) -> list[At]:
        """The records of a case, oldest first."""
        return self._of(hash(case))

    def newest(self) -> Iterator[At]:
        """The newest record of every case, by when a case had its first one."""
        for number in range(len(self._hashes)):
            if not self._before[number]:
                yield self._of(self._hashes[number])[-1]

    def __iter__(self) -> Iterator[At]:
        """Every record, oldest first."""
        numbers = range(len(self._hashes))
        for number in numbers if self._in_order else sorted(numbers, key=self._at):
            yield self._at(number)

    def _at(self, number: int) -> At:
        return self._sessions[number], self._places[number]

    def _of(self, name: int) -> list[At]:
        number, places = self._last(name), []
        while number:
            places.append(self._at(number - 1))
            number = self._before[number - 1]
        return sorted(places)

    def _last(self, name: int) -> int:
        """Number of the last record of a case, from 1; 0 without any."""
        slots = self._newest
        return slots[self._slot(slots, name)]

    def _slot(self, slots: array[int], name: int) -> int:
        """Where a case is, or the free slot where it would be."""
        mask = len(slots) - 1
        slot = name & mask
        while (number := slots[slot]) and self._hashes[number - 1] != name:
            slot = (slot + 1) & mask
        return slot

    def _grown(self) -> array[int]:
        slots = array("I", [0]) * (2 * len(self._newest))
        for number in filter(None, self._newest):
            slots[self._slot(slots, self._hashes[number - 1])] = number
        return slots
