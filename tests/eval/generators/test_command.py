"""A program of the user's own as generator: what it is told, and what it may do wrong."""

from __future__ import annotations

import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import open_generator

Program = Callable[[str], str]
HEAD = "import os, sys, time\nfrom PIL import Image\nprompt, seed, output, *rest = sys.argv[1:]\n"
DRAW = "Image.new('RGB', (32, 32), (int(seed), len(prompt), 9)).save(output)\n"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The words that run a Python program; it finds prompt, seed, output and rest set."""

    def write(body: str) -> str:
        path = tmp_path / "draw it.py"
        path.write_text(HEAD + body)
        return shlex.join([sys.executable, str(path)])

    return write


def run(words: str, prompt: str = "a dog", source: Image.Image | None = None) -> Image.Image:
    return open_generator(f"command:{words}").generate(ImageRequest(prompt, 7, source))


def test_an_image_is_made_from_prompt_and_seed(program: Program) -> None:
    made = run(program(DRAW) + " {prompt} {seed} {output}")
    assert made.mode == "RGB" and made.getpixel((0, 0)) == (7, 5, 9)


@pytest.mark.parametrize(
    "prompt",
    [
        "$(touch HACKED) `id`; rm x | cat > y & 'a' \"b\"",
        "--help",
        "{seed} {output}",
        "two\nlines",
        "dóg 犬 \U0001f415",
        "",
        "%s \\n $HOME *",
    ],
)
def test_no_shell_reads_a_prompt(program: Program, tmp_path: Path, prompt: str) -> None:
    seen = tmp_path / "seen"
    words = program(f"open({str(seen)!r}, 'w', newline='').write(prompt)\n" + DRAW)
    run(words + " {prompt} {seed} {output}", prompt)
    assert seen.read_text() == prompt
    assert sorted(p.name for p in tmp_path.iterdir()) == ["draw it.py", "seen"]


def test_placeholders_stand_within_words(program: Program) -> None:
    check = "assert (prompt, seed) == ('text=a dog', '7'); output = output[1:-1]; seed = 1\n"
    run(program(check + DRAW) + ' text={prompt} {seed} "[{output}]"')


def test_an_edit_gets_its_source(program: Program) -> None:
    body = "assert Image.open(rest[0]).mode == 'RGB'; Image.open(rest[0]).save(output)\n"
    words = program(body) + " {prompt} {seed} {output} {source}"
    source = Image.frombytes("RGB", (32, 24), random.Random(0).randbytes(32 * 24 * 3))
    assert run(words, source=source).tobytes() == source.tobytes()
    with pytest.raises(GeneratorError, match="needs a source"):
        run(words)
    with pytest.raises(GeneratorError, match=r"has no \{source\}, and this"):
        run(program(DRAW) + " {prompt} {seed} {output}", source=source)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('no GPU here')", "ended with status 1: no GPU here"),
        ("print('half done'); sys.exit(3)", "ended with status 3: half done"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("1 / 0", "status 1: .*ZeroDivisionError"),
        ("pass", "the image does not exist"),
        ("open(output, 'w').write('sorry')", "the image is no readable"),
        ("Image.new('RGB', (4, 4)).save(output)", "a side below 16"),
        ("sys.stderr.write('x' * 9_000_000 + 'THE END'); sys.exit(1)", "x{1900,2000}THE END$"),
    ],
)
def test_a_failure_is_an_error_with_its_last_words(
    program: Program, body: str, reason: str
) -> None:
    with pytest.raises(GeneratorError, match=f"(?s){reason}") as caught:
        run(program(body) + " {prompt} {seed} {output}")
    assert caught.value.status == "error" and len(str(caught.value)) < 2100


def test_status_77_is_a_refusal(program: Program) -> None:
    with pytest.raises(GeneratorError, match="not this one") as caught:
        run(program("print('not this one'); sys.exit(77)") + " {prompt} {seed} {output}")
    assert caught.value.status == "refused"


def test_a_prompt_that_no_program_can_be_given_is_an_error(program: Program) -> None:
    with pytest.raises(GeneratorError, match="can't be started"):
        run(program(DRAW) + " {prompt} {seed} {output}", "a\0b")


def test_too_long_kills_all_that_the_command_started(program: Program, tmp_path: Path) -> None:
    child = tmp_path / "child"
    body = (
        "import subprocess\n"
        "started = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(child)!r}, 'w').write(str(started.pid))\n"
        "print('thinking', flush=True); time.sleep(60)\n"
    )
    with pytest.raises(GeneratorError, match=r"took more than 1\.5 s: thinking"):
        run(program(body) + " {prompt} {seed} {output}?timeout=1.5")
    pid = int(child.read_text())
    for _ in range(200):
        if not _alive(pid):
            break
        time.sleep(0.02)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_error_keeps_the_secrets_of_the_environment(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-1")
    monkeypatch.setenv("HF_TOKEN", "hf_quite_secret_2")
    body = "print('sent', os.environ['MY_API_KEY'], os.environ['HF_TOKEN']); sys.exit(1)"
    with pytest.raises(GeneratorError, match=r"sent \[MY_API_KEY\] \[HF_TOKEN\]") as caught:
        run(program(body) + " {prompt} {seed} {output}")
    assert "secret" not in str(caught.value)


def test_nothing_is_left_behind(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(program(DRAW) + " {prompt} {seed} {output}")
    assert [p.name for p in tmp_path.iterdir()] == ["draw it.py"]


def test_a_changed_script_is_another_generator(program: Program) -> None:
    words = program(DRAW) + " {prompt} {seed} {output}"
    before = open_generator(f"command:{words}").identity()
    assert before["kind"] == "command" and "{prompt}" in before["command"]
    assert open_generator(f"command:{words}?timeout=9").identity() == before
    program(DRAW + "# mended")
    after = open_generator(f"command:{words}").identity()
    assert after["command"] == before["command"] and after["files"] != before["files"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("command:", "write {output}"),
        ("command:true {prompt}", "write {output} where it belongs"),
        ("command:true {output}", "write {prompt} where it belongs"),
        ("command:true {prompt} {output} {promt}", "no placeholder {promt}"),
        ("command:no-such-program {prompt} {output}", "'no-such-program' is no program"),
        ("command:true '{prompt} {output}", "No closing quotation"),
        ("command:true {prompt} {output}?timeout=soon", "could not convert"),
        ("command:true {prompt} {output}?timeout=0", "seconds above 0"),
        ("command:true {prompt} {output}?timeout=nan", "seconds above 0"),
        ("command:true {prompt} {output}?steps=4", "no option 'steps'"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(spec: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        open_generator(spec)


def test_an_interrupt_ends_the_command(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    pids: list[int] = []
    wait = subprocess.Popen.wait

    def interrupted(self: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is not None:
            pids.append(self.pid)
            raise KeyboardInterrupt
        return wait(self)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(program("time.sleep(60)") + " {prompt} {seed} {output}")
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
