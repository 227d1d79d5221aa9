"""Both protocols over a real socket: what is sent, what comes back, and every way to fail."""

import base64
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents.backends import open_backend
from counterprior.agents.budget import Budget, BudgetError, Price, PriceTable
from counterprior.agents.caller import Caller
from counterprior.agents.chat import (
    BackendError,
    ChatRequest,
    Completion,
    ImagePart,
    JsonSchema,
    Usage,
)
from counterprior.agents.ledger import Ledger

KEY = "sk-test-4f1c0de"
SCHEMA = JsonSchema(
    "item",
    {
        "type": "object",
        "properties": {"left": {"type": "string"}},
        "required": ["left"],
        "additionalProperties": False,
    },
)
ASK = ChatRequest("scout", "Be terse.", ("Name a thing.",), max_tokens=50)
PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])


def complete(server: Any, protocol: str, request: ChatRequest = ASK) -> Completion:
    return open_backend(server.spec(protocol)).complete(request)


@PROTOCOLS
def test_text_images_and_schema_arrive(server: Any, protocol: str) -> None:
    request = ChatRequest("judge", "Look.", (ImagePart(b"png"), "What?"), 9, SCHEMA)
    complete(server, protocol, request)
    body = server.asked[0].body
    image, text = body["messages"][-1]["content"]
    assert text == {"type": "text", "text": "What?"}
    data = base64.b64encode(b"png").decode()
    if protocol == "openai":
        assert image["image_url"]["url"] == f"data:image/png;base64,{data}"
        assert body["response_format"]["json_schema"] == {
            "name": "item",
            "strict": True,
            "schema": SCHEMA.body,
        }
        assert body["max_completion_tokens"] == 9
        assert body["messages"][0] == {"role": "system", "content": "Look."}
    else:
        assert image["source"] == {"type": "base64", "media_type": "image/png", "data": data}
        assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA.body}}
        assert body["max_tokens"] == 9
        assert body["system"][0]["text"] == "Look."
    assert "temperature" not in body


@PROTOCOLS
def test_an_answer_has_text_usage_and_the_raw_body(server: Any, protocol: str) -> None:
    server.answer = lambda body: "a \u2028 line"
    done = complete(server, protocol)
    assert (done.outcome, done.text, done.lost_attempts) == ("ok", "a \u2028 line", 0)
    # Anthropic's input_tokens leave out what the cache took; ours never do.
    expected = Usage(120, 30, 100) if protocol == "openai" else Usage(120, 30, 40, 60)
    assert done.usage == expected
    assert done.raw["id"] in ("c", "m")


def test_log_probabilities_of_the_first_token(server: Any) -> None:
    request = ChatRequest("judge", "s", ("u",), 1, top_logprobs=2)
    assert complete(server, "openai", request).first_token == (("1", -0.2), ("2", -1.8))
    assert server.asked[0].body["top_logprobs"] == 2
    with raises("unsupported", "anthropic"):
        complete(server, "anthropic", request)


@PROTOCOLS
@pytest.mark.parametrize(("finish", "outcome"), [("refusal", "refused"), ("length", "truncated")])
def test_refusal_and_truncation_are_outcomes(
    server: Any, protocol: str, finish: str, outcome: str, fault: Any
) -> None:
    server.faults.append(fault(finish=finish))
    done = complete(server, protocol)
    assert done.outcome == outcome
    assert done.usage is not None and done.usage.output_tokens == 30


@PROTOCOLS
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_passing_trouble_is_tried_again(
    server: Any, protocol: str, status: int, fault: Any, naps: list[float]
) -> None:
    server.faults += [fault(status=status), fault(status=status)]
    # No vendor's server: what it bills for a request that it took and failed, nobody knows.
    assert complete(server, protocol).lost_attempts == (2 if status in (408, 500) else 0)
    assert len(server.asked) == 3
    assert 0.3 <= naps[0] <= 0.5 and 0.7 <= naps[1] <= 1.0


@PROTOCOLS
@pytest.mark.parametrize(
    ("headers", "wait"), [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "2500"}, 2.5)]
)
def test_retry_after_is_honored(
    server: Any, protocol: str, headers: dict[str, str], wait: float, fault: Any, naps: list[float]
) -> None:
    server.faults.append(fault(status=429, headers=headers))
    complete(server, protocol)
    assert naps == [wait]


@PROTOCOLS
def test_a_wait_of_hours_ends_the_run(server: Any, protocol: str, fault: Any) -> None:
    server.faults.append(fault(status=429, headers={"retry-after": "7200"}))
    with raises("server-unreachable", "1", "127.0.0.1", "429", error=BackendError):
        complete(server, protocol)


@PROTOCOLS
@pytest.mark.parametrize(
    "kind", [{"cut": True}, {"torn": True}, {"delay": 1.5}, {"without": "usage"}]
)
def test_counts_attempts_that_may_have_been_billed(
    server: Any, protocol: str, kind: dict[str, Any], fault: Any, naps: list[float]
) -> None:
    server.faults.append(fault(**kind))
    done = open_backend(server.spec(protocol, "timeout=0.7")).complete(ASK)
    if kind == {"without": "usage"}:
        assert (done.outcome, done.usage, done.lost_attempts) == ("ok", None, 0)
    else:
        assert (done.outcome, done.lost_attempts, len(server.asked)) == ("ok", 1, 2)


@pytest.mark.parametrize(
    ("protocol", "missing"),
    [("openai", "choices"), ("anthropic", "content"), ("anthropic", "stop_reason")],
)
def test_a_body_of_another_form_is_tried_again(
    server: Any, protocol: str, missing: str, fault: Any, naps: list[float]
) -> None:
    server.faults.append(fault(without=missing))
    done = complete(server, protocol)
    assert done.outcome == "ok" and done.lost_attempts == 1


@PROTOCOLS
def test_a_dead_server_ends_the_run(server: Any, protocol: str, naps: list[float]) -> None:
    spec = server.spec(protocol)
    server.close()
    with raises("server-unreachable", "4", "127.0.0.1", error=BackendError):
        open_backend(spec).complete(ASK)
    assert len(naps) == 3


@PROTOCOLS
def test_a_rejected_request_is_an_error_of_its_own(server: Any, protocol: str, fault: Any) -> None:
    server.faults.append(fault(status=400, message="this image is not allowed"))
    done = complete(server, protocol)
    assert (done.outcome, done.usage) == ("error", None)  # this server may bill it
    assert "this image is not allowed" in done.text and len(server.asked) == 1


@PROTOCOLS
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_bad_key_ends_the_run_and_is_not_shown(
    server: Any, protocol: str, status: int, fault: Any
) -> None:
    key = "sk-test-4f1c0de"
    server.faults.append(fault(status=status, message=f"no such key: {key}"))
    variable = f"{protocol.upper()}_API_KEY"
    with raises("server-error", f"HTTP {status}", variable, error=BackendError) as caught:
        complete(server, protocol)
    assert "[key]" in str(caught.value) and key not in str(caught.value)
    assert key in json.dumps(server.asked[0].headers)  # so it was sent, and echoed


@PROTOCOLS
def test_a_key_that_a_server_echoes_is_not_kept(server: Any, protocol: str) -> None:
    server.answer = lambda body: "you are sk-test-4f1c0de"
    done = complete(server, protocol)
    assert done.text == "you are [key]" and "4f1c0de" not in json.dumps(done.raw)


@PROTOCOLS
def test_a_stand_in_for_a_key_is_a_word_like_others(
    server: Any, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{protocol.upper()}_API_KEY", "e")
    server.answer = lambda body: "Three geese."
    assert complete(server, protocol).text == "Three geese."


def test_a_server_of_ones_own_needs_no_key(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert complete(server, "openai").text == "Yes"
    with raises("no-token", "OPENAI_API_KEY", error=BackendError):
        open_backend("openai:gpt-6-luna")


@PROTOCOLS
def test_answers_can_be_bounded_for_small_servers(server: Any, protocol: str) -> None:
    backend = open_backend(server.spec(protocol, "max_tokens=20"))
    backend.complete(ASK)
    backend.complete(ChatRequest("judge", "s", ("u",), 5))
    name = {"openai": "max_completion_tokens", "anthropic": "max_tokens"}[protocol]
    assert [asked.body[name] for asked in server.asked] == [20, 5]
    assert backend.identity()["max_tokens"] == "20"


def test_identities_tell_vendor_from_other_servers(server: Any) -> None:
    own = open_backend(server.spec("openai", "temperature=0")).identity()
    assert own == {
        "kind": "openai",
        "model": "m-1",
        "provider": "custom",
        "server": server.url.removeprefix("http://"),
        "temperature": "0",
    }
    # Ledgers of a vendor's endpoint stay valid: it has no `server`.
    vendor = open_backend("anthropic:claude-sonnet-5-5").identity()
    assert vendor == {"kind": "anthropic", "model": "claude-sonnet-5-5", "provider": "anthropic"}
    named = open_backend("openai:gpt-6-luna@https://api.openai.com/v1").identity()
    assert named["provider"] == "openai" and "server" not in named


@PROTOCOLS
def test_two_servers_of_one_model_are_two_models(server: Any, protocol: str) -> None:
    urls = ("http://a.example:1/v1", "http://a.example:2/v1", "http://b.example:1/v1")
    found = [open_backend(f"{protocol}:m@{url}").identity() for url in urls]
    assert [who["server"] for who in found] == ["a.example:1", "a.example:2", "b.example:1"]
    secret = open_backend(f"{protocol}:m@http://me:{KEY}@A.example:1/v1/{KEY}").identity()
    assert secret == found[0]


@pytest.mark.parametrize(
    ("spec", "code", "fact"),
    [
        ("cohere:x", "unknown-name", "'cohere'"),
        ("openai:", "missing-option", "openai:MODEL"),
        ("openai:m?color=red", "unknown-option", "'color'"),
        ("openai:m?timeout=soon", "bad-option", "timeout must be a number of seconds"),
        ("openai:m?attempts=0", "bad-option", "attempts must be a whole number above 0"),
        ("anthropic:m?max_tokens=0", "bad-option", "max_tokens must be a whole number"),
        ("scripted:/nowhere.json", "bad-format", "no script"),
        ("replay:/nowhere.jsonl", "no-such-file", "no such ledger"),
        ("replay:x?tone=flat", "unknown-option", "'tone'"),
    ],
)
def test_refuses_a_wrong_spec_of_a_backend(spec: str, code: str, fact: str) -> None:
    with raises(code, fact):
        open_backend(spec)


@PROTOCOLS
def test_makes_no_attempt_above_the_cap(
    server: Any, protocol: str, fault: Any, naps: list[float], tmp_path: Path
) -> None:
    """A cut attempt may be billed, so that the next is paid beside it."""
    prices = PriceTable({f"{protocol}:m-1": Price(Decimal(0), Decimal(1_000_000))})
    outcomes = []
    for cap in (149, 150):  # an attempt may cost 50 dollars, an answer costs 30
        server.faults += [fault(cut=True), fault(status=503), fault(torn=True)]
        asked = len(server.asked)
        with Ledger(tmp_path / f"{cap}.jsonl") as ledger:
            budget = Budget(prices, Decimal(cap))
            caller = Caller(open_backend(server.spec(protocol)), ledger, budget)
            try:
                outcomes.append(caller.call("c", ASK, str).status)
            except BudgetError:
                outcomes.append("budget")
            assert budget.spent <= cap
            outcomes.append(len(server.asked) - asked)
            # Nothing stays reserved.
            budget.reserve(caller.identity, replace(ASK, max_tokens=cap - int(budget.spent)))
    assert outcomes == ["budget", 3, "ok", 4]
