"""How long the checker takes, against reading its file: python benchmarks/checker.py FILE [TIMES]

FILE is a published `per_sample.jsonl`, read TIMES (default 3) over under other sample ids.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.geometry.checker.summary import summarize
from counterprior.eval.judges.checker.run import check_file


def main() -> None:
    source, times = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.jsonl"
        with file.open("w") as out:
            for copy in range(times):
                for row in rows:
                    out.write(json.dumps(row | {"sample_id": f"{row['sample_id']}-{copy}"}) + "\n")
        start = time.perf_counter()
        for line in file.read_text("utf-8").splitlines():
            json.loads(line)
        read = time.perf_counter() - start
        start = time.perf_counter()
        metrics = summarize(check_file(file, CheckerRules()))
        taken = time.perf_counter() - start
    print(
        f"{metrics['total_samples']} images: {taken:.2f} s, {taken / read:.1f} x reading the JSON"
    )


if __name__ == "__main__":
    main()
