"""Writes the skeleton of `captions.jsonl`: captions with the pairs that their words say.

Half of the job is done by rules (templates whose pairs are known), half by hand (`WRITTEN`). What
the parser makes of each is added as `parsed` where it differs; those lines were read one by one,
and a parser's mistake stays a visible mistake.

    python tests/golden/make_captions.py > tests/golden/captions.jsonl
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

THINGS = (
    "cat dog horse rabbit fox bear parrot owl penguin turtle chair couch table bench cup bottle "
    "bowl plate spoon laptop keyboard camera bicycle car bus truck boat guitar violin drum book "
    "umbrella backpack suitcase clock vase lamp candle apple banana sandwich cake pizza woman man "
    "boy girl nurse teacher chef soldier photographer tree flower statue helmet kite surfboard"
).split()
MULTI = (
    "teddy bear|hot dog|school bus|cell phone|polar bear|coffee table|fire hydrant|police officer|"
    "wine glass|guinea pig|traffic light|tennis racket|security guard|stop sign|rubber duck"
).split("|")
ADJECTIVES = "small large red blue old white striped young brown black".split()
RELATIONS = (
    "near|beside|next to|in front of|behind|under|on top of|against|close to|to the left of|"
    "to the right of|alongside"
).split("|")
NUMBERS = "two three four several".split()
PLACES = "in the park|on a sunny day|at home|in black and white|at sunset|in the snow".split("|")

# {A} is a noun phrase. The pairs it says: letters, relation.
TEMPLATES: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("{A} and {B}", [("A", "and", "B")]),
    ("{A} and {B} {place}", [("A", "and", "B")]),
    ("{A} {rel} {B}", [("A", "rel", "B")]),
    ("{A} {rel} {B} {place}", [("A", "rel", "B")]),
    ("there is {A} and {B}", [("A", "and", "B")]),
    ("photo of {A} and {B}", [("A", "and", "B")]),
    ("a picture of {A} with {B}", [("A", "with", "B")]),
    ("{A} is standing {rel} {B}.", [("A", "rel", "B")]),
    ("{A} that is {rel} {B}", [("A", "rel", "B")]),
    ("{A}, {B} and {C}", [("A", ",", "B"), ("B", "and", "C")]),
    ("{A}, {B}, and {C} {place}", [("A", ",", "B"), ("B", "and", "C")]),
    ("{A} with {B}", [("A", "with", "B")]),
    ("{A} with {B} and {C}", [("A", "with", "B"), ("B", "and", "C"), ("A", "with", "C")]),
    ("{A} & {B}", [("A", "&", "B")]),
    ("a couple of {As} and {B}", [("A", "and", "B")]),
    ("a group of {As} {rel} {B}", [("A", "rel", "B")]),
    ("{num} {As} and {B}", [("A", "and", "B")]),
    ("{num} {As} {rel} {B}", [("A", "rel", "B")]),
    ("{A} in the rain", []),
    ("{A} for sale, free delivery", []),
    ("{A} seen {place}", []),
    ("{A} and its shadow", []),
    ("the joy and beauty of {A}", []),
    ("{A} without equal", []),
    ("{A} {place}. {B} {place}.", []),
]

WRITTEN = r"""
a hot dog next to a dog => hot dog|next to|dog
a teddy bear and a bear => teddy bear|and|bear
a polar bear and a bear => 
a bear and a polar bear => 
a tennis ball next to a ball => 
a girl and other children => 
dogs and other animals => 
a male nurse and a female nurse => male nurse|and|female nurse
a nurse and a female nurse => 
a civil engineer beside an architect => civil engineer|beside|architect
a man who is standing next to a horse => man|next to|horse
the woman that sits beside a dog => woman|beside|dog
a cat lying on a couch => cat|on|couch
a dog sitting in front of a house => dog|in front of|house
a boy standing to the left of a tree => boy|to the left of|tree
a lamp on the left side of a bed => lamp|on the left side of|bed
bride & groom => bride|&|groom
bride+groom => bride|+|groom
cat&dog => cat|&|dog
cat &amp; dog => cat|&|dog
cat &amp;amp; dog => cat|&|dog
a c\u200bat and a dog => cat|and|dog
\uff41 \uff43\uff41\uff54 and a dog => cat|and|dog
a cat  and   a dog => cat|and|dog
A CAT AND A DOG => cat|and|dog
A Cat And A Dog - Stock Photo => cat|and|dog
a cat\nand a dog => cat|and|dog
a _cat_ and a dog => 
Falchion Knife | Rust Coat => 
salt and pepper => 
the sleeping bag and the tent => sleeping bag|and|tent
a tent and a sleeping bag => tent|and|sleeping bag
stained glass and a candle => 
a dream catcher next to a bed => dream catcher|next to|bed
a magnifying glass and a book => 
a bag and a box => bag|and|box
an ice-cream and a cake => ice cream|and|cake
a fire-engine beside a bus => fire truck|beside|bus
cell phones and laptops => cell phone|and|laptop
knives and forks => knife|and|fork
wolves and sheep => wolf|and|sheep
mice and cats => mouse|and|cat
children and women => child|and|woman
firemen and policemen => firefighter|and|police officer
geese near a cow => goose|near|cow
a pair of shoes and a hat => shoe|and|hat
a herd of cows and a farmer => cow|and|farmer
a flock of sheep next to a dog => sheep|next to|dog
a bunch of flowers beside a cup => flower|beside|cup
cup of coffee and a book => cup|and|book
love and peace => 
freedom or death => 
the history and future of art => 
cat food and dog food => 
a dog house and a cat => house|and|cat
the cat's dog => 
a dog, not a cat => dog|not|cat
either a cat or a dog => cat|or|dog
a cat or a dog => cat|or|dog
the king, the queen and the prince => king|,|queen;queen|and|prince
a woman, a thing and a dog => woman|and|dog
apples, bananas, and oranges => apple|,|banana;banana|and|orange
a vase with flowers on a table => vase|with|flower;flower|on|table
a man riding a horse next to a car => man|next to|car
a man with a beard and a hat => man|with|hat
a nurse with a camera and a tripod => nurse|with|camera;camera|and|tripod;nurse|with|tripod
an elephant behind a fence => elephant|behind|fence
an eagle above a lake => 
a kite over a house => kite|over|house
a cat under a chair => cat|under|chair
a cat on top of a car => cat|on top of|car
motorcycle parked beside a truck => motorcycle|beside|truck
two dogs close to a boy => dog|close to|boy
a pirate and a parrot on a ship => pirate|and|parrot;parrot|on|ship
cop => 
 => 
dog dog dog => 
dog and dog => 
dog cat => 
dog. cat. => 
1 dog 2 cats => 
IMG_2044.JPG => 
cats 'n dogs => 
cat versus dog => cat|versus|dog
cat vs dog => cat|vs|dog
chien et chat => 
the White House and a flag => 
world cup and a football => 
a robot and an astronaut => robot|and|astronaut
a unicorn and a dragon => unicorn|and|dragon
the scissors beside the pencil => scissors|beside|pencil
headphones and a microphone => headphone|and|microphone
sunglasses, hat => sunglasses|,|hat
A mother with her baby => mother|with|baby
A mother with her daughter. => mother|with|daughter
her mother and father => mother|and|father
his wife and son => wife|and|son
the president and the senator => president|and|senator
an actor and an actress => 
waiter and waitress => waiter|and|waitress
a sofa and an armchair => couch|and|armchair
Sofa/Chair => couch|/|chair
table and chairs => table|and|chair
set of table and chairs => table|and|chair
shirt and tie => shirt|and|tie
a man in a shirt and tie => shirt|and|tie
boots & jacket => boot|&|jacket
left: a cat, right: a dog => 
on the left a cat and on the right a dog => 
person and groom on the beach => person|and|groom
actor and person at the premiere => actor|and|person
a person with his manager => person|with|manager
people and grooms => 
person , actor , at the premiere => 
a boxer against a person => 
a tent outside a boutique => tent|outside|boutique
a lamp between two chairs => lamp|between|chair
clashes between a soldier and a clown => soldier|and|clown
a cottage among trees => cottage|among|tree
a group under umbrellas => group|under|umbrella
a group of letters next to a dog => 
a picture with a dog => 
a desk with pictures and a lamp => desk|with|picture;picture|and|lamp;desk|with|lamp
a boy steals a car with a child inside => car|with|child
a male dressed in a cage and wearing glasses => 
the man concentrates on the ball => 
a mechanic works on a car => 
engaged couple on a park bench => couple|on|bench
a cricketer standing next to a wicket => cricketer|next to|wicket
a jacket and checkered dress => jacket|and|dress
he sat on a bench and played guitar => 
a gromble in a leather jacket standing on a stump => 
a washer and dryer set => washer|and|dryer
Summer Dress & Pants Set => dress|&|trouser
Easter Sticker and Activity Book => 
Mommy & Me Leggings => 
a beer mug and wine glass - path included => beer mug|and|wine glass
wearing goggles, white shirt and a leather jacket => goggles|,|shirt;shirt|and|jacket
a cat, a dog => 
a cat, a dog and a horse => cat|,|dog;dog|and|horse
a cat sleeps, he says, while the dog barks => 
a house by a tree => house|by|tree
a house by Penguin => 
"""


def article(noun: str) -> str:
    return "an" if noun[0] in "aeio" or noun == "umbrella" else "a"


def plural(noun: str) -> str:
    head, _, last = noun.rpartition(" ")
    irregular = {"man": "men", "woman": "women"}
    if last in irregular:
        last = irregular[last]
    elif last.endswith(("s", "x", "ch", "sh")):
        last += "es"
    else:
        last += "s"
    return f"{head} {last}".strip()


def phrase(noun: str, rng: random.Random) -> str:
    words = [noun] if rng.random() < 0.5 else [rng.choice(ADJECTIVES), noun]
    determiner = rng.choice([article(words[0]), article(words[0]), "the"])
    return " ".join([determiner, *words])


def templated(rng: random.Random, rounds: int) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    for _ in range(rounds):
        for template, says in TEMPLATES:
            names = dict(zip("ABC", rng.sample(THINGS + MULTI, 3), strict=True))
            relation = rng.choice(RELATIONS)
            slots = {letter: phrase(noun, rng) for letter, noun in names.items()}
            slots |= {f"{letter}s": plural(noun) for letter, noun in names.items()}
            slots |= {"rel": relation, "num": rng.choice(NUMBERS), "place": rng.choice(PLACES)}
            caption = template.format(**slots)
            if rng.random() < 0.2:
                caption = caption.capitalize()
            yield (
                caption,
                [(names[a], relation if link == "rel" else link, names[b]) for a, link, b in says],
            )


def written() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    for line in WRITTEN.strip("\n").split("\n"):
        caption, _, says = line.rpartition(" => ") if " => " in line else (line, "", "")
        pairs = [tuple(part.split("|")) for part in says.strip().split(";") if part]
        decoded = re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), caption)
        yield decoded.replace("\\n", "\n"), pairs  # type: ignore[misc]


def main() -> None:
    import pyarrow as pa

    from counterprior.corpus_analysis.captions.miner import Miner

    rows = dict(templated(random.Random(7), 85)) | dict(written())
    mined = Miner(prefilter=False, fast=False)(pa.array(list(rows)))
    for (caption, says), found in zip(rows.items(), mined, strict=True):
        parsed = [(p.first.name, p.relation, p.second.name) for p in found.pairs] if found else []
        row = {"caption": caption, "pairs": says}
        if parsed != [tuple(p) for p in says]:
            row["parsed"] = parsed
        print(json.dumps(row))


if __name__ == "__main__":
    main()
