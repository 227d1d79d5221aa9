"""What calls cost, and a cap that a run can't pass.

Before a call its worst case is reserved: every byte of the prompt as one token, and `max_tokens`
of answer. A call whose reservation doesn't fit below the cap is never made, nor is another attempt
after one that may have been billed. When a call ends, its price replaces the reservations.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from ..errors import RunFailed
from .chat import ChatRequest, Completion, ImagePart, Usage
from .ledger import Record

IMAGE_TOKENS = 6000
"""Bound of one picture's tokens: OpenAI's patches and tiles and Anthropic's pixels stay below."""

DEARER_IMAGES = {"gpt-4o-mini": 50_000}
"""The same for models (by the start of the name) that count a picture at many times its tiles."""

FRAME_TOKENS = 200
"""Bound of what a chat template and the schema's wrapping add to the texts."""

MILLION = 1_000_000


class BudgetError(RunFailed):
    """A call that the cap forbids; the run keeps its state and can go on with a higher cap."""


class UnpricedError(BudgetError):
    """A cap is set, but a model's price isn't known."""


@dataclass(frozen=True)
class Price:
    """A model's price in US dollars per million tokens."""

    input: Decimal
    """Prompt, from or into a cache too."""
    output: Decimal
    """Answer."""

    def of(self, usage: Usage) -> Decimal:
        """What the tokens cost."""
        return (self.input * usage.input_tokens + self.output * usage.output_tokens) / MILLION


@dataclass(frozen=True)
class PicturePrice:
    """What a model takes for a picture, in US dollars."""

    picture: Decimal
    """Drawn from a text."""
    edit: Decimal
    """Drawn from another picture."""


@dataclass(frozen=True)
class PriceTable:
    """The user's own prices first, then those that `genai-prices` ships."""

    own: Mapping[str, Price | PicturePrice]
    """By `kind:model`, e.g. `openai:my-model`."""

    @classmethod
    def read(cls, path: Path | None) -> PriceTable:
        """A YAML file of ``openai:MODEL: {input: 0.10, output: 0.40}``, US dollars per million
        tokens, and ``openai-image:MODEL: {picture: 0.04, edit: 0.06}``, US dollars each.

        Raises ValueError naming file, model and field.
        """
        if path is None:
            return cls({})
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: no price table ({error})") from None
        if not isinstance(data, dict):
            raise ValueError(f"{path}: a price table maps kind:model to its prices")
        return cls({str(model): _price(path, model, entry) for model, entry in data.items()})

    def cost(self, identity: Mapping[str, str], usage: Usage) -> Decimal | None:
        """What a call costs, or None where nobody knows the model's price."""
        own = self.own.get(f"{identity['kind']}:{identity['model']}")
        return own.of(usage) if isinstance(own, Price) else _shipped_cost(identity, usage)

    def picture(self, identity: Mapping[str, str]) -> PicturePrice | None:
        """What a picture costs, or None where the user gives no price: nobody else does."""
        own = self.own.get(f"{identity['kind']}:{identity['model']}")
        return own if isinstance(own, PicturePrice) else None


def _price(path: Path, model: object, entry: Any) -> Price | PicturePrice:
    kind = PicturePrice if str(model).partition(":")[0] == "openai-image" else Price
    names = list(kind.__dataclass_fields__)
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ValueError(f"{path}, {model}: give exactly `{names[0]}` and `{names[1]}`")
    values = {}
    for field, value in entry.items():
        try:
            values[field] = Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"{path}, {model}, {field}: {value!r} is not a number") from None
        if not values[field].is_finite() or values[field] < 0:
            raise ValueError(f"{path}, {model}, {field}: must be 0 or more")
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


class Budget:
    """The money of one run, shared by all of its callers; safe to use from threads."""

    def __init__(self, prices: PriceTable, max_usd: Decimal | None = None) -> None:
        """`max_usd` caps the whole run, recorded calls of a resumed one included."""
        self.prices = prices
        self.max_usd = max_usd
        self.spent = Decimal(0)
        self._reserved = Decimal(0)
        self._lock = threading.Lock()

    def restore(self, records: Iterable[Record]) -> None:
        """Counts what a resumed run has paid. Raises UnpricedError under a cap."""
        for record in records:
            if record.usd is not None:
                self.spent += Decimal(record.usd)
            elif (cost := self._known(record.identity, record.completion.usage)) is not None:
                self.spent += cost
            elif self.max_usd is not None:
                raise UnpricedError(_unpriced(record.identity))

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
        """Sets an amount aside until `pay` or `release`. BudgetError where it doesn't fit."""
        with self._lock:
            planned = self.spent + self._reserved + worst
            if self.max_usd is not None and planned > self.max_usd:
                raise BudgetError(
                    f"the next {what} may cost {worst:.4f} USD; with "
                    f"{self.spent:.4f} spent and {self._reserved:.4f} under way that passes the "
                    f"cap of {self.max_usd} USD. Nothing is lost: run again with a higher --max-usd"
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
        """The price of an ended call, in place of its reservation.

        A call without reported usage, and each attempt that was cut and may have been billed,
        counts with its worst case.
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
        """The price of a call that was paid before now, e.g. in a batch; no cap is asked."""
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
    """More tokens than the prompt can have: a token holds a byte at least."""
    spec = request.spec()
    texts = [request.system, *(part for part in request.user if isinstance(part, str))]
    texts += [str(spec["schema"])] if spec["schema"] else []
    pictures = sum(isinstance(part, ImagePart) for part in request.user)
    return sum(len(t.encode("utf-8", "replace")) for t in texts) + (
        image_tokens * pictures + FRAME_TOKENS
    )


def _unpriced(identity: Mapping[str, str]) -> str:
    model = f"{identity['kind']}:{identity['model']}"
    return (
        f"no price is known for {model}, so --max-usd can't hold: give a price table with "
        f"`{model}: {{input: ..., output: ...}}` in USD per million tokens (--prices FILE), "
        "or drop the cap"
    )
