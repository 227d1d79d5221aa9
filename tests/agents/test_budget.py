"""The cap: what is reserved, what is spent, and what is never called."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.agents.budget import (
    Budget,
    BudgetError,
    ImagePrice,
    Price,
    PriceTable,
    Spending,
    UnpricedError,
    prompt_bound,
)
from counterprior.agents.chat import ChatRequest, ImagePart, JsonSchema, Usage
from counterprior.agents.spending import Charge
from counterprior.agents.threads import in_threads

OWN = {"kind": "openai", "model": "mine", "provider": "custom"}
VENDOR = {"kind": "openai", "model": "gpt-6-luna", "provider": "openai"}
TABLE = PriceTable({"openai:mine": Price(Decimal(1), Decimal(10))})
ASK = ChatRequest("scout", "s" * 100, ("u" * 100,), max_tokens=1000)


def test_a_vendors_model_has_the_vendors_price() -> None:
    cost = PriceTable({}).cost(VENDOR, Usage(1_000_000, 0))
    assert cost is not None and cost > 0
    cached = PriceTable({}).cost(VENDOR, Usage(1_000_000, 0, cache_read_tokens=1_000_000))
    assert cached is not None and cached < cost


def test_the_same_name_on_another_server_has_none() -> None:
    assert PriceTable({}).cost({**VENDOR, "provider": "custom"}, Usage(1, 1)) is None


def test_user_prices_come_first() -> None:
    table = PriceTable({"openai:gpt-6-luna": Price(Decimal(3), Decimal(4))})
    assert table.cost(VENDOR, Usage(1_000_000, 1_000_000)) == 7


def test_an_unpriced_model_is_refused_under_a_cap_only() -> None:
    unknown = {**OWN, "model": "unknown"}
    assert Budget(TABLE).reserve(unknown, ASK).usd == 0
    with raises("no-price", "openai:unknown", error=UnpricedError):
        Budget(TABLE, Decimal(100)).reserve(unknown, ASK)


def worst_of(budget: Budget, identity: dict[str, str] = OWN, ask: ChatRequest = ASK) -> Decimal:
    worst = budget.worst_case(identity, ask).usd
    assert worst is not None
    return worst


def test_reservations_bound_the_calls_under_way() -> None:
    worst = worst_of(Budget(TABLE))
    assert worst > Decimal("0.01")  # the answer's bound alone
    budget = Budget(TABLE, worst * 2)
    first = budget.reserve(OWN, ASK)
    second = budget.reserve(OWN, ASK)
    with raises("over-budget", "--max-usd", error=BudgetError):
        budget.reserve(OWN, ASK)
    budget.settle([first], "l", Charge(Decimal("0.000001")))
    with raises("over-budget", error=BudgetError):
        budget.reserve(OWN, ASK)
    budget.release([second])
    budget.reserve(OWN, ASK)
    assert budget.spent == Decimal("0.000001")


def test_the_worst_case_counts_a_write_to_the_cache() -> None:
    who = {"kind": "anthropic", "model": "claude-sonnet-5-5", "provider": "anthropic"}
    tokens = prompt_bound(ASK)
    dearest = PriceTable({}).cost(who, Usage(tokens, ASK.max_tokens, cache_write_tokens=tokens))
    plain = PriceTable({}).cost(who, Usage(tokens, ASK.max_tokens))
    assert dearest is not None and plain is not None and dearest > plain
    assert worst_of(Budget(PriceTable({})), who) == dearest


def test_settling_counts_what_was_billed() -> None:
    budget = Budget(TABLE)
    worst = budget.worst_case(OWN, ASK)
    assert worst.usd is not None
    told = budget.price(OWN, ASK, Usage(1000, 100))
    assert budget.settle([budget.reserve(OWN, ASK)], "l", told) == Decimal("0.002")
    silent = budget.price(OWN, ASK, None)
    assert budget.settle([budget.reserve(OWN, ASK)], "l", silent) == worst.usd
    assert budget.spent == Decimal("0.002") + worst.usd
    budget.lose([budget.reserve(OWN, ASK)])
    assert budget.spent == Decimal("0.002") + 2 * worst.usd


@given(
    cap=st.integers(0, 200_000),
    answers=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 1000)), max_size=40),
)
def test_the_cap_holds_whatever_the_answers_cost(cap: int, answers: list[tuple[int, int]]) -> None:
    # No answer is longer than max_tokens, no prompt has more tokens than bytes.
    budget = Budget(TABLE, Decimal(cap) / 1_000_000)
    for used in answers:
        try:
            hold = budget.reserve(OWN, ASK)
        except BudgetError:
            continue
        budget.settle([hold], "l", budget.price(OWN, ASK, Usage(*used)))
        assert budget.max_usd is not None and budget.spent <= budget.max_usd


def recorded(usd: str | None, identity: dict[str, str] = OWN) -> tuple[str, Charge]:
    charge = Charge(None, identity, Usage(1_000_000, 0)) if usd is None else Charge(Decimal(usd))
    return "c", charge


def test_one_cap_covers_ledgers_and_images_and_counts_each_once() -> None:
    budget = Budget(TABLE, Decimal(10))
    for _ in range(2):  # a judge restores the ledger that the run has restored before
        budget.restore("judge-a.jsonl", [recorded("2"), recorded(None)])
        budget.restore("judge-b.jsonl", [recorded("3")])
        budget.restore("images", [recorded("0.5"), recorded("0.25")])
    assert budget.spent == Decimal("6.75")
    budget.hold(Charge(Decimal("3.25")), "image")
    with raises("over-budget", "6.7500", "3.2500", error=BudgetError):
        budget.reserve(OWN, ASK)


def test_a_source_that_fails_to_restore_counts_nothing() -> None:
    budget = Budget(TABLE, Decimal(10))
    unpriced = recorded(None, {**OWN, "model": "unknown"})
    for _ in range(2):
        with raises("no-price", "openai:unknown", error=UnpricedError):
            budget.restore("a", [recorded("2"), unpriced])
    assert budget.spent == 0


def test_threads_lose_no_money_and_no_count() -> None:
    budget = Budget(TABLE, Decimal(50))

    def pay(number: int) -> bool:
        try:
            hold = budget.hold(Charge(Decimal(1)), "image")
        except BudgetError:
            return False
        budget.settle([hold], "images", Charge(Decimal(1)))
        budget.count(Spending(calls=1, usd=Decimal(1)))
        return True

    assert sum(in_threads(pay, range(200), 8)) == 50
    assert (budget.spent, budget.spending) == (50, Spending(calls=50, usd=Decimal(50)))


def test_the_bound_of_a_prompt_counts_bytes_images_and_schema() -> None:
    plain = prompt_bound(ASK)
    assert plain >= 200
    snowmen = ChatRequest("r", ASK.system, ("\u2603" * 100,), 5)
    assert prompt_bound(snowmen) == plain + 200
    assert prompt_bound(ChatRequest("r", "", (ImagePart(b""),), 5)) >= 6000
    schema = JsonSchema("n", {"description": "d" * 500})
    assert prompt_bound(ChatRequest("r", ASK.system, ASK.user, 5, schema)) >= plain + 500


def test_a_model_with_dear_images_reserves_more() -> None:
    look = ChatRequest("judge", "s", (ImagePart(b"x"),), 5)
    prices = PriceTable(
        {f"openai:{m}": Price(Decimal(1), Decimal(0)) for m in ("gpt-4o-mini", "m")}
    )
    dear, usual = (
        worst_of(Budget(prices), {**OWN, "model": model}, look) for model in ("gpt-4o-mini", "m")
    )
    assert dear > 5 * usual


def test_a_price_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("openai:mine: {input: 0.1, output: 2}\n")
    assert PriceTable.read(path).cost(OWN, Usage(1_000_000, 0)) == Decimal("0.1")
    path.write_text("openai-image:mine: {image: 0.04, edit: 0.06}\n")
    found = PriceTable.read(path).image({**OWN, "kind": "openai-image"})
    assert found == ImagePrice(Decimal("0.04"), Decimal("0.06"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- 1", ("bad-format", "kind:model")),
        ("openai:m: 3", ("missing-field", "openai:m")),
        ("openai:m: {input: 1}", ("missing-field", "openai:m")),
        ("openai:m: {input: 1, output: dear}", ("not-a-number", "openai:m", "output", "dear")),
        ("openai:m: {input: -1, output: 1}", ("out-of-range", "openai:m", "input")),
        ("openai:m: {input: .inf, output: 1}", ("out-of-range", "openai:m", "input")),
        ("openai-image:m: {picture: 1, edit: 1}", ("missing-field", "openai-image:m")),
        ("{", ("bad-format", "YAML")),
    ],
)
def test_a_wrong_price_table_is_named(tmp_path: Path, text: str, reason: tuple[str, ...]) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with raises(*reason):
        PriceTable.read(path)
