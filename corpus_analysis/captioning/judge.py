"""Judge of captions: which of two things they name first, by the miner's extraction.

``python:counterprior.corpus_analysis.captioning.judge:NamesJudge`` judges runs of `caption_order`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from ...eval.core import Question, Verdict
from ...eval.suites.caption_order import READ_BY_MACHINE
from ..captions.extract import CaptionMention, Extractor, spatial_words
from ..captions.ontology import CaptionEntity, Ontology
from ..captions.parser import Parser, installed_model, load_parser
from ..captions.text import normalize, readable
from ..mining.mine_shard import code_digest

BATCH = 256
"""Questions whose captions are parsed together."""


class NamesJudge:
    """Reads from captions which of two things they name first, and which words they use."""

    def identity(self) -> dict[str, str]:
        """Raises ModelMissing if spaCy or its model is not installed."""
        return {
            "kind": "caption-names",
            "model": " ".join(installed_model()),
            "code": code_digest(),
            "ontology": Ontology.read().digest,
        }

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        """Raises ModelMissing as `identity`."""
        waiting = iter(questions)
        while batch := list(islice(waiting, BATCH)):
            texts = list(dict.fromkeys(normalize(question.text) for question in batch))
            documents = dict(zip(texts, _parse(_tools()[0], texts), strict=True))
            for question in batch:
                text = normalize(question.text)
                yield question, _verdict(question, text, documents[text])


def _verdict(question: Question, text: str, document: Any) -> Verdict:
    """document: of the parser; None for a text that it fails on."""
    if question.task != "mention" and READ_BY_MACHINE not in question.facts:
        return Verdict("error", f"can't answer questions of the task {question.task}")
    if document is None or not question.text.strip():
        return Verdict("unparsed", text)
    if question.task != "mention":
        used = set(question.facts[READ_BY_MACHINE].split("|")) & set(spatial_words(text))
        return Verdict("yes" if used else "no", ", ".join(sorted(used)))
    mentions = list(_tools()[1].mentions(document, text))
    entities = Ontology.read().entities
    if unknown := [name for name in question.subjects if name not in entities]:
        return Verdict("error", f"the ontology has no {unknown[0]!r}")
    left, right = (entities[name] for name in question.subjects)
    return Verdict(_label(mentions, left, right), ", ".join(mention.name for mention in mentions))


def _label(mentions: Iterable[CaptionMention], left: CaptionEntity, right: CaptionEntity) -> str:
    order: list[CaptionEntity] = []
    for mention in mentions:
        named = [t for t, o in ((left, right), (right, left)) if means_only(mention.name, t, o)]
        order += [thing for thing in named if thing not in order]
    if not order:
        return "none_named"
    side = "left" if order[0] == left else "right"
    return f"{side}_only" if len(order) == 1 else f"{side}_first"


def means_only(name: str, thing: CaptionEntity, other: CaptionEntity) -> bool:
    """Whether an entity's name, as a caption has it, means one thing and not the other.

    It may be the thing's name, that of a kind of it ("kitten" for a cat) or of a broader kind
    ("animal"), unless that fits the other thing as well.
    """
    return _fits(name, thing) and not _fits(name, other)


def _fits(name: str, thing: CaptionEntity) -> bool:
    named = Ontology.read().entities[name]
    return name == thing.name or thing.name in named.kinds or name in thing.kinds


@cache
def _tools() -> tuple[Parser, Extractor]:
    """Loads parser and extractor, which takes seconds, once for all captions."""
    return load_parser(), Extractor(Ontology.read())


def _parse(parser: Parser, texts: Sequence[str]) -> list[Any]:
    """Parses every text into a document; None for texts that the parser fails on."""
    try:
        return list(parser.nlp.pipe(map(readable, texts)))
    except Exception:  # third-party code: one caption must not end a run
        return [_parse_alone(parser, text) for text in texts]


def _parse_alone(parser: Parser, text: str) -> Any:
    try:
        return parser.nlp(readable(text))
    except Exception:
        return None
