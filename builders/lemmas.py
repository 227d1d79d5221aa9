"""Content words of English texts by dictionary form, and which of them mean the same.

The dictionary is cut from WordNet 3.1 (`vocabulary/NOTICE.md`); forms are found by its rules of
detachment and a list of irregular ones.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SYNONYMS = Path(__file__).parent / "vocabulary" / "synonyms.txt.gz"

FUNCTION_WORDS = frozenset(
    "a an the this that these those and or but nor so as than then if of in on at to from by with "
    "without into onto out off over under up down for about around across along through between "
    "behind beside before after above below near against inside outside within upon toward towards "
    "is are was were be been being am do does did done doing has have had having can could should "
    "would may might must will shall it its they them their there here he she his her him who whom "
    "whose which what when where while how why not no none nothing never neither all any both each "
    "every some one ones two three four five six seven eight nine ten other another same own such "
    "only just still even also very more most less least much many few too again away back now "
    "instead although though however because since until ago s t let".split()
)
"""Words without a subject of their own; no text is compared by them."""

IRREGULAR = dict(
    pair.split(":")
    for pair in (
        "men:man women:woman children:child people:person feet:foot teeth:tooth geese:goose "
        "mice:mouse leaves:leaf halves:half knives:knife shelves:shelf loaves:loaf wolves:wolf "
        "calves:calf hooves:hoof lives:life wives:wife thieves:thief scarves:scarf oxen:ox "
        "hung:hang stood:stand lay:lie lain:lie lying:lie laid:lay rose:rise risen:rise fell:fall "
        "fallen:fall grew:grow grown:grow flew:fly flown:fly sank:sink sunk:sink blew:blow "
        "blown:blow threw:throw thrown:throw drew:draw drawn:draw broke:break broken:break "
        "froze:freeze frozen:freeze melted:melt molten:melt bent:bend held:hold kept:keep "
        "lit:light burnt:burn shone:shine shown:show worn:wear wore:wear torn:tear swollen:swell "
        "spun:spin spread:spread stuck:stick struck:strike sat:sit ran:run swam:swim went:go "
        "gone:go came:come took:take taken:take gave:give given:give made:make ate:eat eaten:eat "
        "written:write wrote:write driven:drive drove:drive split:split cut:cut put:put set:set "
        "caught:catch brought:bring built:build sent:send lost:lose found:find felt:feel "
        "shrunk:shrink shrank:shrink shrunken:shrink slid:slide bound:bind wound:wind woven:weave "
        "sewn:sew hidden:hide bitten:bite begun:begin began:begin became:become told:tell "
        "paid:pay said:say read:read led:lead fed:feed swung:swing clung:cling dying:die tying:tie "
        "better:good best:good worse:bad worst:bad further:far farther:far"
        " met:meet sold:sell left:left"
    ).split()
)
_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ves", "f"),
    ("s", ""),
    ("ing", ""),
    ("ing", "e"),
    ("ed", ""),
    ("ed", "e"),
    ("est", ""),
    ("est", "e"),
    ("er", ""),
    ("er", "e"),
    ("ly", ""),
)
"""Endings and what stands in their place; the first that makes a known word is taken."""


@cache
def _dictionary() -> dict[str, dict[str, frozenset[str]]]:
    """Synonyms of a word, by part of speech."""
    table: dict[str, dict[str, frozenset[str]]] = {}
    for line in gzip.decompress(SYNONYMS.read_bytes()).decode().splitlines():
        pos, word, *same = line.split(" ")
        table.setdefault(word, {})[pos] = frozenset(same)
    return table


@cache
def lemma(word: str) -> str:
    """Dictionary form of a lower-case word; the word itself if no rule makes a known one.

    >>> lemma("cubes"), lemma("shriveled"), lemma("swimming"), lemma("hooves")
    ('cube', 'shrivel', 'swim', 'hoof')
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    dictionary = _dictionary()
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and not word.endswith("ss"):
            stem = word.removesuffix(ending)
            doubled = stem[:-1] if stem[-2:-1] == stem[-1:] and not instead else ""
            for form in (stem + instead, doubled):
                if (
                    len(form) > 2
                    and form in dictionary
                    and not (ending == "er" and word in dictionary)
                ):
                    return form
    return word.removesuffix("s") if not word.endswith("ss") and word not in dictionary else word


def content(text: str) -> Iterator[str]:
    """Lemmas of the words with a subject of their own, in order.

    >>> list(content("The leaves should lie flat on the board, without any juice."))
    ['leaf', 'lie', 'flat', 'board', 'juice']
    """
    for word in re.findall(r"[^\W\d_]+", text.lower().replace("'s", "")):
        if word not in FUNCTION_WORDS:
            yield lemma(word)


def synonyms(word: str, pos: str = "") -> frozenset[str]:
    """Words that share one of a lemma's three most frequent meanings, of one part of speech or all.

    >>> sorted(synonyms("puddle", "noun"))
    ['pool']
    """
    entry = _dictionary().get(word, {})
    return frozenset[str]().union(*(same for name, same in entry.items() if pos in ("", name)))
