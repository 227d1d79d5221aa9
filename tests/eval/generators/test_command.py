"""A program of the user's own as generator: what it is told, and what it may do wrong."""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.clip_files import Clip
from counterprior.errors import UsageError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import Case, GeneratorError, ImageRequest
from counterprior.eval.engine.data import read_rows, row_fields
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.command import CommandGenerator

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


def test_a_program_may_make_a_clip(program: Program) -> None:
    two = "a, b = (Image.new('RGB', (32, 32), (int(seed), n, 9)) for n in (0, 90))\n"
    save = "a.save(output, save_all=True, append_images=[b], duration=250)\n"
    words = program(two + save) + " {prompt} {seed} {output}"
    made = open_generator(f"command:{words}?ending=webp").generate(ImageRequest("a dog", 7))
    assert isinstance(made, Clip) and (made.frames, made.fps) == (2, 4)
    with raises("bad-option", "ending", "'exe'", error=UsageError):
        open_generator(f"command:{words}?ending=exe")


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
    with raises("program-failed", "source", error=GeneratorError):
        run(words)
    with raises("program-failed", "{source}", error=GeneratorError):
        run(program(DRAW) + " {prompt} {seed} {output}", source=source)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('no GPU here')", ("program-failed", "status 1: no GPU here")),
        ("print('half done'); sys.exit(3)", ("program-failed", "status 3: half done")),
        ("os.kill(os.getpid(), 9)", ("program-failed", "SIGKILL")),
        ("1 / 0", ("program-failed", "status 1: ", "ZeroDivisionError")),
        ("pass", ("unreadable-image", "the image does not exist")),
        ("open(output, 'w').write('sorry')", ("unreadable-image", "the image")),
        ("Image.new('RGB', (4, 4)).save(output)", ("unreadable-image", "4 x 4", "16")),
        (
            "sys.stderr.write('x' * 9_000_000 + 'THE END'); sys.exit(1)",
            ("program-failed", "x" * 1900 + "THE END"),
        ),
    ],
)
def test_a_failure_is_an_error_with_its_last_words(
    program: Program, body: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=GeneratorError) as caught:
        run(program(body) + " {prompt} {seed} {output}")
    assert caught.value.status == "error" and len(str(caught.value)) < 2100


def test_status_77_is_a_refusal(program: Program) -> None:
    with raises("program-failed", "77", "not this one", error=GeneratorError) as caught:
        run(program("print('not this one'); sys.exit(77)") + " {prompt} {seed} {output}")
    assert caught.value.status == "refused"


def test_prompt_with_nul_is_an_error(program: Program) -> None:
    with raises("program-failed", "null byte", error=GeneratorError):
        run(program(DRAW) + " {prompt} {seed} {output}", "a\0b")


@pytest.mark.slow
def test_too_long_kills_all_that_the_command_started(program: Program, tmp_path: Path) -> None:
    child = tmp_path / "child"
    body = (
        "import subprocess\n"
        "started = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(child)!r}, 'w').write(str(started.pid))\n"
        "print('thinking', flush=True); time.sleep(60)\n"
    )
    with raises("program-failed", "1.5 s: thinking", error=GeneratorError):
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
    with raises("program-failed", "sent [MY_API_KEY] [HF_TOKEN]", error=GeneratorError) as caught:
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
        ("command:", ("missing-option", "command:COMMAND")),
        ("command:true {prompt}", ("bad-spec", "write {output}")),
        ("command:true {output}", ("bad-spec", "write {prompt}")),
        ("command:true {prompt} {output}?worker=yess", ("bad-option", "worker", "'yess'")),
        ("command:true {prompt} {output}?worker=1", ("bad-spec", "worker", "placeholders")),
        ("command:?worker=1", ("missing-option", "command:COMMAND")),
        (
            "command:true {prompt} {output}?timout=4",
            ("unknown-option", "'timout'", "mean timeout?"),
        ),
        ("command:no-such-program {prompt} {output}", ("no-such-file", "no-such-program")),
        ("command:true '{prompt} {output}", ("bad-spec", "No closing quotation")),
        (
            "command:true {prompt} {output}?timeout=soon",
            ("bad-option", "timeout", "'soon'"),
        ),
        ("command:true {prompt} {output}?timeout=0", ("bad-option", "timeout", "'0'")),
        ("command:true {prompt} {output}?timeout=nan", ("bad-option", "timeout", "'nan'")),
        ("command:true {prompt} {output}?steps=4", ("unknown-option", "steps")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(spec: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_generator(spec)


def test_every_field_of_the_row_is_a_placeholder(
    program: Program, text_release: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    words = program(f"open({str(seen)!r}, 'a').write('|'.join(rest) + '\\n')\n" + DRAW)
    words += " {prompt} {seed} {output} {first} {second_kind} {pair_type} {variant} {number}"
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / "run", limit=2)
    run_folder = generate(settings, f"command:{words}").run
    rows = {row.id: row for row in read_rows(str(text_release), "t2i_homogenization").rows}
    told = [line.split("|") for line in seen.read_text().splitlines()]
    assert len(told) == 4
    for case, line in zip(run_folder.cases(), told, strict=True):
        row: Any = rows[case.row]
        assert line == [row.first.name, row.second.kind, row.pair_type, case.variant, "0"]
    assert "fields" not in (tmp_path / "run" / "cases.jsonl").read_text()


def test_an_unknown_placeholder_is_refused_before_the_first_image(
    program: Program, text_release: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    words = program(f"open({str(seen)!r}, 'w')\n" + DRAW) + " {prompt} {seed} {output} {object_a}"
    settings = RunSettings("t2i_homogenization", str(text_release), tmp_path / "run", limit=2)
    with raises("unknown-name", "{object_a}", "prompt, ", "first", error=UsageError):
        generate(settings, f"command:{words}")
    assert not seen.exists()
    with raises("unknown-name", "{object_a}", error=UsageError):
        run(words)  # without a row


def test_row_fields_are_texts(text_release: Path) -> None:
    (row, *_) = read_rows(str(text_release), "t2i_homogenization").rows
    fields = row_fields(row)
    assert fields["first"] == row.first.name and fields["first_look"] == row.first.look  # type: ignore[attr-defined]
    assert json.loads(fields["seeds"]) == row.seeds
    assert not {"canary", "license", "review", "provenance"} & set(fields)
    assert all(isinstance(value, str) for value in fields.values())


LOOP = """
import json, os, sys, time
from PIL import Image
number = 0
for line in sys.stdin:
    asked = json.loads(line)
    number += 1
    reply = {"request": asked["request"], "output": asked["output"]}
    colour = (int(asked["seed"]) % 256, len(asked["prompt"]), number)
    Image.new("RGB", (32, 32), colour).save(asked["output"])
    {body}
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[str], CommandGenerator]:
    """A worker that draws; the body may change its reply, or anything else."""

    def start(body: str = "pass", options: str = "") -> CommandGenerator:
        path = tmp_path / "worker.py"
        path.write_text(LOOP.replace("{body}", body))
        words = shlex.join([sys.executable, str(path)])
        made = open_generator(f"command:{words}?worker=1{options}")
        assert isinstance(made, CommandGenerator)
        return made

    return start


Start = Callable[..., CommandGenerator]


def pixel(made: Image.Image) -> tuple[int, ...]:
    found = made.getpixel((0, 0))
    assert isinstance(found, tuple)
    return found


def test_a_worker_is_started_once(worker: Start) -> None:
    generator = worker("print('loading 50 %'); print('[1, 2]'); print('{\"progress\": 1}')")
    made = [pixel(generator.generate(ImageRequest("a dog", seed))) for seed in (7, 8, 9)]
    assert made == [(7, 5, 1), (8, 5, 2), (9, 5, 3)]
    assert generator.identity()["worker"] == "1"


def test_a_worker_edits_its_source_and_knows_the_row(worker: Start) -> None:
    generator = worker(
        "Image.open(asked['source']).save(asked['output']); assert asked['object_a'] == 'cat'"
    )
    case = Case("r", "plain", 7, 0, "p", ("c",), fields={"object_a": "cat"})
    source = Image.new("RGB", (32, 32), (1, 2, 3))
    assert pixel(generator.generate(ImageRequest("p", 7, source, case))) == (1, 2, 3)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (
            "reply = {'request': asked['request'], 'refused': 'not this'}",
            "refused",
            ("program-failed", "refused: not this"),
        ),
        (
            "reply = {'request': asked['request'], 'error': 'no memory'}",
            "error",
            ("program-failed", "error: no memory"),
        ),
        ("reply['output'] = '/no/where.png'", "error", ("unreadable-image", "/no/where.png")),
        ("reply['output'] = 7", "error", ("bad-answer", "output", "not 7")),
        ("open(asked['output'], 'w').write('x')", "error", ("unreadable-image", "output.png")),
        ("reply['request'] -= 1", "error", ("bad-answer", "request 0", "asked 1")),
        ("del reply['request']", "error", ("bad-answer", "request None", "asked 1")),
    ],
)
def test_accepts_and_refuses_answers_of_worker(
    worker: Start, body: str, status: str, reason: tuple[str, ...]
) -> None:
    generator = worker(body)
    with raises(*reason, error=GeneratorError) as caught:
        generator.generate(ImageRequest("a dog", 7))
    assert caught.value.status == status


def test_rejects_answer_to_earlier_request(worker: Start) -> None:
    generator = worker("print(json.dumps(reply), flush=True)")
    generator.generate(ImageRequest("a dog", 7))
    with raises("bad-answer", "request 1", "asked 2", error=GeneratorError):
        generator.generate(ImageRequest("a cat", 8))
    assert pixel(generator.generate(ImageRequest("a cat", 9))) == (9, 5, 1)


def test_a_worker_that_dies_is_asked_again_once(worker: Start, tmp_path: Path) -> None:
    died = tmp_path / "died"
    once = f"open({str(died)!r}, 'x') if number == 2 and not os.path.exists({str(died)!r}) else 0"
    generator = worker(f"x = {once}\n    if x: os.kill(os.getpid(), 9)")
    made = [pixel(generator.generate(ImageRequest("a dog", seed))) for seed in (7, 8, 9)]
    assert made == [(7, 5, 1), (8, 5, 1), (9, 5, 2)]
    always = worker("if asked['prompt'] == 'bad': print('oh', file=sys.stderr); sys.exit(3)")
    always.generate(ImageRequest("good", 7))
    with raises("program-failed", "status 3: oh", error=GeneratorError):
        always.generate(ImageRequest("bad", 7))
    always.generate(ImageRequest("good", 8))


def test_a_worker_that_never_answers_ends_the_run(worker: Start) -> None:
    generator = worker("import no_such_module")
    with raises("program-failed", "status 1: ", "no_such_module", error=LoadError):
        generator.generate(ImageRequest("a dog", 7))


def test_a_late_worker_is_killed(worker: Start, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"open({str(pid)!r}, 'w').write(str(os.getpid())); print('hm', flush=True)"
    generator = worker(f"{body}; time.sleep(60 if number == 2 else 0)", "&timeout=5")
    generator.generate(ImageRequest("a dog", 7))
    generator._worker._timeout = 0.3  # type: ignore[union-attr]
    with raises("timed-out", "0.3 s: hm", error=GeneratorError):
        generator.generate(ImageRequest("a dog", 7))
    assert not _alive(int(pid.read_text()))


@pytest.mark.parametrize("signal", [2, 9, 15])
def test_a_worker_ends_with_us(worker: Start, tmp_path: Path, signal: int) -> None:
    import subprocess

    pid = tmp_path / "pid"
    worker(f"open({str(pid)!r}, 'w').write(str(os.getpid()))")
    words = shlex.join([sys.executable, str(tmp_path / "worker.py")])
    code = (
        "import time\n"
        "from counterprior.eval.core import ImageRequest\n"
        "from counterprior.eval.generators import open_generator\n"
        f"generator = open_generator({f'command:{words}?worker=1'!r})\n"
        "generator.generate(ImageRequest('a dog', 7))\n"
        "print('made', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as ours:
        assert ours.stdout is not None and ours.stdout.readline() == b"made\n"
        ours.send_signal(signal)
    for _ in range(500):
        if not _alive(int(pid.read_text())):
            break
        time.sleep(0.02)
    assert not _alive(int(pid.read_text()))


def test_a_worker_keeps_secrets(worker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-1")
    said = "reply = {'request': asked['request'], 'error': os.environ['MY_API_KEY']}"
    with raises("program-failed", "[MY_API_KEY]", error=GeneratorError):
        worker(said).generate(ImageRequest("a dog", 7))


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
