"""Rows are read blind with planted faults among them, and objections are counted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_files import opened

TOOL = Path(__file__).parents[2] / "tools" / "read_rows.py"


@pytest.mark.slow
def test_planted_faults_are_hidden_and_the_power_of_readers_is_counted(
    text_release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: object) -> str:
        """What the tool prints; in this process, which has its imports behind it."""
        monkeypatch.setattr(sys, "argv", [str(TOOL), *map(str, words)])
        try:
            opened(TOOL).main()
        except SystemExit as stop:
            return str(stop.code)
        return capsys.readouterr().out

    words = ("draw", text_release, tmp_path, "t2i_homogenization", "--rows", 20, "--plants", 10)
    command = [sys.executable, TOOL, *words, "--seed", 3]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert "30 rows" in done.stdout, done.stderr
    key = json.loads((tmp_path / "key_t2i_homogenization.json").read_text())
    lines = (tmp_path / "t2i_homogenization.jsonl").read_text().splitlines()
    assert len(key["plants"]) == 10
    assert not {"id", "review", "provenance"} & json.loads(lines[0]).keys()
    assert "is made once" in run(*words, "--seed", 4)

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
