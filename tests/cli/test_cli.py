"""The command line as maintainers use it: build, rebuild, interrupt, compare."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from refusals import assert_refused
from typer.main import get_command

from counterprior.builders.bank import DEFAULT_BANK, FileRequest, begin_bank
from counterprior.builders.build import row_checks
from counterprior.builders.drawings import drawing
from counterprior.builders.seeds import draw_seeds
from counterprior.cards.validate import validate
from counterprior.cli.main import MOVED, app
from counterprior.release import iter_records
from counterprior.schema import ROWS, SeededRow

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = str(Path(sys.executable).with_name("counterprior"))


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_a_rebuild_elsewhere_in_another_order_is_the_same_to_the_byte(
    text_release: Path, tmp_path: Path, cli: Run
) -> None:
    names = ("spatial_uc", "t2i_correctness", "t2i_homogenization")
    options = [word for name in names for word in ("--config", name)]
    out = tmp_path / "deep" / "er" / "other"
    elsewhere = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    done = cli("build", "--out", out, "--jobs", 1, *options, cwd=tmp_path, env=elsewhere)
    assert done.returncode == 0, done.stderr
    assert files(out) == files(text_release)


def test_a_config_is_the_same_alone_and_among_others(
    full_release: Path, text_release: Path
) -> None:
    for config in ("t2i_homogenization", "t2i_correctness", "spatial_uc"):
        assert files(full_release / config) == files(text_release / config)


@dataclass(frozen=True)
class Request:
    """A drawing that takes no time."""

    key: str

    def draw(self) -> bytes:
        return self.key.encode()


def test_processes_are_started_for_drawings_and_not_for_the_files_of_a_bank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Request] = []

    class Pool(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            sent.extend(args[0])
            return super().submit(fn, *args, **kwargs)

    monkeypatch.setattr("counterprior.builders.drawings.spawned", Pool)
    with drawing(jobs=2, use_kept=False):
        begin_bank(DEFAULT_BANK)
    assert not sent
    files, images = ([Request(f"{kind} {n}") for n in range(60)] for kind in ("bank", "gold"))
    assert FileRequest("").key.split()[0] == "bank"
    with drawing(jobs=2, use_kept=False) as run:
        run.begin(files)
        assert run(files[0]) == b"bank 0" and not sent
        run.begin(images)
        assert sent == [*files[1:], *images]
        assert [run(request) for request in (*images, *files)] == [
            request.key.encode() for request in (*images, *files)
        ]


def test_seed_pictures_do_not_depend_on_the_number_of_processes(
    full_release: Path,
) -> None:
    config = "i2i_homogenization"
    made = [ROWS[config].model_validate(row) for row in iter_records(full_release, config)][::20]
    rows = [row for row in made if isinstance(row, SeededRow)]
    bare = [row.model_copy(update={"seed_image": None}) for row in rows]
    assert len(rows) == 55
    assert draw_seeds(bare, "render:", lambda drawn: None) == rows


@pytest.mark.slow
def test_without_pictures_the_configs_are_previews(tmp_path: Path, cli: Run) -> None:
    out = tmp_path / "bare"
    done = cli("build", "--out", out, "--config", "i2i_correctness", "--seed-images", "none")
    assert done.returncode == 0, done.stderr
    facts = json.loads((out / "manifest.json").read_text())["configs"][0]
    assert (facts["status"], facts["rows"], facts["pictures"]) == ("preview", 1100, 0)
    assert "`i2i_correctness` is a **preview**" in (out / "README.md").read_text()
    with patch("counterprior.cards.validate.record_problems", return_value=()):  # takes longest
        assert not validate(out, row_checks()).problems


@pytest.mark.slow
def test_interrupted_build_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "release"
    command = [COMMAND, "build", "--out", str(out), "--config", "i2i_homogenization"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("seed images"):
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.endswith("counterprior: interrupted; run the same command again to continue\n")
    assert not out.exists()


def test_build_refuses_to_replace_other_folders(tmp_path: Path, cli: Run) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    done = cli("build", "--out", tmp_path, "--config", "spatial_multi")
    assert_refused(done, "folder-not-empty", tmp_path, "--out")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        (["build", "--config", "nonsense"], "unknown-name", ("'nonsense'", "rule_decoupling")),
        (
            ["build", "--config", "i2i_correctness", "--seed-images", "magic:"],
            *("unknown-name", ("'magic'", "render")),
        ),
        (["build", "--seed-images", "render:?color"], "bad-spec", ("color", "key=value")),
        (["build", "--bank", "nowhere"], "no-such-file", ("nowhere/changes.yaml",)),
        (["diff", "nowhere", "nowhere"], "no-such-file", ("nowhere", "`build`")),
        (["verify", "."], "no-such-file", ("manifest.json", "`build`")),
    ],
)
def test_bad_input_gets_one_line_and_an_exit_code(
    tmp_path: Path, cli: Run, arguments: list[str], code: str, facts: tuple[str, ...]
) -> None:
    out = ["--out", "made"] if arguments[0] == "build" else []
    done = cli(*arguments, *out, cwd=tmp_path)
    # Of a bank, what it lacks is wrong; of the other words, the command is.
    assert_refused(done, code, *facts, exit_code=1 if "--bank" in arguments else 2)
    assert not (tmp_path / "made").exists()


def test_an_impossible_number_names_its_option(tmp_path: Path, cli: Run) -> None:
    done = cli("build", "--jobs", "0", "--out", "made", cwd=tmp_path)
    assert done.returncode == 2 and "--jobs" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_bank_with_a_bad_row_does_not_build(tmp_path: Path, cli: Run) -> None:
    import shutil

    from counterprior.builders.bank import DEFAULT_BANK

    bank = Path(shutil.copytree(DEFAULT_BANK, tmp_path / "bank"))
    file = bank / "actions.yaml"
    text = file.read_text()
    participle = next(
        line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("  participle: ")
    )
    file.write_text(text.replace(f"participle: {participle}", "participle: beside a tree", 1))
    done = cli("build", "--bank", bank, "--out", tmp_path / "out", "--config", "t2i_homogenization")
    assert_refused(done, "failed-checks", "t2i_homogenization-", "'beside'", exit_code=1)


@pytest.mark.slow
def test_a_retired_entry_leaves_the_config_and_stands_in_the_errata(
    text_release: Path, tmp_path: Path, cli: Run
) -> None:
    import shutil

    import yaml

    from counterprior.builders.bank import DEFAULT_BANK

    bank = Path(shutil.copytree(DEFAULT_BANK, tmp_path / "bank"))
    file = bank / "constrained" / "keyboards.yaml"
    entries = yaml.safe_load(file.read_text())
    # Two that are released and alone: not every entry of the bank is.
    released = {
        record["provenance"]["entry"] for record in iter_records(text_release, "t2i_correctness")
    }
    plain = {e["id"] for e in entries if e.get("status", "new") == "new" and "twin" not in e}
    plain -= {entry["twin"] for entry in entries if "twin" in entry}
    entries.sort(key=lambda entry: entry["id"] not in released & plain)
    entries[0] |= {"status": "retired", "erratum": "The legend is not where it was said to be."}
    entries[1] |= {"status": "revised", "erratum": "The context did not name the layout."}
    file.write_text(yaml.safe_dump(entries, sort_keys=False))
    out = tmp_path / "out"
    done = cli("build", "--bank", bank, "--out", out, "--config", "t2i_correctness")
    assert done.returncode == 0, done.stderr
    errata = (out / "ERRATA.md").read_text()
    for entry, status in ((entries[0], "retired"), (entries[1], "revised")):
        assert f"| {entry['id']} | {status} | {entry['erratum']} |" in errata
    found = json.loads(cli("diff", text_release, out, "--json").stdout)
    config = next(c for c in found["configs"] if c["name"] == "t2i_correctness")
    assert len(config["removed"]) == len(config["added"]) == 1
    assert len(config["edited"]) == 1
    assert found["bump"] == "MAJOR"
    before = (text_release / "ERRATA.md").read_text()
    assert all(entry["erratum"] not in before for entry in entries[:2])


@pytest.mark.slow
def test_counts_a_bank_without_a_release(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterprior.builders.bank import DEFAULT_BANK
    from counterprior.builders.suite import SHIPPED
    from counterprior.cli.release import validate

    # Each group that somebody looked at is drawn: of hundreds, two.
    groups = {look.group for look in SHIPPED.world_looks.values()} & SHIPPED.world_drawings.keys()
    few = set(sorted(groups)[:2])
    looks = {image: look for image, look in SHIPPED.world_looks.items() if look.group in few}
    monkeypatch.setitem(SHIPPED.__dict__, "world_looks", looks)
    files = (DEFAULT_BANK / "constrained").glob("*.yaml")
    retired = sum(file.read_text().count("\n  status: retired\n") for file in files)
    validate(None)
    shown, note = capsys.readouterr()
    assert re.search(r"all +│ +\d+ │ +\d+ │", shown)
    assert f"missing; {retired} entries are retired" in note
    validate(None, json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["release"]["all"]["pairs"] == found["planned"]


def test_a_bank_with_part_of_a_table_names_the_missing_file(tmp_path: Path, cli: Run) -> None:
    from counterprior.builders.bank import DEFAULT_BANK

    files = ("occupations.yaml", "animals.yaml", "actions.yaml")
    for file in files:
        (tmp_path / file).write_bytes((DEFAULT_BANK / file).read_bytes())
    done = cli("validate", "--bank", tmp_path, "--json")
    (fault,) = json.loads(done.stdout)["faults"]
    assert done.returncode == 1 and f"{tmp_path / 'objects.yaml'}: no such file" in fault
    assert ", ".join(files) in fault and "copy it" in fault
    for file in files:
        (tmp_path / file).unlink()
    (tmp_path / "frozen.yaml").write_bytes((DEFAULT_BANK / "frozen.yaml").read_bytes())
    (tmp_path / "rules.yaml").write_bytes((DEFAULT_BANK / "rules.yaml").read_bytes())
    done = cli("validate", "--bank", tmp_path, "--json")
    assert done.returncode == 0, "a bank of rules needs no entity"


def test_diff_of_equal_releases_is_none(text_release: Path, cli: Run) -> None:
    done = cli("diff", text_release, text_release, "--json")
    assert json.loads(done.stdout)["bump"] == "NONE"


def test_verify_prints_what_differs(text_release: Path, tmp_path: Path, cli: Run) -> None:
    import shutil

    root = tmp_path / "copy"
    shutil.copytree(text_release, root)
    (root / "LICENSE").write_text("none")
    done = cli("verify", root)
    assert done.returncode == 1
    assert "LICENSE: bytes differ from checksums.json" in done.stdout


@pytest.mark.slow
def test_a_former_name_answers_with_the_present_one(cli: Run) -> None:
    top = get_command(app).commands  # type: ignore[attr-defined]
    below = {name: getattr(command, "commands", {"": None}) for name, command in top.items()}
    commands = {f"{name} {word}".strip() for name, words in below.items() for word in words}
    for former, present in MOVED.items():
        done = cli(*former.split(), "a=a.jsonl", "--out", "tables", "--help")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"counterprior: `counterprior {former}` is now `counterprior {present}` "
            "[removed-name]\n"
        )
        assert former not in commands
        assert any(f"{present} ".startswith(f"{command} ") for command in commands)
    assert MOVED["mine"] == "corpus mine" and "race" not in cli("--help").stdout
