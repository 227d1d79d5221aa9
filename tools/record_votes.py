"""Keeps what people said of constrained pairs, so that a release says which of them a person read.

counterprior audit serve dist/counterprior --kind bank --out votes    # each reader, own name
counterprior audit merge votes/ann.jsonl votes/bo.jsonl --kind bank --out merged.jsonl
python tools/record_votes.py merged.jsonl                       # -> builders/bank/votes.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.votes import read_votes
from counterprior.parsing import read_rows


def record(merged: Path, bank: Path = DEFAULT_BANK) -> int:
    """Adds merged votes to a bank, newer ones in place of older; returns how many it has."""
    lines = {vote.pair: (vote.read, vote.said, vote.people) for vote in read_votes(bank).values()}
    for _, row in read_rows(merged):
        if "decision" in row:
            pair, _, digest = row["id"].partition("@")
            voters = sum("decision" in vote for vote in row["votes"].values())
            lines[pair] = digest, row["decision"], voters
    text = "# What people said of pairs that they read; see docs/gold.md.\n" + "".join(
        f"- {{pair: {pair}, read: {digest!r}, said: {said}, people: {people}}}\n"
        for pair, (digest, said, people) in sorted(lines.items())
    )
    (bank / "votes.yaml").write_text(text)
    return len(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{record(Path(sys.argv[1]))} pairs have votes")
