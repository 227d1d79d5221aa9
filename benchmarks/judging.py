"""How fast judges are: by the pipes that they have, not by the models behind them.

    python benchmarks/judging.py [--calls 1600] [--questions 16]

Two ratios, each measured in one run:

* A judge behind a server at concurrency 32, against the most that a server which takes 200 ms an
  answer can give to 32 callers. Client and server share this machine's cores.
* A local judge that reads the answers' probabilities off one forward pass, in batches of 8, against
  the same model writing its answer token by token, a question at a time, as judges usually do; and
  against writing in batches of 8, for what the batch alone gives.

The model is a random one of a real class; the longer its answers, the larger the second ratio.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from counterprior.agents.budget import Budget, PriceTable
from counterprior.eval.core import ORIGINAL, ImageRequest, Question
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.judges import CallPlan, open_judge
from counterprior.eval.judges.hf_vlm import LocalJudge

CALLERS = 32
DELAY = 0.2
BATCH = 8
WRITTEN = (8, 32)
"""Tokens of a written answer: a short sentence, and two."""

SERVER = """
import json, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = json.dumps({"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message":
    {"role": "assistant", "content": "1"}}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 1}}).encode()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def log_message(self, *told): pass
    def do_POST(self):
        began = time.monotonic()
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(max(0.0, began + %f - time.monotonic()))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
"""


def ask(number: int, shown: Image.Image) -> Question:
    """A question about its own image: no two calls are alike."""
    image = shown.copy()
    image.putpixel((0, 0), (number % 256, number // 256 % 256, 0))
    labels = ("first_left", "first_right", "invalid")
    return Question(
        case=str(number),
        name="order",
        probe=ORIGINAL,
        task="order",
        subjects=("dog", "cat"),
        labels=labels,
        prompt="A: dog. B: cat. Who is left?\n1: A\n2: B\n3: neither\nWrite one digit.\n",
        answers=dict(zip("123", labels, strict=True)),
        images=(image,),
    )


def scene() -> Image.Image:
    """512 x 384 pixels as the renderer draws them."""
    return draw(open_generator("render:"), ImageRequest("A dog and a cat.", 1))


def over_http(calls: int, image: Image.Image) -> float:
    """Answers a second of a judge at concurrency 32, ledger and images included."""
    command = [sys.executable, "-c", SERVER % DELAY]
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            plan = CallPlan(Path(folder), Budget(PriceTable.read(None)), CALLERS)
            judge = open_judge(f"openai:m@{url}", plan)
            # The first calls import the SDK and connect.
            warm = [ask(number, image) for number in range(2 * CALLERS)]
            assert {verdict.label for _, verdict in judge.judge(warm)} == {"first_left"}
            asked = [ask(number, image) for number in range(len(warm), len(warm) + calls)]
            start = time.perf_counter()
            answered = sum(verdict.label == "first_left" for _, verdict in judge.judge(asked))
            taken = time.perf_counter() - start
        finally:
            server.terminate()
    assert answered == calls
    return calls / taken


def seconds(work: Callable[[], object]) -> float:
    """The shorter of two runs."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def local(questions: int, image: Image.Image) -> tuple[float, dict[tuple[int, int], float]]:
    """Seconds a question: of the judge, and of writing, by (batch, tokens written)."""
    small = image.resize((96, 64))
    asked = [ask(number, small) for number in range(questions)]
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder))
        judge = open_judge(f"hf-vlm:{folder}?device=cpu&min_mass=0&batch={BATCH}")
        assert isinstance(judge, LocalJudge)
        write(judge, asked[:BATCH], BATCH, 2)
        list(judge.judge(asked[:BATCH]))
        read = seconds(lambda: list(judge.judge(asked))) / questions
        written = {
            (batch, tokens): seconds(lambda b=batch, t=tokens: write(judge, asked, b, t))  # type: ignore[misc]
            / questions
            for batch in (1, BATCH)
            for tokens in WRITTEN
        }
    return read, written


def write(judge: LocalJudge, questions: Sequence[Question], batch: int, tokens: int) -> None:
    """Lets the model write so many tokens a question."""
    for start in range(0, len(questions), batch):
        chats = [
            [{"role": "user", "content": content(question)}]
            for question in questions[start : start + batch]
        ]
        inputs = judge.processor.apply_chat_template(
            chats,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )
        judge.model.generate(
            **inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False
        )


def content(question: Question) -> list[dict[str, Any]]:
    return [
        {"type": "image", "image": question.images[-1]},
        {"type": "text", "text": question.prompt},
    ]


def save_model(folder: Path) -> None:
    """A Qwen3-VL of a few million random weights, by the tests' own builder."""
    import torch
    from transformers.utils import logging as transformers_logging

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixtures"))
    from tiny_vlm import Size, qwen3_vl

    transformers_logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    torch.manual_seed(0)
    made: tuple[Any, Any] = qwen3_vl(Size(width=256, layers=8))
    for part in made:
        part.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1600)
    parser.add_argument("--questions", type=int, default=16)
    asked = parser.parse_args()
    image = scene()
    rate, limit = over_http(asked.calls, image), CALLERS / DELAY
    print(f"over HTTP: {rate:.1f} answers/s of {limit:.0f}/s: {rate / limit:.1%} of the limit")
    read, written = local(asked.questions, image)
    print(f"local, probabilities in batch {BATCH}: {1000 * read:.1f} ms a question")
    for (batch, tokens), taken in written.items():
        print(
            f"  against writing {tokens} tokens in batch {batch}: {1000 * taken:.1f} ms, "
            f"{taken / read:.1f}x"
        )


if __name__ == "__main__":
    main()
