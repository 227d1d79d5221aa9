"""Writes the frozen draw of a bank: all entries that it has now.

    python tools/freeze_draw.py builders/bank

Run it when entries of a bank that is not yet published join its draw, and not after: what is added
to a published bank gives rows of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from counterprior.builders.bank import read_entries
from counterprior.builders.frozen import FILE
from counterprior.builders.suite import Banks
from counterprior.builders.taxonomy import Action, Occupation, Thing


def main(bank: Path) -> None:
    banks = Banks(bank)
    tables = {
        "occupations": [
            entry.occupation for entry in read_entries(bank / "occupations.yaml", Occupation)
        ],
        "animals": [entry.name for entry in read_entries(bank / "animals.yaml", Thing)],
        "objects": [entry.name for entry in read_entries(bank / "objects.yaml", Thing)],
        "actions": [entry.id for entry in read_entries(bank / "actions.yaml", Action)],
        "rules": [rule.id for rule in banks.rules],
        "pairs": [pair.id for pairs in banks.pairs.values() for pair in pairs],
        "scenes": [
            scene.id for laws in banks.laws.values() for law in laws for scene in law.scenes
        ],
    }
    listed = [{"table": name, "entries": sorted(entries)} for name, entries in tables.items()]
    text = yaml.safe_dump(listed, sort_keys=False, width=100, default_flow_style=None)
    (bank / FILE).write_text(
        "# The entries that the fixed sizes of a release (v1) are drawn from; others are\n"
        "# additions, which give rows after these. Written by tools/freeze_draw.py.\n" + text,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
