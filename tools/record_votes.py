"""Keeps what people said of rows in the bank, so that a release says which of them people read.

    counterprior audit serve dist/counterprior --kind bank --out votes    # each reader, own name
    python tools/record_votes.py votes/*.jsonl                      # -> builders/bank/votes.yaml
    python tools/record_votes.py votes/*.jsonl --bank mybank

Takes the files of the page as they are: a merged file lacks the rows on which readers are evenly
split, without which their agreement looks better than it is. Prints every objection with its note.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.votes import RowVotes, read_votes
from counterprior.eval.people.clicks import read_clicks
from counterprior.eval.people.forms import FORMS

HEAD = "# What people said of rows that they read; see docs/authoring.md.\n"


def record(files: Sequence[Path], bank: Path = DEFAULT_BANK) -> dict[str, RowVotes]:
    """Adds the votes of files of the page to a bank; returns all that it has.

    A reader's newer vote replaces an older one. Votes on another version of a row replace those on
    the one before.
    """
    votes = dict(read_votes(bank))
    for path in files:
        for task, clicks in sorted(read_clicks(path, FORMS["bank"]).items()):
            if "decision" not in clicks:
                continue
            row, _, digest = task.partition("@")
            before = votes.get(row)
            others = before.votes if before is not None and before.read == digest else {}
            decisions = dict(sorted({**others, path.stem: clicks["decision"]}.items()))
            votes[row] = RowVotes(row=row, read=digest, votes=decisions)
            if clicks["decision"] != "accept":
                print(f"{row}: {path.stem} says {clicks['decision']}: {clicks.get('note', '')}")
    lines = [
        f"- row: {vote.row}\n  read: {vote.read!r}\n  votes: {{"
        + ", ".join(f"{name!r}: {said}" for name, said in vote.votes.items())
        + "}\n"
        for _, vote in sorted(votes.items())
    ]
    (bank / "votes.yaml").write_text(HEAD + "".join(lines))
    return votes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", help="the page's files, one a reader")
    parser.add_argument("--bank", type=Path, default=DEFAULT_BANK)
    options = parser.parse_args()
    print(f"{len(record(options.files, options.bank)):,} rows have votes")


if __name__ == "__main__":
    main()
