"""How fast rules judge what was detected before: python benchmarks/rules.py [IMAGES]

Detections with masks of IMAGES (default 10,000) images of 512 x 512 are kept in a folder, then
judged by PSE and by VISOR. Prints the time, and that of the processor, which other programs and a
slow disk change less, also as a multiple of reading and parsing the kept files, which nobody can
save.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from counterprior.eval.core import Case, Question
from counterprior.eval.detectors import Detection, Request, mask_box
from counterprior.eval.geometry.metrics import METRICS
from counterprior.eval.judges.by_rule import MetricJudge
from counterprior.eval.questions.asking import Stated, ask_stated

SIDE = 512
RELATIONS = ("left_of", "right_of", "above", "below")


class Ellipses:
    """Two ellipses at random places, other ones for every image; fails when told to."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.closed = False

    def identity(self) -> dict[str, str]:
        return {"kind": "ellipses"}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        assert not self.closed, "looked again"
        return [[self._one(query) for query in request.queries] for request in requests]

    def _one(self, query: str) -> Detection:
        (cy, cx), (ry, rx) = self.rng.uniform(120, 390, 2), self.rng.uniform(30, 110, 2)
        y, x = np.ogrid[:SIDE, :SIDE]
        mask = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1
        box = mask_box(mask)
        assert box is not None
        return Detection(query, 0.9, box, mask)


def questions(count: int) -> Iterator[Question]:
    image = Image.new("RGB", (SIDE, SIDE))
    for number in range(count):
        case = Case(f"r{number}", "plain", 0, 0, "", ("c",))
        stated = Stated("cat", RELATIONS[number % 4], "dog")
        for question in ask_stated(stated, case, "original", [image]):
            yield replace(question, digest=f"{number:064}")  # as the engine gives it


class Clock(NamedTuple):
    """Seconds on the wall, and of the processor."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Clock:
        return cls(time.perf_counter(), time.process_time())

    def since(self, start: Clock) -> Clock:
        return Clock(self.wall - start.wall, self.processor - start.processor)

    def __str__(self) -> str:
        return f"{self.wall:.1f} s, {self.processor:.1f} s of processor"


def judged(judge: MetricJudge, count: int) -> Clock:
    start = Clock.now()
    assert sum(verdict.number is not None for _, verdict in judge.judge(questions(count))) == count
    return Clock.now().since(start)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        detector = Ellipses()
        judged(MetricJudge(METRICS["pse"], detector, cache=Path(folder)), count)
        detector.closed = True
        files = sorted(Path(folder).rglob("*.json"))
        start = Clock.now()
        for file in files:
            json.loads(file.read_bytes())
        given = Clock.now().since(start)
        print(f"{count:,} images: reading the detections alone {given}")
        for name in ("pse", "visor"):
            taken = judged(MetricJudge(METRICS[name], detector, cache=Path(folder)), count)
            print(f"  {name}: {taken}, {taken.processor / given.processor:.1f} x that")


if __name__ == "__main__":
    main()
