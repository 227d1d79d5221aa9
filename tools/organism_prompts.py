"""Writes the files that the recipes `organism-methods` and `organism-psg` read.

    python tools/organism_prompts.py

`rephrase.json`: answers in place of a language model, which state a layout in the words of an
organism's captions. `prompts/organism-against.txt`: 24 prompts of the held-out pairs, which state a
layout against the prior.
"""

from __future__ import annotations

import json
from pathlib import Path

from counterprior.eval.organisms.data import DRAWINGS, ENGLISH, ENTITIES, HELD_OUT, held_out_pairs


def write_files(folder: Path) -> None:
    """Write both files below `folder`."""
    rules, against = [], []
    for pair in held_out_pairs(ENTITIES, HELD_OUT, DRAWINGS):
        for first, second in (pair, pair[::-1]):
            against.append(ENGLISH.sentence(ENGLISH.right, first, second))
            for left, right in (pair, pair[::-1]):
                wording = ENGLISH.left if left == first else ENGLISH.right
                asked = [
                    f'mention "{first}" before',
                    f'"{left}" is on the left',
                    f'"{right}" on the right',
                ]
                answer = ENGLISH.sentence(wording, first, second)
                rules.append({"role": "rephrase", "contains": asked, "answer": answer})
    (folder / "rephrase.json").write_text(json.dumps(rules), encoding="utf-8")
    (folder / "prompts").mkdir(exist_ok=True)
    prompts = folder / "prompts" / "organism-against.txt"
    prompts.write_text("\n".join(against) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_files(Path())
