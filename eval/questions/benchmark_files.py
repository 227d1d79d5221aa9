"""Reads the lists of prompts that other benchmarks publish, each in its authors' format.

``BENCHMARKS`` has one row for each: what reads its file, and the judge by its authors' rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from ...errors import DataError
from ...parsing import RowError, parse, read_json, read_rows
from .asking import Stated
from .coco_captions import captions_with_relations

DIFFICULTIES = {2: "easy", 3: "medium", 4: "hard"}
"""Number of objects -> level of HRS-Bench."""
PHRASES: Mapping[str, tuple[str, ...]] = {
    "left_of": ("to the left of", "on the left of", "left of", "left"),
    "right_of": ("to the right of", "on the right of", "right of", "right"),
    "above": ("on the top of", "on top of", "above", "over", "on", "top"),
    "below": ("on the bottom of", "below", "beneath", "underneath", "under"),
    "near": ("on side of", "next to", "near"),
    "in_front_of": ("in front of",),
    "behind": ("behind",),
    "hidden_by": ("hidden by",),
}
"""Relation -> the words for it in the lists of all benchmarks."""
RELATION_OF = {phrase: relation for relation, some in PHRASES.items() for phrase in some}
_LONGEST_FIRST = sorted((p for p in RELATION_OF if p not in ("left", "right", "top")), key=len)[
    ::-1
]
_SENTENCE = re.compile(
    r"(?:an? (?:photo|picture|image) of )?(?:(?:an?|the) )?(?P<a>.+?)(?: (?:is|are))? "
    rf"(?P<relation>{'|'.join(_LONGEST_FIRST)}) (?:(?:an?|the) )?(?P<b>.+?)\.?",
    re.IGNORECASE,
)
AMIDST = ("between", "among", "in the middle of")
"""Words for a thing between two others, in HRS's list."""
UNSTATED = {"", "and", *AMIDST}
"""Words of relations that are no relation of two things."""


@dataclass(frozen=True)
class BenchmarkPrompt:
    """A prompt of a benchmark, with the relations that its file states."""

    entry: str
    """Id of the prompt in the file; line number if it has none."""
    text: str
    """The text to draw."""
    claims: tuple[Stated, ...]
    """The relations; empty if the prompt states none of two things."""
    difficulty: str = ""
    """Level that the benchmark reports separately; empty if it has none."""


@dataclass(frozen=True)
class PromptBenchmark:
    """A benchmark whose prompts can be read."""

    title: str
    """Its name."""
    read: Callable[[Path], Iterator[BenchmarkPrompt]]
    """Reads its file; raises DataError that names file, line and field."""
    judge: str = ""
    """Spec of the judge by its authors' rule; empty if it has none."""


class HRSRow(BaseModel):
    """A row of HRS-Bench's CSV of spatial compositions."""

    obj1: Annotated[str, Field(min_length=1)]
    obj2: Annotated[str, Field(min_length=1)]
    obj3: str
    obj4: str
    rel1: str
    rel2: str


class GenEvalObject(BaseModel):
    """A thing of a GenEval prompt, and where it is seen from another, by number."""

    name: Annotated[str, Field(min_length=1, alias="class")]
    position: tuple[str, int] | None = None


class GenEvalRow(BaseModel):
    """A line of GenEval's `evaluation_metadata.jsonl`."""

    tag: str
    include: list[GenEvalObject]
    prompt: Annotated[str, Field(min_length=1)]


class VISORRow(BaseModel):
    """An entry of VISOR's `text_spatial_rel_phrases.json`."""

    unique_id: int
    text: Annotated[str, Field(min_length=1)]
    rel_type: str | None = ""
    obj_1_attributes: Annotated[list[str], Field(min_length=1)]
    obj_2_attributes: list[str] = []


class WhatsUpRow(BaseModel):
    """An entry of a What'sUp list: an image and captions, the right one first."""

    image_path: Annotated[str, Field(min_length=1)]
    caption_options: Annotated[list[str], Field(min_length=1)]


def hrs(path: Path) -> Iterator[BenchmarkPrompt]:
    """HRS-Bench's CSV: the prompt in the first column, then `obj1` to `obj4`, `rel1` and `rel2`.

    As in its program, the first of three things, and the first two of four, are related to each
    of the others, or are between them. Of four, its program asks for the fifth, so that two
    relations of four things can't be scored by it; here they are read as for three.
    """
    for number, row in read_rows(path):
        fields = parse(HRSRow, row, path, number)
        objects = [o for o in (fields.obj1, fields.obj2, fields.obj3, fields.obj4) if o]
        of_subject = 2 if len(objects) == 4 else 1
        subjects, references = objects[:of_subject], objects[of_subject:]
        phrases = {"rel1": fields.rel1, "rel2": fields.rel2}
        relations = [_relation(text, path, number, name) for name, text in phrases.items()]
        related = [
            (reference, relation)
            for reference, relation in zip(references, relations, strict=False)
            if relation
        ]
        if len(references) == 2 and fields.rel1.strip().lower() in AMIDST:
            related = [("|".join(references), "between")]
        elif len(related) < len(references):  # a relation is missing
            related = []
        yield BenchmarkPrompt(
            entry=str(number),
            text=next(iter(row.values())).strip(),
            claims=tuple(Stated(a, relation, b) for b, relation in related for a in subjects),
            difficulty=DIFFICULTIES[len(objects)],
        )


def geneval(path: Path) -> Iterator[BenchmarkPrompt]:
    """GenEval's JSONL: prompts of the tag `position` state a relation, all others none."""
    for number, row in read_rows(path):
        fields = parse(GenEvalRow, row, path, number)
        claims = []
        for thing in fields.include if fields.tag == "position" else ():
            if thing.position is None:
                continue
            phrase, place = thing.position
            if not 0 <= place < len(fields.include):
                raise RowError(
                    f"{path}:{number}: include: position: names thing {place} of "
                    f"{len(fields.include)}",
                    code="out-of-range",
                )
            relation = _relation(phrase, path, number, "position")
            claims.append(Stated(thing.name, relation, fields.include[place].name))
        yield BenchmarkPrompt(str(number), fields.prompt, tuple(claims))


def visor(path: Path) -> Iterator[BenchmarkPrompt]:
    """VISOR's JSON: entries of one thing, or of two with `and`, state no relation."""
    numbers = dict[int, int]()
    for number, row in read_rows(path):
        fields = parse(VISORRow, row, path, number)
        if (first := numbers.setdefault(fields.unique_id, number)) != number:
            raise RowError(
                f"{path}:{number}: unique_id: {fields.unique_id} is that of {first}: remove one",
                code="duplicate-id",
            )
        relation = _relation(fields.rel_type or "", path, number, "rel_type")
        claims: tuple[Stated, ...] = ()
        if relation:
            if not fields.obj_2_attributes:
                raise RowError(f"{path}:{number}: obj_2_attributes: missing", code="missing-field")
            claims = (Stated(fields.obj_1_attributes[0], relation, fields.obj_2_attributes[0]),)
        yield BenchmarkPrompt(str(fields.unique_id), fields.text, claims)


def compbench(path: Path) -> Iterator[BenchmarkPrompt]:
    """T2I-CompBench's text files, in the plane and in depth: one prompt a line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: no file of prompts ({error})", code="no-such-file") from None
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            yield BenchmarkPrompt(str(number), text, _claims_of(text))


def whatsup(path: Path) -> Iterator[BenchmarkPrompt]:
    """What'sUp's JSON: the first caption of each image is right, and is the prompt.

    COCO-Spatial and GQA-Spatial, lists of an image's number and two captions, are read, too.
    """
    for image, text in whatsup_captions(path):
        yield BenchmarkPrompt(image, text, _claims_of(text))


def whatsup_captions(path: Path) -> Iterator[tuple[str, str]]:
    """Image and right caption of each entry of a What'sUp list."""
    entries = read_json(path)
    if not isinstance(entries, list):
        raise RowError(f"{path}: is not a list of images and captions", code="wrong-type")
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, list) and len(entry) >= 2 and isinstance(entry[1], str):
            name = f"{entry[0]:012d}.jpg" if isinstance(entry[0], int) else f"{entry[0]}.jpg"
            yield name, entry[1].strip()
        elif isinstance(entry, dict):
            fields = parse(WhatsUpRow, entry, path, number)
            yield fields.image_path, fields.caption_options[0].strip()
        else:
            raise RowError(
                f"{path}:{number}: needs `image_path` and `caption_options`", code="missing-field"
            )


def _relation(phrase: str, path: Path, number: int, field: str) -> str:
    """Relation of a benchmark's words; empty if they relate no two things."""
    text = " ".join(phrase.lower().split())
    if text in UNSTATED:
        return ""
    if text not in RELATION_OF:
        raise RowError(
            f"{path}:{number}: {field}: {phrase!r} is not a relation: write one of "
            f"{', '.join(RELATION_OF)}",
            code="bad-value",
        )
    return RELATION_OF[text]


def _claims_of(text: str) -> tuple[Stated, ...]:
    """The relation of a sentence "a A RELATION a B"; empty if it is none.

    >>> _claims_of("A dog next to a cell phone")
    (Stated(a='dog', relation='near', b='cell phone'),)
    """
    match = _SENTENCE.fullmatch(text)
    if match is None:
        return ()
    return (Stated(match["a"], RELATION_OF[match["relation"].lower()], match["b"]),)


def coco(path: Path) -> Iterator[BenchmarkPrompt]:
    """COCO's captions, each with a relation added that people's boxes show."""
    for image, text, claim in captions_with_relations(path):
        yield BenchmarkPrompt(image, text, (claim,))


BENCHMARKS: Mapping[str, PromptBenchmark] = {
    "coco": PromptBenchmark("COCO with relations", coco),
    "compbench": PromptBenchmark(
        "T2I-CompBench", compbench, "compbench:grounded-sam:?rule.convention=authors"
    ),
    "geneval": PromptBenchmark("GenEval", geneval, "geneval:grounded-sam:?rule.convention=authors"),
    "hrs": PromptBenchmark("HRS-Bench", hrs, "hrs:grounded-sam:?rule.convention=authors"),
    "visor": PromptBenchmark("VISOR", visor, "visor:grounded-sam:?rule.convention=authors"),
    "whatsup": PromptBenchmark("What'sUp", whatsup),
}
"""Name -> benchmark; the name of a rule is also that of the benchmark whose rule it is."""
