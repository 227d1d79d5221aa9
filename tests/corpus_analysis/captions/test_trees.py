"""The rules on hand-made trees, without a model: they end on any tree, and read offsets right."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterprior.corpus_analysis.captions.extract import CaptionMention, CaptionPair, Extractor
from counterprior.corpus_analysis.captions.ontology import Ontology

EXTRACTOR = Extractor(Ontology.read())


@dataclass
class Token:
    """A hand-made token; `at` is the number of its head."""

    i: int
    idx: int
    text: str
    tag_: str
    dep_: str
    at: int
    doc: list[Token] = field(repr=False)

    @property
    def lower_(self) -> str:
        return self.text.lower()

    @property
    def head(self) -> Token:
        return self.doc[self.at]

    @property
    def children(self) -> Iterator[Token]:
        return (t for t in self.doc if t.at == self.i and t.i != self.i)

    @property
    def lefts(self) -> list[Token]:
        return [t for t in self.children if t.i < self.i]

    @property
    def rights(self) -> list[Token]:
        return [t for t in self.children if t.i > self.i]

    @property
    def left_edge(self) -> Token:
        return self.lefts[0].left_edge if self.lefts else self

    @property
    def right_edge(self) -> Token:
        return self.rights[-1].right_edge if self.rights else self


def tree(*rows: str) -> tuple[list[Token], str]:
    """Tokens from rows `word tag dep head`, separated by single spaces in the text."""
    doc: list[Token] = []
    at = 0
    for i, row in enumerate(rows):
        word, tag, dep, head = row.split()
        doc.append(Token(i, at, word, tag_=tag, dep_=dep, at=int(head), doc=doc))
        at += len(word) + 1
    return doc, " ".join(t.text for t in doc)


def pairs_of(*rows: str) -> list[CaptionPair]:
    doc, text = tree(*rows)
    pairs = EXTRACTOR.pairs(doc, text)
    for pair in pairs:
        for mention in (pair.first, pair.second):
            assert text[mention.start : mention.end].lower().endswith(mention.head.lower())
            assert mention.phrase in text
    return pairs


WORDS = (
    "cat NNS,dog NN,man NN,cup NN,table NN,toast NN,jacket NN,joy NN,lot NN,left NN,top NN,next RB,"
    "front NN,outside IN,in IN,on IN,of IN,to IN,with IN,over IN,by IN,and CC,/ SYM,sitting VBG,"
    "standing VBG,sit VBP,has VBZ,it PRP,his PRP$,a DT,other JJ,stuffed VBN"
).split(",")
LABELS = (
    "prep pobj pcomp conj cc appos nsubj nsubjpass dobj amod acl relcl advcl nmod compound punct "
    "prt agent poss"
).split()


@st.composite
def trees(draw: st.DrawFn) -> tuple[str, ...]:
    """Rows of `tree`: any words under any labels; only that each but the root hangs on another."""
    words = draw(st.lists(st.sampled_from([*WORDS, ", ,"]), min_size=2, max_size=10))
    order = draw(st.permutations(range(len(words))))
    rows = {order[0]: f"{words[order[0]]} ROOT {order[0]}"}
    for at, i in enumerate(order[1:], 1):
        label, head = draw(st.sampled_from(LABELS)), draw(st.sampled_from(order[:at]))
        rows[i] = f"{words[i]} {label} {head}"
    return tuple(rows[i] for i in range(len(words)))


def too_long(*_: object) -> NoReturn:
    raise TimeoutError("the rules don't come to an end")


@given(trees())
@settings(max_examples=200, deadline=None)
@example(  # as the parser reads it
    (
        "close RB ROOT 0",
        "up IN prt 0",
        "of IN prep 1",
        "apples NNS pobj 2",
        "on IN prep 0",
        "a DT det 6",
        "tree NN pobj 4",
    )
)
def test_any_tree_comes_to_an_end(rows: tuple[str, ...]) -> None:
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(20)
    try:
        pairs_of(*rows)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


TREES = {
    "coordination": ("cats NNS ROOT 0;and CC cc 0;a DT det 3;dog NN conj 0", ["cat and dog"]),
    "no trigger in the text": ("cat NN ROOT 0;| SYM punct 0;dog NN conj 0", []),
    "a chain through what is no entity": (
        "cat NN ROOT 0;, , punct 0;joy NN conj 0;and CC cc 2;dog NN conj 2",
        ["cat and dog"],
    ),
    "a preposition of several words": (
        "cat NN ROOT 0;in IN prep 0;front NN pobj 1;of IN prep 2;a DT det 5;dog NN pobj 3",
        ["cat in front of dog"],
    ),
    "a relative clause": (
        "man NN ROOT 0;who WP nsubj 2;stands VBZ relcl 0;near IN prep 2;a DT det 5;dog NN pobj 3",
        ["man near dog"],
    ),
    "of alone": ("cat NN ROOT 0;of IN prep 0;dog NN pobj 1;, , punct 0", []),
    "the longest name": (
        "hot JJ amod 1;dog NN ROOT 1;and CC cc 1;dog NN conj 1",
        ["hot dog and dog"],
    ),
    "a name with hyphens": (
        "ice NN compound 2;- HYPH punct 2;cream NN ROOT 2;and CC cc 2;cake NN conj 2",
        ["ice cream and cake"],
    ),
    "a verb": ("cook VB ROOT 0;and CC cc 0;dog NN conj 0", []),
    "a kind of the other": ("dog NN ROOT 0;or CC cc 0;animals NNS conj 0", []),
    "two kinds": ("cakes NNS ROOT 0;and CC cc 0;cupcakes NNS conj 0", ["cake and cupcake"]),
    "no subject": ("is VBZ ROOT 0;near IN prep 0;dog NN pobj 1", []),
}


@pytest.mark.parametrize("case", TREES)
def test_tree(case: str) -> None:
    rows, expected = TREES[case]
    pairs = pairs_of(*rows.split(";"))
    assert [f"{p.first.name} {p.relation} {p.second.name}" for p in pairs] == expected


def only_pair(*rows: str) -> tuple[CaptionMention, CaptionMention, str]:
    (pair,) = pairs_of(*rows)
    return pair.first, pair.second, pair.sentence


def test_phrase_and_quantifier_of_a_mention() -> None:
    rows = ("two CD nummod 1", "cats NNS ROOT 1", "and CC cc 1", "a DT det 4", "dog NN conj 1")
    cats, dog, sentence = only_pair(*rows)
    assert (cats.phrase, cats.quantifier) == ("two cats", "two")
    assert (dog.phrase, dog.quantifier) == ("a dog", "a")
    assert sentence == "two cats and a dog"


def test_partitive_is_the_quantifier_and_the_depiction_is_looked_through() -> None:
    cats, _, _ = only_pair(
        *("photo NN ROOT 0", "of IN prep 0", "a DT det 3", "pair NN pobj 1", "of IN prep 3"),
        *("cats NNS pobj 4", "and CC cc 0", "dog NN conj 0"),
    )
    assert (cats.name, cats.phrase, cats.quantifier) == ("cat", "a pair of cats", "a pair of")


def test_parts_of_words_are_not_entities() -> None:
    doc = [
        Token(0, 0, "cat", tag_="NN", dep_="ROOT", at=0, doc=[]),
        Token(1, 3, "and", tag_="CC", dep_="cc", at=0, doc=[]),
        Token(2, 7, "dog", tag_="NN", dep_="conj", at=0, doc=[]),
    ]
    for token in doc:
        token.doc = doc
    assert EXTRACTOR.pairs(doc, "catand dog") == []
