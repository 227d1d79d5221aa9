"""How a run flows: questions and images without barriers, money under a cap."""

from __future__ import annotations

import io
import json
import operator
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior.agents.budget import BudgetError
from counterprior.agents.threads import in_threads
from counterprior.eval.core import Question, Verdict
from counterprior.eval.engine import frames
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.making import Encoders
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run, generate, judge_run
from counterprior.eval.generators import as_generator
from counterprior.eval.store.verdicts import VERDICTS, VerdictLog
from counterprior.storage import read_records

Cli = Callable[..., subprocess.CompletedProcess[str]]


def settings_of(data: Path, out: Path, limit: int) -> RunSettings:
    return RunSettings("t2i_homogenization", str(data), out, limit=limit)


@pytest.fixture(scope="module")
def images(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 100 images, all alike; read only."""
    out = tmp_path_factory.mktemp("flow") / "run"
    red_square = as_generator(lambda prompt, seed: Image.new("RGB", (32, 32), "red"))
    assert len(generate(settings_of(text_release, out, 50), red_square).run.images()) == 100
    return out


class Reading:
    """A judge that answers when it has been given `ahead` questions, the newest first."""

    def __init__(self, ahead: int, dies_after: int = 1000) -> None:
        self.ahead, self.dies_after = ahead, dies_after
        self.most = 0
        self.answered: list[str] = []

    def identity(self) -> dict[str, str]:
        return {"kind": "reading"}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        held: list[Question] = []
        for question in questions:
            held.append(question)
            self.most = max(self.most, len(held))
            if len(held) == self.ahead:
                yield from self._answer(held)
        yield from self._answer(held)

    def _answer(self, held: list[Question]) -> Iterator[tuple[Question, Verdict]]:
        while held:
            if len(self.answered) == self.dies_after:
                raise BudgetError("enough")
            question = held.pop()
            self.answered.append(question.id)
            label = random.Random(question.id).choice(question.labels)
            yield question, Verdict(label, label)


def judged(run: Path, out: Path, judge: Reading) -> VerdictLog:
    """The verdicts on a copy of the run, which may have some already."""
    if not out.exists():
        shutil.copytree(run, out)
    ((log, _),) = judge_run(out, [judge], JudgeSettings(("swap",))).judged
    return log


def records(log: VerdictLog) -> list[dict[str, Any]]:
    return list(read_records(log.root / VERDICTS))


def test_a_judge_may_read_as_far_ahead_as_it_likes(images: Path, tmp_path: Path) -> None:
    plain = records(judged(images, tmp_path / "plain", Reading(1)))
    eager = Reading(1000)
    far = records(judged(images, tmp_path / "far", eager))
    assert eager.most == 200
    key = operator.itemgetter("key")
    assert plain != far and sorted(plain, key=key) == sorted(far, key=key)


def test_images_are_opened_when_a_judge_wants_them(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    real = frames.open_image
    monkeypatch.setattr(frames, "open_image", lambda path: opened.append(path) or real(path))
    judge = Reading(1, dies_after=10)
    with raises("run-failed", error=BudgetError):
        judged(images, tmp_path / "run", judge)
    assert len(opened) == 6  # two questions each, and the one that was not answered


def test_asks_no_answered_question_again(images: Path, tmp_path: Path) -> None:
    first, second = Reading(64, dies_after=77), Reading(64)
    with raises("run-failed", error=BudgetError):
        judged(images, tmp_path / "run", first)
    found = records(judged(images, tmp_path / "run", second))
    assert len(first.answered) == 77 and len(second.answered) == 200 - 77
    assert len({record["key"] for record in found}) == len(found) == 200


def test_an_error_waits_for_what_is_under_way_and_starts_nothing_more() -> None:
    began, ended = [], []
    release = threading.Event()

    def work(number: int) -> int:
        began.append(number)
        if number == 2:
            threading.Timer(0.1, release.set).start()
            raise ValueError("two")
        release.wait(10)
        ended.append(number)
        return number

    with pytest.raises(ValueError, match="two"):
        list(in_threads(work, range(1000), 3))
    assert sorted(began) == [0, 1, 2] and sorted(ended) == [0, 1]


def test_an_interrupt_while_an_image_is_written_loses_no_record() -> None:
    encoders = Encoders()
    waits = threading.Event()

    def interrupted() -> str:
        waits.wait(10)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        return "first"

    encoders.put(interrupted)
    encoders.put(lambda: "second")
    with pytest.raises(KeyboardInterrupt):
        waits.set()
        list(encoders.rest())
    assert list(encoders.rest()) == ["first", "second"]
    encoders.close()


# Images that a server makes.


def spec(server: Any, options: str = "attempts=2&timeout=5") -> str:
    return f"openai-image:img-1@{server.url}/v1?{options}"


def red(body: dict[str, Any]) -> bytes:
    """An image that its prompt decides."""
    buffer = io.BytesIO()
    color = random.Random(body["prompt"]).randbytes(3)
    Image.new("RGB", (32, 32), tuple(color)).save(buffer, "PNG")
    return buffer.getvalue()


def price_table(folder: Path, text: str = "{image: 0.04, edit: 0.06}") -> Path:
    path = folder / "prices.yaml"
    path.write_text(f"openai-image:img-1: {text}\n")
    return path


def test_images_of_a_server_are_made_several_at_a_time(
    text_release: Path, tmp_path: Path, server: Any
) -> None:
    together, all_there, asked = threading.Barrier(4), threading.Event(), []

    def draw(body: dict[str, Any]) -> bytes:
        asked.append(body)
        # The first image goes alone; of the seven others four are under way at once.
        if len(asked) > 1 and not all_there.is_set():
            together.wait(10)
            all_there.set()
        return red(body)

    server.draw = draw
    made = {}
    for number in (4, 1):
        settings = settings_of(text_release, tmp_path / str(number), 4)
        run = generate(settings, spec(server), Cost(concurrency=number)).run
        made[number] = {i.case: (i.status, i.sha256) for i in run.images().values()}
        server.draw = red
    assert all_there.is_set()
    assert made[4] == made[1] and len(made[4]) == 8
    assert {status for status, _ in made[4].values()} == {"made"}


def test_a_server_is_asked_96_questions_at_a_time(
    images: Path, tmp_path: Path, server: Any
) -> None:
    all_there, under_way = threading.Event(), []

    def answer(body: dict[str, Any]) -> str:
        under_way.append(1)
        if len(under_way) == 96:
            all_there.set()
        return "1" if all_there.wait(20) else "not enough"

    server.answer = answer
    judge = server.spec("openai", "timeout=30")
    shutil.copytree(images, tmp_path / "run")
    ((_, tally),) = judge_run(tmp_path / "run", [judge], cost=Cost(concurrency=96)).judged
    assert tally.labels.total() == 100 and "unparsed" not in tally.labels


@pytest.mark.slow
def test_a_cap_ends_the_images_and_a_higher_one_goes_on(
    text_release: Path, tmp_path: Path, server: Any, fault: Any, cli: Cli
) -> None:
    server.draw = red
    server.faults.extend([None, fault(status=400, code="moderation_blocked")])
    words: list[object] = [
        "generate",
        "--suite",
        "t2i_homogenization",
        "--data",
        text_release,
        "--limit",
        "5",
        "--generator",
        spec(server),
        "--out",
        tmp_path / "run",
        "--prices",
        price_table(tmp_path),
    ]
    capped = cli(*words, "--max-usd", "0.3")
    assert_refused(capped, "over-budget", "image", "0.0400 USD", "0.3 USD", exit_code=1)
    assert len(server.asked) == 7  # 0.28; a refusal counts in full
    run = Run.open(tmp_path / "run")
    assert sum(Decimal(i.usd) for i in run.results.every()) == Decimal("0.28")
    assert [i.status for i in run.images().values()].count("refused") == 1
    assert cli(*words, "--max-usd", "0.31").returncode == 1 and len(server.asked) == 7
    done = cli(*words, "--max-usd", "0.4")
    assert done.returncode == 0, done.stderr
    assert len(server.asked) == 10 and len(Run.open(tmp_path / "run").images()) == 10
    assert "9 images; 1 refused; 0.40 USD" in done.stderr


def test_lost_attempts_and_images_without_a_price_count(
    text_release: Path, tmp_path: Path, server: Any, fault: Any, naps: Any
) -> None:
    server.draw = red
    settings = settings_of(text_release, tmp_path / "run", 1)
    server.faults.append(fault(cut=True))
    unpriced = generate(settings, spec(server), Cost(concurrency=1)).run
    assert [image.usd for image in unpriced.results.every()] == ["", ""]
    lines = (tmp_path / "run" / "images.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "images.jsonl").write_text(lines[0])
    server.faults.append(fault(cut=True))
    table = price_table(tmp_path, "{image: 1, edit: 2}")
    with raises("over-budget", "1.0000", "3.0000", error=BudgetError):
        generate(settings, spec(server), Cost(1, 3.5, table))
    *_, last = generate(settings, spec(server), Cost(1, 5, table)).run.results.every()
    assert last.usd == "1" and json.loads(last.report)["lost_attempts"] == 1
    assert Cost(1, 5, table).plan(settings.out).budget.spent == 5


def test_a_lost_attempt_is_not_repeated_past_the_cap(
    text_release: Path, tmp_path: Path, server: Any, fault: Any, naps: Any
) -> None:
    server.draw = red
    server.faults.extend([fault(cut=True), fault(cut=True)])
    cost = Cost(1, 1.5, price_table(tmp_path, "{image: 1, edit: 2}"))
    with raises("over-budget", "1.0000", error=BudgetError):
        generate(settings_of(text_release, tmp_path / "run", 1), spec(server), cost)
    assert len(server.asked) == 1


def test_one_cap_is_over_images_and_all_judges_together(
    text_release: Path, tmp_path: Path, server: Any
) -> None:
    """The server's own tally of what it billed never passes the cap, however often it goes on."""
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "openai-image:img-1: {image: 0.04, edit: 0.06}\nopenai:m-1: {input: 1, output: 10}\n"
        "anthropic:m-1: {input: 1, output: 10}\n"
    )
    server.draw, server.answer = red, lambda body: "1"
    billed = {
        "/v1/images/generations": Decimal("0.04"),
        "/v1/chat/completions": Decimal(1 * 120 + 10 * 30) / 1_000_000,
        "/v1/messages": Decimal(1 * 120 + 10 * 30) / 1_000_000,
    }
    settings = settings_of(text_release, tmp_path / "run", 3)
    judges = [server.spec("openai"), server.spec("anthropic")]

    def asked() -> Counter[str]:
        return Counter(asked.path for asked in server.asked)

    for cap in (0.22, 0.2595):
        with raises("over-budget", f"{cap} USD", error=BudgetError):
            evaluate_run(settings, spec(server), judges, cost=Cost(1, cap, prices))
        assert sum(number * billed[path] for path, number in asked().items()) <= cap
    assert asked()["/v1/images/generations"] == 6 and 0 < asked()["/v1/chat/completions"] < 6
    before = asked()
    with raises(
        "over-budget", error=BudgetError
    ):  # what the images cost counts for a judge alone, too
        judge_run(settings.out, judges, cost=Cost(1, 0.25, prices))
    assert asked() == before
    done = evaluate_run(settings, spec(server), judges, cost=Cost(1, 1, prices))
    # One total for images and verdicts of all judges and runs of the command.
    assert done.total == sum(number * billed[path] for path, number in asked().items())
    assert done.spending.usd < done.total and not done.unpriced
    assert set(asked().values()) == {6} and asked().keys() == billed.keys()


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (None, ("no-price", "openai-image:img-1")),
        ("{input: 1, output: 2}", ("missing-field", "image", "edit", "` and `")),
        ("{image: 1, edit: -2}", ("out-of-range", "edit")),
    ],
)
def test_a_cap_needs_a_price(
    table: str | None, reason: tuple[str, ...], text_release: Path, tmp_path: Path, server: Any
) -> None:
    cost = Cost(max_usd=1, prices=price_table(tmp_path, table) if table else None)
    with raises(*reason):
        generate(settings_of(text_release, tmp_path / "run", 1), spec(server), cost)
    assert server.asked == []
