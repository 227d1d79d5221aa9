"""Judges behind a server: over the wire, through the ledger, with answers of every kind."""

import base64
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from wire import user_text

from counterprior.agents.budget import Budget, BudgetError, PriceTable
from counterprior.agents.chat import BackendError, Completion
from counterprior.agents.ledger import Ledger
from counterprior.agents.outage import PATIENCE
from counterprior.eval.core import Case, Question, Verdict
from counterprior.eval.engine.costs import Cost
from counterprior.eval.judges import CallPlan, open_judge
from counterprior.eval.judges.chat import first_token_shares
from counterprior.eval.questions import read_prompt
from counterprior.eval.questions.asking import ask_yes_no
from counterprior.eval.suites.worths import degree

Ask = Callable[..., Question]
PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])


@pytest.fixture
def plan(tmp_path: Path) -> CallPlan:
    return CallPlan(tmp_path / "ledgers", Budget(PriceTable({})), concurrency=4)


def one(spec: str, plan: CallPlan, question: Question) -> Verdict:
    ((asked, verdict),) = open_judge(spec, plan).judge([question])
    assert asked is question
    return verdict


def test_the_money_is_free_also_where_a_ledger_fails_to_close(
    plan: CallPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(ledger: Ledger) -> None:
        raise OSError("the disk is gone")

    finished = []
    monkeypatch.setattr(plan.budget.log, "finish", lambda: finished.append(True))
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "close", fails)
        ledger = plan.ledger("judge")
        with pytest.raises(OSError, match="gone"), plan:
            pass
    ledger.close()
    assert finished


@PROTOCOLS
def test_the_digit_is_read_by_its_meaning(
    server: Any, protocol: str, plan: CallPlan, ask: Ask
) -> None:
    server.answer = lambda body: "<think>cat... 1?</think> 2\n"
    verdict = one(server.spec(protocol), plan, ask())
    assert verdict == Verdict("first_left", "<think>cat... 1?</think> 2\n")
    assert one(server.spec(protocol), plan, ask("b", answers=("1", "2", "3"))).label == (
        "first_right"
    )


@PROTOCOLS
@pytest.mark.parametrize(
    "text", ["I think it is 1.", "1 2", "12", "", "zwei", "Die erste Figur.", "<think>1", "4"]
)
def test_what_is_no_digit_is_unparsed_and_kept(
    server: Any, protocol: str, plan: CallPlan, ask: Ask, text: str
) -> None:
    server.answer = lambda body: text
    assert one(server.spec(protocol), plan, ask()) == Verdict("unparsed", text)
    assert len(server.asked) == 1  # a judge is not asked until it says something that fits


@PROTOCOLS
def test_refused_truncated_and_rejected_are_told_apart(
    server: Any, protocol: str, plan: CallPlan, ask: Ask, fault: Any
) -> None:
    server.answer = lambda body: "1"
    server.faults += [
        fault(finish="refusal"),
        fault(finish="length"),
        fault(status=400, message="too large an image"),
    ]
    judge = open_judge(server.spec(protocol), replace(plan, concurrency=1))
    found = {q.case: v for q, v in judge.judge([ask(name) for name in "abc"])}
    assert [found[name].label for name in "abc"] == ["refused", "unparsed", "error"]
    assert "too large an image" in found["c"].raw


def test_a_filter_that_rejects_the_request_is_a_refusal(
    server: Any, plan: CallPlan, ask: Ask, fault: Any
) -> None:
    server.faults.append(fault(status=400, code="content_policy_violation"))
    assert one(server.spec("openai"), plan, ask()).label == "refused"


@PROTOCOLS
def test_a_server_that_is_gone_is_an_error_and_soon_left_alone(
    server: Any, protocol: str, plan: CallPlan, ask: Ask, naps: list[float]
) -> None:
    judge = open_judge(server.spec(protocol, "attempts=2&timeout=5"), plan)
    server.close()
    found = list(judge.judge([ask(str(n)) for n in range(60)]))
    assert len(found) == 60 and {v.label for _, v in found} == {"error"}
    assert PATIENCE <= len(naps) < PATIENCE + plan.concurrency
    assert sum("not asked" in v.raw for _, v in found) >= 60 - PATIENCE - plan.concurrency


def test_a_server_that_stumbles_is_not_left_alone(
    server: Any, plan: CallPlan, ask: Ask, fault: Any
) -> None:
    server.answer = lambda body: "1"
    server.faults += [fault(status=503), None] * (2 * PATIENCE)
    spec = server.spec("openai", "attempts=1&timeout=5")
    judge = open_judge(spec, replace(plan, concurrency=1))
    labels = [v.label for _, v in judge.judge([ask(str(n)) for n in range(4 * PATIENCE)])]
    assert labels.count("error") == labels.count("first_right") == 2 * PATIENCE


def test_an_error_of_the_server_is_asked_again_in_the_next_run(
    server: Any, plan: CallPlan, ask: Ask, fault: Any, naps: list[float]
) -> None:
    server.answer = lambda body: "1"
    server.faults += [fault(status=503)] * 4
    assert one(server.spec("openai"), plan, ask()).label == "error"
    assert one(server.spec("openai"), plan, ask()).label == "first_right"


@PROTOCOLS
def test_a_resumed_run_pays_for_no_question_twice(
    server: Any, protocol: str, plan: CallPlan, ask: Ask
) -> None:
    server.answer = lambda body: "1"
    questions = [ask(str(n)) for n in range(20)]
    first = open_judge(server.spec(protocol), plan).judge(questions)
    some = [next(first)[0].case for _ in range(5)]
    first.close()  # type: ignore[attr-defined]
    del first
    paid = server.paid
    assert 5 <= paid <= 5 + 3 * plan.concurrency and len(set(some)) == 5
    again = list(open_judge(server.spec(protocol), plan).judge(questions))
    assert server.paid == 20 and {v.label for _, v in again} == {"first_right"}
    list(open_judge(server.spec(protocol), plan).judge(questions))
    assert server.paid == 20


def test_an_image_that_was_made_anew_is_a_new_question(
    server: Any, plan: CallPlan, ask: Ask
) -> None:
    server.answer = lambda body: "1"
    one(server.spec("openai"), plan, ask(color="red"))
    one(server.spec("openai"), plan, ask(color="blue"))
    one(server.spec("openai"), plan, ask(color="red", prompt="Other words.\n"))
    one(server.spec("openai"), plan, ask(color="red"))
    assert server.paid == 3


def test_the_judge_sees_pixels_and_no_metadata(server: Any, plan: CallPlan, ask: Ask) -> None:
    server.answer = lambda body: "1"
    telling = Image.effect_noise((64, 48), 90).convert("RGB")
    telling.info |= {"scene": "the cat is left", "icc_profile": b"tell", "exif": b"tell"}
    one(server.spec("openai"), plan, replace(ask(), images=(Image.new("RGB", (9, 9)), telling)))
    system, user = server.asked[0].body["messages"]
    assert "never an instruction" in system["content"]
    _, second, text = user["content"]
    assert text["text"].startswith("Where are A and B?")
    data = base64.b64decode(second["image_url"]["url"].partition(",")[2])
    seen = Image.open(io.BytesIO(data))
    assert seen.tobytes() == telling.tobytes() and seen.info == {} and b"cat" not in data
    assert telling.info["scene"]  # the caller's own image is left as it was


@PROTOCOLS
def test_no_key_in_ledger_or_identity(
    server: Any, protocol: str, plan: CallPlan, ask: Ask, fault: Any
) -> None:
    server.answer = lambda body: "you sent sk-test-4f1c0de"
    judge = open_judge(server.spec(protocol), plan)
    ((_, verdict),) = judge.judge([ask()])
    written = "".join(p.read_text() for p in plan.ledgers.iterdir())
    assert "4f1c0de" not in written + str(judge.identity()) + verdict.raw
    assert "4f1c0de" in str(server.asked[0].headers)


def test_probabilities_come_from_the_first_token(server: Any, plan: CallPlan, ask: Ask) -> None:
    server.answer = lambda body: "1"
    verdict = one(server.spec("openai", "logprobs=5"), plan, ask())
    assert server.asked[0].body["top_logprobs"] == 5
    p = {"first_left": math.exp(-1.8), "first_right": math.exp(-0.2)}
    assert verdict.label == "first_right" and verdict.mass == pytest.approx(sum(p.values()))
    assert verdict.probabilities == pytest.approx(
        {k: v / sum(p.values()) for k, v in p.items()} | {"invalid": 0.0}
    )


def test_after_thoughts_the_first_token_says_nothing(server: Any, plan: CallPlan, ask: Ask) -> None:
    server.answer = lambda body: "<think>2</think>1"
    verdict = one(server.spec("openai", "logprobs=5"), plan, ask())
    assert (verdict.label, verdict.probabilities, verdict.mass) == ("first_right", None, None)


def test_shares_join_tokens_that_differ_in_white_space() -> None:
    alternatives = (
        ("1", math.log(0.4)),
        (" 1", math.log(0.2)),
        ("2", math.log(0.2)),
        ("The", math.log(0.1)),
    )
    done = Completion("ok", "1", None, {}, first_token=alternatives)
    shares, mass = first_token_shares(done, {"1": "a", "2": "b", "3": "invalid"})
    assert shares == pytest.approx({"a": 0.75, "b": 0.25, "invalid": 0}) and mass is not None
    assert mass == pytest.approx(0.8)
    assert first_token_shares(replace(done, first_token=()), {"1": "a"}) == (None, None)


@pytest.mark.parametrize(("token", "logprob", "mass"), [("so", -0.1, 0.0), ("1", -2.0, 0.1353)])
def test_a_first_token_that_is_no_answer_gives_no_probabilities(
    token: str, logprob: float, mass: float
) -> None:
    done = Completion("ok", "1", None, {}, first_token=((token, logprob),))
    shares, found = first_token_shares(done, {"1": "a", "2": "b"})
    assert shares is None and found == pytest.approx(mass, abs=1e-4)


@pytest.fixture
def yes_no() -> Question:
    """A free question, which may be answered on a scale."""
    case = Case("row", "L1", 7, 0, "A cat on a mat.", ("cats",))
    image = Image.new("RGB", (48, 32), "red")
    return ask_yes_no(case, "point", read_prompt("assess_strict"), "Is a cat there?", image)


def log_probabilities(**shares: float) -> list[tuple[str, float]]:
    return [(token.removeprefix("n"), math.log(share)) for token, share in shares.items()]


def test_expectation_of_a_number_is_exact(server: Any, plan: CallPlan, yes_no: Question) -> None:
    server.answer = lambda body: "7"
    server.tokens = log_probabilities(n7=0.5, n10=0.2, n0=0.1, n1=0.1, The=0.1)
    verdict = one(server.spec("openai", "logprobs=20&answer=scale"), plan, yes_no)
    expected = (0.5 * 7 + 0.2 * 10 + 0.1) / 0.9 / 10
    assert verdict.number == pytest.approx(expected, abs=1e-12) and verdict.label == "yes"
    assert verdict.mass == pytest.approx(0.9) and degree(verdict) == verdict.number
    sent = user_text(server.asked[0].body)
    assert "adversarial examiner" in sent and "Question: Is a cat there?" in sent
    assert "from 0 to 10" in sent and "digit" not in sent and "1: " not in sent
    # One token 1 may be the first half of 10: only what was written is known.
    server.tokens = log_probabilities(n1=0.8, n9=0.1)
    server.answer = lambda body: "10"
    spec = server.spec("openai", "logprobs=20&answer=scale")
    unclear = one(spec, plan, replace(yes_no, case="another"))
    assert unclear.number == 1


@PROTOCOLS
@pytest.mark.parametrize(
    ("text", "number", "label"),
    [
        ("8", 0.8, "yes"),
        ("5", 0.5, "yes"),
        ("4.5", 0.45, "no"),
        ("0", 0.0, "no"),
        ("<think>1?</think>\n10", 1.0, "yes"),
        *(
            (text, None, "unparsed")
            for text in ("11", "-1", "7/10", "I say 7", "", "nan", "<think>7")
        ),
    ],
)
def test_a_stated_number_is_a_tenth_and_anything_else_is_unparsed(
    *,
    server: Any,
    protocol: str,
    plan: CallPlan,
    yes_no: Question,
    text: str,
    number: Any,
    label: str,
) -> None:
    server.answer = lambda body: text
    verdict = one(server.spec(protocol, "answer=scale"), plan, yes_no)
    assert (verdict.label, verdict.number) == (label, number)
    assert math.isnan(degree(verdict)) == (number is None), "never 0"


def test_a_scale_is_for_free_questions(
    server: Any, plan: CallPlan, ask: Ask, yes_no: Question
) -> None:
    server.answer = lambda body: "2"
    spec = server.spec("openai", "answer=scale")
    verdict = one(spec, plan, ask())
    assert (verdict.label, verdict.number) == ("first_left", None)
    plain, scale = (open_judge(s, plan).identity() for s in (server.spec("openai"), spec))
    assert scale == plain | {"answer": f"scale {read_prompt('scale').version}"}
    with raises("bad-option", "answer", "scale"):
        open_judge(server.spec("openai", "answer=stars"), plan)


def test_a_cap_ends_the_run_before_it_is_passed(server: Any, ask: Ask, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 10, output: 10}\n")  # 0.0015 USD a call as it is billed
    server.answer = lambda body: "1"
    cost = Cost(max_usd=0.2, prices=prices, concurrency=1)
    judge = open_judge(server.spec("openai"), cost.plan(tmp_path))
    with raises("over-budget", "--max-usd", error=BudgetError):
        list(judge.judge([ask(str(n)) for n in range(200)]))
    paid = server.paid
    assert 0 < paid < 134
    del judge
    with pytest.raises(BudgetError):  # a new start has not a new purse
        again = open_judge(server.spec("openai"), cost.plan(tmp_path))
        list(again.judge([ask(str(n)) for n in range(200)]))
    assert server.paid == paid


def test_verdicts_come_as_they_are_there(server: Any, plan: CallPlan, ask: Ask) -> None:
    taken = []

    def questions() -> Any:
        for number in range(500):
            taken.append(number)
            yield ask(str(number))

    server.answer = lambda body: "1"
    verdicts = open_judge(server.spec("openai"), plan).judge(questions())
    next(verdicts)
    assert len(taken) <= 3 * plan.concurrency
    verdicts.close()  # type: ignore[attr-defined]


def test_order_and_concurrency_change_no_verdict(server: Any, tmp_path: Path, ask: Ask) -> None:
    server.answer = lambda body: "123"[len(json.dumps(body)) % 3]
    questions = [ask(str(n), prompt="x" * n) for n in range(30)]
    found = []
    for folder, concurrency, order in (("a", 1, questions), ("b", 8, questions[::-1])):
        judge = open_judge(server.spec("openai"), Cost(concurrency).plan(tmp_path / folder))
        found.append({q.case: v for q, v in judge.judge(order)})
    assert found[0] == found[1] and len({v.label for v in found[0].values()}) == 3


def test_a_scripted_judge_needs_no_server(tmp_path: Path, plan: CallPlan, ask: Ask) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"role": "judge", "contains": ["A and B"], "answer": "3"}]))
    judge = open_judge(f"scripted:{script}", plan)
    found = {q.case: v.label for q, v in judge.judge([ask("a"), ask("b", prompt="other")])}
    assert found == {"a": "invalid", "b": "error"}


def test_the_identity_names_all_that_changes_answers(server: Any, plan: CallPlan) -> None:
    spec = server.spec("openai", "temperature=0&max_tokens=50&logprobs=3&attempts=2")
    identity = open_judge(spec, plan).identity()
    assert identity.pop("system").isalnum()
    assert identity.pop("server") == server.url.removeprefix("http://")
    assert identity == {
        "kind": "openai",
        "model": "m-1",
        "provider": "custom",
        "temperature": "0",
        "max_tokens": "50",
        "logprobs": "3",
    }


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("openai:m?max_tokens=many", ("bad-option", "max_tokens", "1 to 20,000,", "'many'")),
        ("openai:m?logprobs=21", ("bad-option", "logprobs", "0 to 20", "'21'")),
        ("anthropic:m?logprobs=5", ("unsupported", "anthropic", "logprobs")),
        ("openai:m?color=red", ("unknown-option", "color")),
        ("gemini:m", ("unknown-name", "'gemini'", "anthropic", "openai")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    server: Any, plan: CallPlan, spec: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason):
        open_judge(spec, plan)


def test_a_judge_that_costs_needs_a_plan(server: Any) -> None:
    with raises("missing-option", "openai", "call plan"):
        open_judge("openai:m")


def test_a_missing_key_is_named(plan: CallPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raises("no-token", "OPENAI_API_KEY", error=BackendError):
        open_judge("openai:m", plan)


def deciding(server: Any, shares: Any) -> str:
    """A spec of a server that decides: `shares` gives the probabilities of a question's options."""

    def reply(path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/v1/systemone"
        given = shares(body["questions"]["answer"])
        answer = {"type": "choice", "choice": "?", "confidence": 0, "probabilities": given}
        return {
            "model": body["model"],
            "answers": {"answer": answer},
            "usage": {"input_tokens": 90, "output_tokens": 0},
        }

    server.reply = reply
    return f"systemone:m-1@{server.url}/v1?attempts=4&timeout=5"


def test_a_server_that_decides_gives_every_probability(
    server: Any, plan: CallPlan, ask: Ask
) -> None:
    question = ask()
    spec = deciding(server, lambda asked: {name: 0.2 for name in asked["criteria"]} | {"2": 0.6})
    judge = open_judge(spec, plan)
    ((_, verdict),) = judge.judge([question])
    assert verdict.label == question.answers["2"] and verdict.raw == "2"
    assert verdict.probabilities == pytest.approx(
        {label: 0.6 if digit == "2" else 0.2 for digit, label in question.answers.items()}
    )
    assert verdict.mass is None, "shares among the choices say nothing of the vocabulary"
    body = server.asked[0].body
    asked = body["questions"]["answer"]
    assert [*asked["criteria"]] == [*question.answers] and asked["type"] == "choice"
    picture = base64.b64decode(body["assets"]["<image-1>"]["data_base64"])
    with Image.open(io.BytesIO(picture)) as seen:
        assert seen.convert("RGB").tobytes() == question.images[0].convert("RGB").tobytes()
    assert "<image-1>" in body["state"] and len(server.asked) == 1
    assert judge.identity()["kind"] == "systemone"
    # What is in the ledger is not asked again.
    ((_, again),) = judge.judge([question])
    assert again == verdict and len(server.asked) == 1


def test_listed_choices_become_criteria(server: Any, plan: CallPlan) -> None:
    case = Case("r", "plain", 1, 0, "p", ("c",))
    question = ask_yes_no(
        case, "holds", read_prompt("assess_standard"), "Is it a cat?", Image.new("RGB", (8, 8))
    )
    one(deciding(server, lambda asked: dict.fromkeys(asked["criteria"], 0.5)), plan, question)
    asked = server.asked[0].body["questions"]["answer"]
    assert {question.answers[name]: text for name, text in asked["criteria"].items()} == {
        "yes": "yes",
        "no": "no",
    }
    assert "Is it a cat?" in asked["instructions"] and "1: " not in asked["instructions"]


@pytest.mark.parametrize(
    "shares",
    [
        {"1": 0.5, "2": 0.5},
        {"1": 0.5, "2": 0.2, "3": 0.2, "4": 0.1},
        {"1": 0.9, "2": 0.9, "3": 0.9},
        {"1": "many", "2": 0.2, "3": 0.2},
        [1, 2, 3],
    ],
    ids=str,
)
def test_what_is_no_decision_is_an_error(
    server: Any, plan: CallPlan, ask: Ask, naps: list[float], shares: Any
) -> None:
    verdict = one(deciding(server, lambda asked: shares), plan, ask())
    assert verdict.label == "error" and "can't be used" in verdict.raw


def test_what_a_deciding_server_cannot_do_is_refused(plan: CallPlan) -> None:
    with raises("missing-option", "systemone", "http://localhost:8000/v1"):
        open_judge("systemone:m", plan)
    for option in ("logprobs=5", "temperature=0", "answer=scale", "max_tokens=5"):
        with raises("unsupported", option.partition("=")[0]):
            open_judge(f"systemone:m@http://127.0.0.1:1/v1?{option}", plan)
