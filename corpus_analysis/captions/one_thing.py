"""What two joined words are if they are not two things: one dish, one person, one kind of thing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .attachment import NOUNS, Word, conjuncts
from .names import AND, QUANTIFYING, NamedThing, Names, end, modifiers
from .words import MEATS, OFFSPRING, SHOPS, STUFFS

_WEIGHT = re.compile(
    r"(?i)(?:\W+[a-z]+){0,2}\W+\d[\d.]*\s?(?:oz|ounces?|k?g|ml|l|lbs?|pounds?|ct|count|pack)\b"
)
"""How much of a product there is, right after its name."""


def heads_both(
    names: Names, doc: Sequence[Word], text: str, first: NamedThing, second: NamedThing
) -> bool:
    """Whether "and" joins two modifiers: "fish and flowers t-shirt", "corn and bean soup", also
    further on in a list: "a zucchini, asparagus and carrot salad".

    The word after the conjunction is an entity, but not the head, and no article is between. A
    plural joined to a singular is no modifier: "plates and coffee mugs".
    """
    if _are_food(first, second) and _is_plain(first) and _is_plain(second):
        *_, last = (second.head, *conjuncts(second.head))
        if last.i != second.head.i:
            named = names.named(doc, text, last)
            word = _bare_modifier(doc, last, named.begin if named else last)
            return word is not None and names.is_name(word)
    word = _bare_modifier(doc, second.head, second.begin)
    if word is not None and word.lower_ in STUFFS:
        return False  # "a chandelier and glass sinks"
    plural = first.head.tag_[-1] == "S"
    if word is None or (plural and not word.lower_.endswith("s")):
        return False
    if word.lower_ in OFFSPRING and second.entity.animate:
        return False  # "a mother and baby son"
    if first.entity.animate and second.entity.animate and not names.is_animate(word):
        return False  # "an actor and tv producer"
    near = doc[word.i - 1].lower_ in AND and word.i - 2 == first.head.i
    titled = near and all(t.text[0].isupper() for t in doc[word.i : second.head.i + 1])
    return titled or names.is_name(word)


def one_person(doc: Sequence[Word], first: NamedThing, second: NamedThing) -> bool:
    """Whether two roles name one person: "the singer and composer performs", "Ann Lee, author and
    actor"."""
    if {first.entity.category, second.entity.category} != {"people"}:
        return False
    at = first.head
    while at.dep_ == "conj" and at.head.i != at.i and not _is_name(at.head):
        at = at.head
    if any(t.dep_ in ("det", "poss") for t in second.head.lefts) or second.head.tag_[-1] == "S":
        return False
    if at.dep_ == "pobj" and at.head.lower_ == "as":
        return True  # "as a journalist and author"
    at_name = any(_is_name(t) and doc[t.i + 1].text in ",(" for t in doc[: first.head.i - 1])
    named = (
        at_name
        or (at.dep_ in ("appos", "conj") and _is_name(at.head))
        or any(
            t.dep_ == "appos" and _is_name(t) and t.left_edge.i <= second.head.i + 2
            for t in at.rights
        )
    )
    return named or (at.dep_ == "nsubj" and at.head.tag_ == "VBZ")


def one_dish(doc: Sequence[Word], first: NamedThing, second: NamedThing) -> bool:
    """Whether two names of food are one dish: "peanut and ginger chicken"."""
    if not _are_food(first, second):
        return False
    determined = any(t.dep_ in QUANTIFYING for t in first.head.lefts)
    determined = determined or {first.head.tag_, second.head.tag_} == {"NNS"}  # "plates and bowls"
    return not determined and _bare_modifier(doc, second.head, second.begin) is not None


def _are_food(first: NamedThing, second: NamedThing) -> bool:
    """Whether both names are eaten: "chicken and rice"."""
    both = (first.entity, second.entity)
    return all(one.category == "food_kitchen" or one.name in MEATS for one in both)


def is_product(text: str, first: NamedThing, second: NamedThing) -> bool:
    """Whether two names of food say what a product tastes of ("Chicken & Rice 15kg"), or two names
    what a shop is called by ("Flowers & Gifts")."""
    capitals = first.head.text[0].isupper() and second.head.text[0].isupper()
    if capitals and second.head.lower_ in SHOPS:
        return True
    return _are_food(first, second) and _WEIGHT.match(text, end(second.head)) is not None


def is_choice(coordinator: str, second: NamedThing) -> bool:
    """Whether a name is only another one for what stands there: "a snack or appetizer"."""
    bare = not any(t.dep_ in QUANTIFYING for t in second.head.lefts)
    return coordinator == "or" and bare and second.head.tag_ in ("NN", "NNP")


def _is_plain(found: NamedThing) -> bool:
    """Whether a name is a singular without anything before it."""
    alone = found.head.i == found.begin.i and not any(found.head.lefts)
    return alone and found.head.tag_ in ("NN", "NNP")


def _bare_modifier(doc: Sequence[Word], head: Word, begin: Word) -> Word | None:
    """The noun between a conjunction and a name that it modifies, if nothing else is there.

    begin: the name's first token; head: its last.
    """
    first = min([*modifiers(head), begin], key=lambda t: t.i)
    bare = first.i < begin.i and first.dep_ == "compound" and first.tag_ in NOUNS
    joined = first.i > 0 and doc[first.i - 1].lower_ in ("and", "&", ",")
    return first if bare and joined else None


def _is_name(token: Word) -> bool:
    """Whether a word ends the name of somebody: "Julia Hartz"."""
    return token.tag_.startswith("NNP") and any(t.tag_.startswith("NNP") for t in token.lefts)
