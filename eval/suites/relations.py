"""`spatial_multi`, `spatial_clauses`, and one's own prompts: several stated relations in one image.

Each relation is a question of its own; an image is right as far as its relations hold, and all
right where all of them do (PSE, B.2).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL.Image import Image

from ...agents.relation_files import read_prompts
from ...agents.relations import StatedRelation, extract_by_rules
from ...errors import DataError, UsageError
from ...parsing import read_rows
from ...scenes.scene import Scene
from ...schema import OwnPrompt, Provenance, SpatialClauses, SpatialMulti
from ...specs import Spec
from ..core import Case, Outcome, Question, Score, count_excluded
from ..geometry.boxes import RELATIONS
from ..questions.asking import AMONG, AXES, PROMPTS, Stated, StatedAxis, ask_stated
from ..questions.benchmark_files import BENCHMARKS, BenchmarkPrompt
from ..questions.truth import scene_label
from .base import Headline, Item, Items, Measure, Suite
from .scoring import in_groups, mean_number, mean_score
from .spatial import HOLDS, MEANINGS, UNCONDITIONAL, SpatialSuite, SpatialVISORSuite
from .worths import Worth

MOST = 30
"""Largest number of relations of one prompt."""
NAMES = tuple(f"relation_{number}" for number in range(1, MOST + 1))
"""The questions, one for each relation of a prompt."""
M = TypeVar("M", SpatialMulti, SpatialClauses, OwnPrompt)


def share_right(outcome: Outcome, worth: Worth = UNCONDITIONAL) -> float:
    """Share of an image's relations that hold, in [0, 1]; NaN where one can't be judged."""
    worths = [worth.of(outcome.verdict(question)) for question in outcome.case.weights]
    return sum(worths) / len(worths) if worths else math.nan


def all_right(outcome: Outcome) -> float:
    """1 where all relations hold, 0 where one fails; NaN where one can't be judged."""
    share = share_right(outcome)
    return share if math.isnan(share) else float(share == 1)


def decided(outcome: Outcome) -> float:
    """1 where every relation or its reverse was seen, else 0; NaN where one can't be judged."""
    share = share_right(outcome)
    return share if math.isnan(share) else float(not math.isnan(share_right(outcome, HOLDS)))


def unjudged(outcome: Outcome) -> str:
    """Label of the first relation that can't be judged; empty if all can."""
    labels = map(outcome.label, outcome.case.weights)
    return next((label for label in labels if label not in UNCONDITIONAL.values), "")


IMAGE_SHARES: dict[str, Callable[[Outcome], float]] = {"all_right": all_right, "decided": decided}
"""Score -> what it is the mean of, over images."""


def _items(outcomes: Sequence[Outcome]) -> Items:
    return {o.case.id: Item((share_right(o),), o.case.cluster) for o in outcomes}


DIRECTED: tuple[StatedAxis, ...] = ("horizontal", "vertical", "depth", "occlusion")
"""Axes of the relations that its rows state."""


class RelationsSuite(Suite[M]):
    """Share of the stated relations that hold, and whether all do."""

    has_right_images = True
    population = "sets of objects"
    worths = dict.fromkeys(NAMES, HOLDS)
    prompts = (AMONG, *dict.fromkeys(PROMPTS[axis] for axis in DIRECTED))
    headline = Headline(
        score="relations_right",
        better="higher",
        meaning="Share of the stated relations that hold, averaged over images.",
        items=_items,
        broken_down=("relations_right", "all_right"),
    )
    meanings = {
        "relations_right": "Share of the stated relations that hold, averaged over images; one in "
        "which a thing can't be seen counts as failed.",
        "all_right": "Share of images of which all stated relations hold.",
        "decided": "Share of judged images in which every relation or its reverse was seen.",
        "measure": MEANINGS["measure"] + " Averaged over the relations of an image first.",
        "measure_least": "The same with the least number of each image: how far all of it holds.",
    }

    def claims(self, row: M) -> list[Stated]:
        """Relations that the row's prompt states, in order."""
        triples = zip(row.subjects, row.relations, row.references, strict=True)
        return [Stated(*triple) for triple in triples]

    def cases(self, row: M, seeds: int) -> Iterator[Case]:
        clusters = ("/".join(sorted(set(row.objects))),)
        groups = self.groups(row)
        weights = dict.fromkeys(NAMES[: len(row.relations)], 1.0)
        yield from self.seeded(row, seeds, {"plain": row.prompt}, clusters, groups, weights)

    def groups(self, row: M) -> dict[str, str]:
        """Groups of which scores are reported, by kind."""
        return {"objects": str(len(row.objects))}

    def questions(self, row: M, case: Case, images: Sequence[Image], probe: str) -> list[Question]:
        things = tuple(row.objects)
        return [
            question
            for name, claim in zip(NAMES, self.claims(row), strict=False)
            for question in ask_stated(claim, case, probe, images, objects=things, name=name)
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, relation_scores)

    def correctness(self, outcome: Outcome) -> float:
        return share_right(outcome)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        most = max((len(o.case.weights) for o in outcomes), default=0)
        for name, value in (("relations_right", share_right), ("all_right", all_right)):
            yield frozenset(NAMES[:most]), Measure(name, outcomes, value, UNCONDITIONAL)

    def truth(self, row: M, case: Case, scene: Scene) -> Mapping[str, str]:
        return {
            name: scene_label(scene, claim)
            for name, claim in zip(NAMES, self.claims(row), strict=False)
        }


def relation_scores(outcomes: Sequence[Outcome], group: str) -> list[Score]:
    """Scores over single images."""

    def mean(name: str, value: Callable[[Outcome], float]) -> Score:
        values = np.array([value(outcome) for outcome in outcomes], dtype=float)
        excluded = count_excluded(map(unjudged, outcomes), ("",))
        return mean_score(name, values, outcomes, group=group, excluded=excluded)

    return [
        mean("relations_right", share_right),
        *(mean(name, value) for name, value in IMAGE_SHARES.items()),
        *mean_number("measure", outcomes, (), group=group),
        *mean_number("measure_least", outcomes, (), group=group, join=min),
    ]


class SpatialMultiSuite(RelationsSuite[SpatialMulti]):
    """Three or four objects in a chain of relations."""

    name = "spatial_multi"
    offline_rows = 24


class SpatialClausesSuite(RelationsSuite[SpatialClauses]):
    """Three or four objects in the sentences of PSE's Table 15."""

    name = "spatial_clauses"
    offline_rows = 24


DIRECTIONS = {
    "left": "left_of",
    "right": "right_of",
    "top": "above",
    "bottom": "below",
    "front": "in_front_of",
    "behind": "behind",
    "top left": "upper_left",
    "top right": "upper_right",
    "bottom left": "lower_left",
    "bottom right": "lower_right",
    "near": "near",
    "far": "far",
    "inside": "inside",
    "around": "surrounding",
    "between": "between",
}
"""Relations as they are extracted from prompts, and as rules call them."""


class OwnPromptsSuite(RelationsSuite[OwnPrompt]):
    """The user's own prompts, by the relations that they state.

    `FILE[?implied=yes][&read=rules]`: a text file with a prompt a line, or `relations.jsonl` of
    `spatial relations`. implied: relations that follow from the stated ones (what is left of
    something is left of whatever that is left of) count too. read: `model`, its reading where it
    gave one (the default), or `rules`. `FILE?benchmark=hrs`: a benchmark's list in its authors'
    format.
    """

    name = "own_prompts"
    offline_rows = 24
    real_gold = SpatialSuite.real_gold
    prompts = (*RelationsSuite.prompts, PROMPTS["distance"], PROMPTS["middle"])

    def groups(self, row: OwnPrompt) -> dict[str, str]:
        further = {"difficulty": row.difficulty} if row.difficulty else {}
        if len(row.relations) == 1 and len(row.objects) == 2:
            further["relation"] = row.relations[0]
        return {**super().groups(row), **further}

    def asked_of_real_gold(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Those whose prompt says only that one thing is left of, right of, above or below
        another."""
        return [o for o in outcomes if o.case.groups.get("relation") in RELATIONS]

    @classmethod
    def read_file(cls, text: str) -> list[OwnPrompt] | None:
        source = PromptFile.parse(text)
        if source is None:
            raise DataError(
                f"{text}: no file of prompts, and {cls.name} are in no release",
                code="no-such-file",
            )
        return source.rows()


@dataclass(frozen=True)
class PromptFile:
    """A file of prompts and how it is read."""

    path: Path
    implied: bool = False
    """Whether relations that follow from the stated ones count too."""
    read: str = "model"
    """Reading that counts: `model` or `rules`."""
    benchmark: str = ""
    """Benchmark whose list it is, a key of `BENCHMARKS`; empty for the user's own prompts."""

    @classmethod
    def parse(cls, text: str) -> PromptFile | None:
        """From `FILE?implied=yes`; None if there is no such file.

        Raises UsageError for an unknown option.
        """
        head, mark, query = text.partition("?")
        if not Path(head).is_file():
            return None
        options = Spec.parse(f"prompts:?{query}").options if mark else {}
        choices = {
            "implied": ("no", "yes"),
            "read": ("model", "rules"),
            "benchmark": tuple(BENCHMARKS),
        }
        for name, value in options.items():
            if value not in choices.get(name, ()):
                usage = " or ".join(f"{n}={'|'.join(v)}" for n, v in choices.items())
                raise UsageError(
                    f"{text}: no option {name}={value}: write {usage}", code="unknown-option"
                )
        return cls(
            Path(head),
            options.get("implied") == "yes",
            options.get("read", "model"),
            options.get("benchmark", ""),
        )

    def __str__(self) -> str:
        options = {"benchmark": self.benchmark} if self.benchmark else {}
        if self.implied:
            options["implied"] = "yes"
        if self.read != "model":
            options["read"] = self.read
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"{self.path}?{query}" if query else str(self.path)

    def rows(self) -> list[OwnPrompt]:
        """The prompts that state a relation, each text once. Raises DataError for a file without
        any."""
        rows = [row for prompt in self._prompts() if (row := self._row(prompt))]
        if not rows:
            raise DataError(
                f"{self.path}: no prompt states a spatial relation", code="nothing-to-do"
            )
        return list({row.id: row for row in reversed(rows)}.values())[::-1]

    def silent(self) -> list[str]:
        """The prompts that state no relation: they can't be judged, and are not drawn."""
        return [prompt.text for prompt in self._prompts() if not self._row(prompt)]

    def left_out(self) -> int:
        """Relations beyond the `MOST` of a prompt, which nobody is asked about."""
        numbers = {prompt.text: sum(map(len, self._claims(prompt))) for prompt in self._prompts()}
        return sum(max(0, number - MOST) for number in numbers.values())

    def _prompts(self) -> Iterator[BenchmarkPrompt]:
        if self.benchmark:
            yield from BENCHMARKS[self.benchmark].read(self.path)
            return
        for text, stated in self._own_prompts():
            claims = (
                Stated(relation.first, DIRECTIONS[relation.relation], relation.second)
                for relation in stated
            )
            yield BenchmarkPrompt("", text, tuple(claims))

    def _own_prompts(self) -> Iterator[tuple[str, list[StatedRelation]]]:
        if self.path.suffix != ".jsonl":
            for _, text in read_prompts(self.path):
                yield text, extract_by_rules(text)
            return
        for number, record in read_rows(self.path):
            try:
                by_model = record["by_model"] if self.read == "model" else None
                stated = record["by_rules"] if by_model is None else by_model
                yield (
                    record["prompt"],
                    [StatedRelation.model_validate(relation) for relation in stated],
                )
            except (KeyError, TypeError, ValueError) as error:
                reason = " ".join(str(error).split())
                raise DataError(
                    f"{self.path}:{number}: not in the format of `spatial relations` ({reason})",
                    "or name the benchmark whose list it is with --benchmark",
                    code="bad-format",
                ) from None

    def _claims(self, prompt: BenchmarkPrompt) -> tuple[list[Stated], list[Stated]]:
        """What a prompt states, and what follows from it and counts."""
        differing = (c for c in prompt.claims if c.a.lower() not in map(str.lower, c.references))
        stated = list(dict.fromkeys(differing))
        return stated, implied_relations(stated) if self.implied else []

    def _row(self, prompt: BenchmarkPrompt) -> OwnPrompt | None:
        stated, implied = self._claims(prompt)
        claims = [*stated, *implied][:MOST]
        if not claims:
            return None
        objects = dict.fromkeys(name for claim in claims for name in (claim.a, *claim.references))
        return OwnPrompt(
            objects=list(objects),
            subjects=[claim.a for claim in claims],
            relations=[claim.relation for claim in claims],
            references=[claim.b for claim in claims],
            implied=max(0, len(claims) - len(stated)),
            prompt=prompt.text,
            difficulty=prompt.difficulty,
            review=[],
            provenance=Provenance(
                bank=self.path.name,
                entry=prompt.entry,
                author=BENCHMARKS[self.benchmark].title if self.benchmark else "user",
                calls=[],
            ),
        )


def implied_relations(stated: Sequence[Stated]) -> list[Stated]:
    """Claims that follow from some claims on the same axis, in order; empty if they contradict.

    >>> implied_relations([Stated("cat", "left_of", "dog"), Stated("owl", "right_of", "dog")])
    [Stated(a='cat', relation='left_of', b='owl')]
    """
    implied: list[Stated] = []
    for forward, (axis, first) in AXES.items():
        if not first or axis in ("occlusion", "distance", "middle"):  # not transitive
            continue
        direct = {claim.order for claim in stated if claim.axis == axis}
        reached = set(direct)
        while new := {(a, d) for a, b in reached for c, d in reached if b == c} - reached:
            reached |= new
        if not any(a == b for a, b in reached):
            implied += [Stated(a, forward, b) for a, b in sorted(reached - direct)]
    return implied


def own_prompts(path: Path, implied: bool, benchmark: str = "") -> tuple[str, str, str]:
    """Suite and data of a file of prompts, and a summary in one line.

    benchmark: a key of `BENCHMARKS`, if the file is its list. Raises DataError for a file of which
    no prompt states a relation, UsageError for an unknown benchmark.
    """
    if benchmark and benchmark not in BENCHMARKS:
        raise UsageError(
            f"no benchmark {benchmark!r}",
            f"choose from {', '.join(BENCHMARKS)}",
            code="unknown-name",
        )
    source = PromptFile(path, implied, benchmark=benchmark)
    rows, silent = source.rows(), source.silent()
    relations = sum(len(row.relations) for row in rows)
    note = f"{len(rows):,} prompts with {relations:,} relations"
    if following := sum(row.implied for row in rows):
        note += f", {following:,} of them implied"
    if left_out := source.left_out():
        note += f", and {left_out:,} left out, as a prompt has {MOST} at most"
    if levels := Counter(row.difficulty for row in rows if row.difficulty):
        note += f" ({', '.join(f'{n:,} {level}' for level, n in levels.items())})"
    if silent:
        example = json.dumps(silent[0], ensure_ascii=False)
        note += f"; {len(silent):,} state none and are not drawn, e.g. {example}"
    if not benchmark:
        return OwnPromptsSuite.name, str(source), note
    title, rule = BENCHMARKS[benchmark].title, BENCHMARKS[benchmark].judge
    note = f"{title}: {note}; " + (f"its own rule is {rule}" if rule else "it has no rule")
    suite = OwnPromptsSuite if benchmark != "visor" else SpatialVISORSuite
    return suite.name, str(source), note
