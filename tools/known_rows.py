"""Writes the digests of a release's rows to `known_rows.json`, which `verify` compares with, and
the digest of all of them to `CITATION.cff`.

    python tools/known_rows.py dist/counterprior

Run it on a full build after every change of the bank. Digests of published versions stay: each
config's list begins with that of the bank in this tree.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from counterprior.release import (
    KNOWN,
    combined_rows_digest,
    known_rows,
    parquet_path,
    read_checksums,
)
from counterprior.schema import ROWS

PUBLISHED: dict[str, list[str]] = {}
"""Config -> digests in versions on the Hub, oldest first; add those of a version when it is out."""


CITED = re.compile("sha256:[0-9a-f]{64}")
"""The digest as `CITATION.cff` states it."""


def main(release: Path) -> None:
    listed, known = read_checksums(release)["files"], known_rows()
    digests = {}
    for config in sorted(ROWS):
        entry = listed.get(parquet_path(config))
        current = [entry["rows_sha256"]] if entry else known.get(config, [])[:1]
        if digest_list := [*current, *PUBLISHED.get(config, [])]:
            digests[config] = list(dict.fromkeys(digest_list))
    text = json.dumps(digests, indent=1) + "\n"
    root = Path(__file__).parents[1]
    (root / KNOWN).write_text(text)
    citation = root / "CITATION.cff"
    combined = combined_rows_digest({config: listed[0] for config, listed in digests.items()})
    citation.write_text(CITED.sub(f"sha256:{combined}", citation.read_text("utf-8")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
