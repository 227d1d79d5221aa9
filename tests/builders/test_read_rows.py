"""Rows are read blind with planted faults among them, and objections are counted."""

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "read_rows.py"


def run(*words: object) -> str:
    command = [sys.executable, str(TOOL), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_planted_faults_are_hidden_and_the_power_of_readers_is_counted(
    text_release: Path, tmp_path: Path
) -> None:
    def draw(seed: int) -> str:
        words = ("draw", text_release, tmp_path, "t2i_homogenization", "--rows", 20, "--plants", 10)
        return run(*words, "--seed", seed)

    assert "30 rows" in draw(3)
    key = json.loads((tmp_path / "key_t2i_homogenization.json").read_text())
    lines = (tmp_path / "t2i_homogenization.jsonl").read_text().splitlines()
    assert len(key["plants"]) == 10
    assert not {"id", "review", "provenance"} & json.loads(lines[0]).keys()
    assert "is made once" in draw(4)

    # One reader sees all faults but two, the other objects to one row that has none.
    planted = sorted(map(int, key["plants"]))
    clean = next(n for n in range(30) if n not in planted)
    objections = {"ann": dict.fromkeys(planted[2:], "serious"), "bo": {clean: "small"}}
    for reader, of_reader in objections.items():
        rows = [{"n": n, "verdict": of_reader.get(n, "fine"), "why": "why"} for n in range(30)]
        file = tmp_path / f"t2i_homogenization_{reader}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run("count", tmp_path, "t2i_homogenization", "ann", "bo")
    assert "small 1 of 20" in printed and "serious 0 of 20" in printed
    assert "planted faults seen 8 of 10" in printed
    assert f"small: {key['ids'][clean]}: why" in printed

    (tmp_path / "t2i_homogenization_bo.jsonl").write_text(json.dumps(rows[0]) + "\n")
    assert "are missing" in run("count", tmp_path, "t2i_homogenization", "ann", "bo")
