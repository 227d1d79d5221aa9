"""What calls cost, and one cap over everything that a run pays for.

Before a call, its worst case is reserved: every byte of the prompt as one token, and `max_tokens`
of answer. A call whose reservation doesn't fit below the cap is never made, and neither is another
attempt after one that may have been billed. When a call ends, its price replaces its reservations.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from ..errors import DataError, RunFailed
from .chat import ChatRequest, Completion, ImagePart, Usage
from .ledger import CallRecord

IMAGE_TOKENS = 6000
"""Upper bound of one image's tokens: above OpenAI's patches and tiles and Anthropic's pixels."""

DEARER_IMAGES = {"gpt-4o-mini": 50_000}
"""The same for models (by the start of the name) that bill an image at many times its tiles."""

FRAME_TOKENS = 200
"""Upper bound of the tokens that a chat template and the schema's wrapping add to the texts."""

MILLION = 1_000_000


class BudgetError(RunFailed):
    """A call that the cap forbids; the run keeps its state and can go on with a higher cap."""


class UnpricedError(BudgetError):
    """A cap is set, but a model's price isn't known."""


@dataclass(frozen=True)
class Price:
    """A model's price in US dollars per million tokens."""

    input: Decimal
    """Prompt, including tokens read from or written to a cache."""
    output: Decimal
    """Answer."""

    def of(self, usage: Usage) -> Decimal:
        """What the tokens cost, US dollars."""
        return (self.input * usage.input_tokens + self.output * usage.output_tokens) / MILLION


@dataclass(frozen=True)
class ImagePrice:
    """A model's price per image, in US dollars."""

    image: Decimal
    """Made from a text."""
    edit: Decimal
    """Made from another image."""


@dataclass(frozen=True)
class PriceTable:
    """Prices: the user's own first, then those that `genai-prices` ships."""

    own: Mapping[str, Price | ImagePrice]
    """By `kind:model`, e.g. `openai:my-model`."""

    @classmethod
    def read(cls, path: Path | None) -> PriceTable:
        """Reads a YAML file of ``openai:MODEL: {input: 0.10, output: 0.40}``, US dollars per
        million tokens, and ``openai-image:MODEL: {image: 0.04, edit: 0.06}``, US dollars each.

        Raises DataError naming file, model and field.
        """
        if path is None:
            return cls({})
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: no price table ({error})") from None
        if not isinstance(data, dict):
            raise DataError(f"{path}: a price table maps kind:model to its prices")
        return cls({str(model): _price(path, model, entry) for model, entry in data.items()})

    def cost(self, identity: Mapping[str, str], usage: Usage) -> Decimal | None:
        """What a call costs, or None if the model's price isn't known."""
        own = self.own.get(_model(identity))
        return own.of(usage) if isinstance(own, Price) else _shipped_cost(identity, usage)

    def image(self, identity: Mapping[str, str]) -> ImagePrice | None:
        """What an image costs, or None if the user's table doesn't list the model."""
        own = self.own.get(_model(identity))
        return own if isinstance(own, ImagePrice) else None


def _price(path: Path, model: object, entry: Any) -> Price | ImagePrice:
    kind = ImagePrice if str(model).partition(":")[0] == "openai-image" else Price
    names = [field.name for field in fields(kind)]
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise DataError(f"{path}, {model}: give exactly `{names[0]}` and `{names[1]}`")
    values = {}
    for field, value in entry.items():
        try:
            values[field] = Decimal(str(value))
        except InvalidOperation:
            raise DataError(f"{path}, {model}, {field}: {value!r} is not a number") from None
        if not values[field].is_finite() or values[field] < 0:
            raise DataError(f"{path}, {model}, {field}: must be 0 or more")
    return kind(**values)


def _shipped_cost(identity: Mapping[str, str], usage: Usage) -> Decimal | None:
    # Only the vendor's own endpoint has the vendor's prices; a model's name alone proves nothing.
    if identity.get("provider") not in ("openai", "anthropic"):
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(
            tokens, model_ref=identity["model"], provider_id=identity["provider"]
        )
    except LookupError:
        return None
    return found.total_price


@dataclass(frozen=True)
class Spending:
    """What the calls of a run came to; two of them add up.

    >>> str(Spending(calls=2, usd=Decimal("0.5")) + Spending(calls=1, retries=1))
    '0.5000 USD, 3 calls, 0 replayed, 1 retries, 0 refused, 0 invalid, 0 errors'
    """

    calls: int = 0
    """Calls that a server answered now."""
    replayed: int = 0
    """Recorded answers that were used again."""
    retries: int = 0
    """Attempts that were lost (timed out or cut off) and may have been billed."""
    refused: int = 0
    """Answers that the model or a filter refused; like the next two, also replayed ones."""
    invalid: int = 0
    """Answers that were truncated, or that the validator rejected in both attempts."""
    errors: int = 0
    """Calls that the server rejected or could not answer."""
    usd: Decimal = Decimal(0)
    """Price of the calls made now, lost attempts at their worst case; 0 where none is known."""

    def __add__(self, other: Spending) -> Spending:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Spending(**sums)

    def __str__(self) -> str:
        counts = (f"{getattr(self, f.name):,} {f.name}" for f in fields(self) if f.name != "usd")
        return f"{self.usd:.4f} USD, {', '.join(counts)}"


class Budget:
    """The money of one run, shared by all of its callers and generators; safe to use from threads.

    Restore every source of a resumed run before the first call: the cap covers what is restored.
    """

    def __init__(self, prices: PriceTable, max_usd: Decimal | None = None) -> None:
        """`max_usd` caps the whole run, including the recorded calls of a resumed one."""
        self.prices = prices
        self.max_usd = max_usd
        self.spent = Decimal(0)
        self.spending = Spending()
        self._reserved = Decimal(0)
        self._restored: set[str] = set()
        self._lock = threading.Lock()

    def restore(self, records: Iterable[CallRecord], source: str = "") -> None:
        """Counts what a resumed run has paid for the calls of one ledger.

        A `source` that has a name, e.g. the ledger's path, counts once however often it is
        restored. Raises UnpricedError under a cap where a call has no known price.
        """
        self.restore_amounts((self._recorded_cost(record) for record in records), source)

    def restore_amounts(self, amounts: Iterable[Decimal], source: str = "") -> None:
        """Counts what a resumed run has paid otherwise, e.g. for images; `source` as above."""
        with self._lock:
            if source in self._restored:
                return
            self.spent += sum(amounts, Decimal(0))
            if source:
                self._restored.add(source)

    def _recorded_cost(self, record: CallRecord) -> Decimal:
        if record.usd is not None:
            return Decimal(record.usd)
        cost = self._known(record.identity, record.completion.usage)
        if cost is None and self.max_usd is not None:
            raise UnpricedError(_unpriced(record.identity))
        return cost or Decimal(0)

    def count(self, more: Spending) -> None:
        """Adds to `spending`, the summary for people; `spent`, which the cap bounds, is apart."""
        with self._lock:
            self.spending += more

    def reserve(self, identity: Mapping[str, str], request: ChatRequest) -> Decimal | None:
        """The worst case of a call, set aside until `settle` or `release`.

        None where the price is unknown and no cap is set. Raises UnpricedError where one is, and
        BudgetError where the worst case doesn't fit.
        """
        worst = self.worst_case(identity, request)
        if worst is None:
            if self.max_usd is not None:
                raise UnpricedError(_unpriced(identity))
            return None
        self.hold(worst, f"call of {request.role}")
        return worst

    def hold(self, worst: Decimal, what: str) -> None:
        """Sets an amount aside until `pay` or `release`. Raises BudgetError if it doesn't fit."""
        with self._lock:
            planned = self.spent + self._reserved + worst
            if self.max_usd is not None and planned > self.max_usd:
                raise BudgetError(
                    f"the next {what} may cost {worst:.4f} USD; with {self.spent:.4f} USD spent "
                    f"and {self._reserved:.4f} USD under way, that exceeds the cap of "
                    f"{self.max_usd} USD. Nothing is lost: run again with a higher --max-usd"
                )
            self._reserved += worst

    def pay(self, worst: Decimal, cost: Decimal) -> None:
        """Counts a cost in place of what was set aside for it."""
        with self._lock:
            self._reserved -= worst
            self.spent += cost

    def settle(
        self, identity: Mapping[str, str], worst: Decimal | None, completion: Completion
    ) -> Decimal | None:
        """The price of a finished call, in place of its reservation.

        A call without reported usage counts at its worst case, and so does each lost attempt.
        """
        cost = self._known(identity, completion.usage)
        if cost is None:
            cost = worst
        if cost is not None and worst is not None:
            cost += worst * completion.lost_attempts
        self.pay(worst or Decimal(0), cost or Decimal(0))
        return cost

    def record(
        self, identity: Mapping[str, str], request: ChatRequest, completion: Completion
    ) -> Decimal | None:
        """The price of a call that was paid before now, e.g. in a batch; the cap isn't checked."""
        worst = self.worst_case(identity, request)
        with self._lock:
            self._reserved += worst or Decimal(0)
        return self.settle(identity, worst, completion)

    def release(self, worst: Decimal | None) -> None:
        """Gives back the reservation of a call that was not made."""
        self.pay(worst or Decimal(0), Decimal(0))

    def worst_case(self, identity: Mapping[str, str], request: ChatRequest) -> Decimal | None:
        """The most that one attempt of a call can cost; None for an unknown price."""
        tokens = prompt_bound(request, _image_tokens(identity["model"]))
        plain = self.prices.cost(identity, Usage(tokens, request.max_tokens))
        cached = self.prices.cost(
            identity, Usage(tokens, request.max_tokens, cache_write_tokens=tokens)
        )
        return None if plain is None or cached is None else max(plain, cached)

    def _known(self, identity: Mapping[str, str], usage: Usage | None) -> Decimal | None:
        return None if usage is None else self.prices.cost(identity, usage)


def _image_tokens(model: str) -> int:
    dearer = (tokens for start, tokens in DEARER_IMAGES.items() if model.startswith(start))
    return next(dearer, IMAGE_TOKENS)


def prompt_bound(request: ChatRequest, image_tokens: int = IMAGE_TOKENS) -> int:
    """More tokens than the prompt can have: a token holds at least one byte."""
    spec = request.spec()
    texts = [request.system, *(part for part in request.user if isinstance(part, str))]
    texts += [str(spec["schema"])] if spec["schema"] else []
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    images = sum(isinstance(part, ImagePart) for part in request.user)
    return size + image_tokens * images + FRAME_TOKENS


def _model(identity: Mapping[str, str]) -> str:
    return f"{identity['kind']}:{identity['model']}"


def _unpriced(identity: Mapping[str, str]) -> str:
    model = _model(identity)
    return (
        f"no price is known for {model}, so --max-usd can't be kept: give a price table with "
        f"`{model}: {{input: ..., output: ...}}` in USD per million tokens (--prices FILE), "
        "or drop the cap"
    )
