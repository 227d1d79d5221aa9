"""Answers and ledgers that are not what they should be: one item fails, and is never paid again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from one_answer import KEY, judged, openai
from refusals import raises

from counterprior.agents.backends.http import hide, read_body
from counterprior.agents.chat import ChatRequest, Completion, UnusableModelError, Usage
from counterprior.agents.ledger import Ledger, LedgerError
from counterprior.eval.engine.costs import Cost
from counterprior.eval.roundtrips.log import StepRecord


class Saying:
    """A server whose every answer is these bytes."""

    def __init__(self) -> None:
        self.says: bytes = b""
        self.status = 200
        self.asked = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                server.asked += 1
                self.send_response(server.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(server.says)))
                self.end_headers()
                self.wfile.write(server.says)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def spec(self, protocol: str) -> str:
        root = f"{self.url}/v1" if protocol == "openai" else self.url
        return f"{protocol}:m@{root}?attempts=4&timeout=5&max_tokens=10"


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Saying]:
    for library in ("anthropic", "openai"):
        pytest.importorskip(library)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr("counterprior.agents.retry._sleep", lambda seconds: None)
    served = Saying()
    yield served
    served.close()


def tokens(value: str) -> str:
    return openai(usage={"prompt_tokens": 1, "completion_tokens": "@"}).replace('"@"', value)


def alternative(token: str, logprob: str) -> str:
    top = [{"token": "@1", "logprob": "@2"}]
    return openai(top=top).replace('"@1"', token).replace('"@2"', logprob)


BAD = {
    "logprob of 1000": (alternative('"1"', "1000"), "'1000' is no log probability"),
    "logprob that is text": (alternative('"1"', '"x"'), "'x' is no log probability"),
    "token that is no text": (alternative("7", "-0.1"), "'7', no text"),
    "a deep answer": ('{"a":' * 500 + "1" + "}" * 500, "nested too deeply"),
    "a very deep answer": ("[" * 200_000, "nested too deeply"),
    "a number of 5,000 digits": ("9" * 5000, "no JSON object"),
    "no JSON": ("<html>", "no JSON object"),
    "bytes that are no text": ("\udcff\udcfe", "no JSON object"),
    "a list": ("[]", "no JSON object"),
    "no choices": ('{"choices": []}', "not a chat completion"),
    "content that is no text": (openai(text=["1"]), "no text"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_the_failure_of_its_item(name: str, saying: Saying, tmp_path: Path) -> None:
    said, reason = BAD[name]
    saying.says = said.encode("utf-8", "surrogateescape")
    found, spent = judged(saying.spec("openai") + "&logprobs=5", tmp_path)
    assert found.label == "error" and reason in found.raw, found
    asked = saying.asked
    assert asked <= 3 and spent == 10 * asked  # each at its worst case
    for _ in range(2):  # recorded: a rerun neither stops nor pays
        again = judged(saying.spec("openai") + "&logprobs=5", tmp_path)
        assert again == (found, spent) and saying.asked == asked


def test_half_an_emoji_is_a_mark_in_its_text() -> None:
    said = json.dumps({"a": "so \ud83d", "b\ude00": ["\ud83d\ude00", 1]}).encode()
    assert read_body(said, KEY) == {"a": "so \ufffd", "b\ufffd": ["\U0001f600", 1]}
    taken = StepRecord("k", "caption", text="so \ud83d")  # a log of an earlier version
    assert len(taken.digest) == 64


NO_TOKENS = ["-5", "1e999", "NaN", "1000000000000", "0.5", '"many"', "true", "0", "null", "{}"]


@pytest.mark.parametrize("usage", NO_TOKENS)
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_an_answer_whose_usage_is_nonsense_is_kept_at_its_worst_case(
    protocol: str, usage: str, saying: Saying, tmp_path: Path
) -> None:
    if protocol == "openai":
        said = tokens(usage)
    else:
        block = '[{"type":"text","text":"1"}]'
        said = (
            f'{{"content":{block},"stop_reason":"end_turn",'
            f'"usage":{{"input_tokens":1,"output_tokens":{usage}}}}}'
        )
    saying.says = said.encode()
    found, spent = judged(saying.spec(protocol), tmp_path)
    assert (found.label, spent, saying.asked) == ("first_left", 10, 1)


USAGES: dict[str, tuple[Any, int]] = {
    "none": (None, 10),
    "a list": ([1], 10),
    "zeros": ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, 10),
    "the prompt only": ({"prompt_tokens": 1}, 10),
    "another API's names": ({"input_tokens": 1, "output_tokens": 3}, 3),
    "the answer only, and a long one": ({"completion_tokens": 4000}, 4000),
    "reasoning beside, with a total": (
        {
            "prompt_tokens": 1,
            "completion_tokens": 3,
            "completion_tokens_details": {"reasoning_tokens": 40},
            "total_tokens": 44,
        },
        43,
    ),
    "reasoning within, with a total": (
        {
            "prompt_tokens": 1,
            "completion_tokens": 8,
            "completion_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 9,
        },
        8,
    ),
    "reasoning without a total": (
        {
            "prompt_tokens": 1,
            "completion_tokens": 3,
            "completion_tokens_details": {"reasoning_tokens": 40},
        },
        43,
    ),
    "reasoning in the total alone": (
        {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 81},
        80,
    ),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage_is_what_the_provider_bills(name: str, saying: Saying, tmp_path: Path) -> None:
    report, billed = USAGES[name]
    choice = {"message": {"content": "1"}, "finish_reason": "stop"}
    saying.says = json.dumps({"choices": [choice], "usage": report}).encode()
    found, spent = judged(saying.spec("openai"), tmp_path)
    assert (found.label, spent, saying.asked) == ("first_left", billed, 1)


@pytest.mark.parametrize(
    ("status", "asked", "billed"),
    [(400, 1, 10), (422, 1, 10), (429, 4, 0), (500, 4, 40), (503, 4, 0), (408, 4, 40)],
)
def test_an_unknown_server_may_bill_what_it_rejects(
    status: int, asked: int, billed: int, saying: Saying, tmp_path: Path
) -> None:
    saying.status, saying.says = status, b'{"error": {"message": "no"}}'
    found, spent = judged(saying.spec("openai"), tmp_path)
    assert (found.label, saying.asked, spent) == ("error", asked, billed)


def test_a_refused_connection_is_not_billed(saying: Saying, tmp_path: Path) -> None:
    saying.close()
    found, spent = judged(saying.spec("openai"), tmp_path)
    assert (found.label, spent) == ("error", 0)


@pytest.mark.parametrize("status", [502, 504, 524])
def test_a_gateway_may_hide_a_bill(status: int, saying: Saying, tmp_path: Path) -> None:
    saying.status = status
    found, spent = judged(saying.spec("openai"), tmp_path)
    assert found.label == "error" and (saying.asked, spent) == (4, 40)


def escaped(how: Callable[[str], str]) -> str:
    return "".join(map(how, KEY))


ECHOES = {
    "plain": KEY,
    "slash": KEY.replace("/", r"\/"),
    "unicode": escaped(lambda c: f"\\u{ord(c):04x}"),
    "one letter": KEY.replace("s", r"\u0073"),
    "upper": KEY.replace("-", r"\u002D"),
    "twice": KEY.replace("s", r"\\u0073").replace("/", r"\\\/"),
    "url": KEY.replace("/", "%2F"),
    "html": KEY.replace("/", "&#47;").replace("-", "&#x2d;"),
}


@pytest.mark.parametrize("how", ECHOES)
@pytest.mark.parametrize("status", [200, 400, 503])
def test_a_key_in_any_form_lands_nowhere(
    how: str, status: int, saying: Saying, tmp_path: Path
) -> None:
    saying.status = status
    template = openai("you sent @ here") if status == 200 else '{"error":{"message":"bad @"}}'
    saying.says = template.replace("@", ECHOES[how]).encode()
    found, _ = judged(saying.spec("openai"), tmp_path)
    kept = b"\n".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()).decode()
    for text in (kept, found.raw, json.loads(json.dumps(found.raw))):
        assert KEY not in text and ECHOES[how] not in text and "qz1w" not in text, text
    assert "[key]" in found.raw or status == 200


def test_hiding_looks_into_every_string() -> None:
    value = {"a": [f"x {KEY}", {KEY: 1}], "b": None, "c": 2.5}
    assert hide(value, KEY) == {"a": ["x [key]", {"[key]": 1}], "b": None, "c": 2.5}
    assert hide("EMPTY is a word", "EMPTY") == "EMPTY is a word"


WHO = {"kind": "openai", "model": "m", "provider": "openai"}
ASK = ChatRequest("judge", "Look.", ("Where?",), 10)


def tampered(line: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a ledger line with one field replaced, or without it where `value` is `...`."""
    copy = json.loads(json.dumps(line))
    *names, last = path.split(".")
    place = copy
    for name in names:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy  # type: ignore[no-any-return]


FIELDS = [
    ("spec", 3),
    ("spec", ...),
    ("identity", []),
    ("identity", {"kind": 4}),
    ("request", None),
    ("request.role", 1),
    ("completion", ...),
    ("completion.outcome", "fine"),
    ("completion.text", None),
    ("completion.usage", {"input_tokens": 1}),
    ("completion.usage", {"input_tokens": -1, "output_tokens": 1}),
    ("completion.usage", {"input_tokens": "1", "output_tokens": 1}),
    ("completion.usage", 7),
    ("completion.first_token", [["1"]]),
    ("completion.first_token", [[1, 2]]),
    ("completion.first_token", [["1", "x"]]),
    ("completion.lost_attempts", -1),
    ("completion.lost_attempts", ...),
    ("usd", "-1"),
    ("usd", "NaN"),
    ("usd", 1.5),
    ("usd", ...),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a ledger of three calls."""
    path = tmp_path_factory.mktemp("ledger") / "l.jsonl"
    done = Completion("ok", "1", Usage(1, 1), {"id": "x"}, (("1", -0.1),))
    with Ledger(path) as ledger:
        for name in "abc":
            ledger.append(name, WHO, ASK, done, "1")
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_damaged_field_of_a_ledger_is_named_by_its_line(
    field: str, value: Any, recorded: list[bytes], tmp_path: Path
) -> None:
    lines = list(recorded)
    lines[2] = json.dumps(tampered(json.loads(lines[2]), field, value)).encode() + b"\n"
    (tmp_path / "ledgers").mkdir()
    path = tmp_path / "ledgers" / "l.jsonl"
    path.write_bytes(b"".join(lines))
    with Ledger(path, read_only=True) as ledger:
        assert ledger.find("a", WHO, ASK) is not None
        with raises("damaged-log", ":3:", "l.jsonl:3", "call b", error=LedgerError):
            ledger.find("b", WHO, ASK)
    with raises("damaged-log", "l.jsonl:3", error=LedgerError):
        Cost().plan(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"\x00" * 40,
        b'{"id": "\xff\xfe"}',
        b"\xff\xfe{\x00}\x00",
        b"[" * 100_000,
        b'{"id": 5}',
        b'{"id": null}',
        b'{"batch": [], "calls": []}',
        b'{"batch": "b", "calls": 3}',
        b'{"batch": "b", "calls": [1]}',
        b'{"run": {}, "inputs": 1}',
        b'{"text": 5}',
    ],
)
def test_a_damaged_line_of_a_ledger_is_named(
    line: bytes, recorded: list[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "l.jsonl"
    path.write_bytes(b"".join([*recorded[:2], line + b"\n", *recorded[2:]]))
    with raises("damaged-log", ":3:", "l.jsonl:3", error=LedgerError):
        Ledger(path)


@pytest.mark.parametrize("status", [400, 503])
def test_an_error_of_the_server_stays_short(status: int, saying: Saying, tmp_path: Path) -> None:
    saying.status, saying.says = status, b"[" * 300_000
    found, _ = judged(saying.spec("openai"), tmp_path)
    assert found.label == "error" and f"HTTP {status}" in found.raw and len(found.raw) < 700


@pytest.mark.parametrize("how", ECHOES)
def test_a_server_that_rejects_the_key_ends_the_run_without_it(
    how: str, saying: Saying, tmp_path: Path
) -> None:
    saying.status = 401
    saying.says = f'{{"error":{{"message":"bad {ECHOES[how]}"}}}}'.encode()
    with raises("server-error", "HTTP 401", "[key]", error=UnusableModelError) as caught:
        judged(saying.spec("openai"), tmp_path)
    kept = b"\n".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()).decode()
    for text in (kept, str(caught.value)):
        assert KEY not in text and ECHOES[how] not in text and "qz1w" not in text, text
