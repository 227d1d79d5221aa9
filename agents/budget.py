"""Prices of calls, and one cap over everything that a run pays for.

Before an attempt, its worst case is set aside: every byte of the prompt as one token, and
`max_tokens` of answer. What doesn't fit below the cap waits for the attempts under way, and is
never tried if it doesn't fit then. When an answer is there, its price replaces what was set aside;
an attempt that may have been billed without one stays counted.

A server may bill more than was asked for (hidden reasoning beside the answer, longer answers). So
the first attempt at a model under a cap goes alone, and what an answer cost above its worst case
raises all later ones and those under way by the same factor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import DataError, RunFailed
from ..parsing import read_yaml
from .chat import ChatRequest, ImagePart, Usage
from .spending import FREE, LEAST, Charge, SpendingLog

IMAGE_TOKENS = 6000
"""Upper bound of one image's tokens: above OpenAI's patches and tiles and Anthropic's pixels."""

DEARER_IMAGES = {"gpt-4o-mini": 50_000}
"""The same for models (by the start of the name) that bill an image at many times its tiles."""

PRICED_BY_IMAGE = ("chat-image", "inference", "openai-image")
"""Kinds of generators that a price table lists by the image."""

FRAME_TOKENS = 200
"""Upper bound of the tokens that a chat template and the schema's wrapping add to the texts."""

MILLION = 1_000_000

_FEW = 1000
"""Tokens by which a shipped price is known."""


class BudgetError(RunFailed):
    """A call that the cap forbids; the run keeps its state and can go on with a higher cap."""


class UnpricedError(BudgetError):
    """A cap is set, but a model's price isn't known."""


class CheaperError(BudgetError):
    """A price is lower than the one that earlier calls of the folder counted at."""


@dataclass(frozen=True)
class Price:
    """A model's price in US dollars per million tokens."""

    input: Decimal
    """Prompt, including tokens read from or written to a cache."""
    output: Decimal
    """Answer."""

    def of(self, usage: Usage) -> Decimal:
        """Returns the cost of the tokens, US dollars."""
        return (self.input * usage.input_tokens + self.output * usage.output_tokens) / MILLION


@dataclass(frozen=True)
class ImagePrice:
    """A model's price per image, in US dollars."""

    image: Decimal
    """Made from a text."""
    edit: Decimal
    """Made from another image."""

    def of(self, kind: str) -> Decimal:
        """US dollars of one image; `kind` is the name of a field."""
        return self.edit if kind == "edit" else self.image


@dataclass(frozen=True)
class PriceTable:
    """Prices: the user's own first, then those that `genai-prices` ships."""

    user_prices: Mapping[str, Price | ImagePrice]
    """Prices by `kind:model`, e.g. `openai:my-model`."""

    @classmethod
    def read(cls, path: Path | None) -> PriceTable:
        """Reads a YAML file of ``openai:MODEL: {input: 0.10, output: 0.40}``, US dollars per
        million tokens, and ``openai-image:MODEL: {image: 0.04, edit: 0.06}``, US dollars each.

        Raises DataError naming file, model and field.
        """
        if path is None:
            return cls({})
        try:
            data = read_yaml(path)
        except (OSError, DataError) as error:
            raise DataError(f"{path}: no price table ({error})", code="bad-format") from None
        if not isinstance(data, dict):
            raise DataError(
                f"{path}: a price table maps kind:model to its prices", code="bad-format"
            )
        return cls({str(model): _price(path, model, entry) for model, entry in data.items()})

    def cost(self, identity: Mapping[str, str], usage: Usage) -> Decimal | None:
        """Returns the cost of a call; None if the model's price is unknown."""
        price = self.user_prices.get(_model(identity))
        return price.of(usage) if isinstance(price, Price) else _shipped_cost(identity, usage)

    def image(self, identity: Mapping[str, str]) -> ImagePrice | None:
        """Returns the price of an image; None if the user's table doesn't list the model."""
        price = self.user_prices.get(_model(identity))
        return price if isinstance(price, ImagePrice) else None

    def units(self, identity: Mapping[str, str]) -> dict[str, Decimal] | None:
        """What a model's million tokens, or images, cost by kind; None if that is unknown."""
        price: Price | ImagePrice | None = self.user_prices.get(_model(identity))
        if price is None:
            few = (Usage(_FEW, 0), Usage(0, _FEW))  # many tokens may have a dearer tier
            costs = [_shipped_cost(identity, usage) for usage in few]
            known = [cost * (MILLION // _FEW) for cost in costs if cost is not None]
            price = Price(*known) if len(known) == len(few) else None
        return None if price is None else {f.name: getattr(price, f.name) for f in fields(price)}

    def of(self, charge: Charge) -> Decimal | None:
        """A charge in US dollars, or None if its price isn't known."""
        if charge.usd is not None:
            return charge.usd
        if charge.image:
            price = self.image(charge.identity)
            return None if price is None else price.of(charge.image)
        return self.cost(charge.identity, charge.usage or Usage(0, 0))


def _price(path: Path, model: object, entry: Any) -> Price | ImagePrice:
    kind = ImagePrice if str(model).partition(":")[0] in PRICED_BY_IMAGE else Price
    keys = [field.name for field in fields(kind)]
    if not isinstance(entry, dict) or set(entry) != set(keys):
        raise DataError(
            f"{path}, {model}: give exactly `{keys[0]}` and `{keys[1]}`", code="missing-field"
        )
    values = {}
    for field, value in entry.items():
        try:
            values[field] = Decimal(str(value))
        except InvalidOperation:
            raise DataError(
                f"{path}, {model}, {field}: {value!r} is not a number", code="not-a-number"
            ) from None
        if not values[field].is_finite() or values[field] < 0:
            raise DataError(f"{path}, {model}, {field}: must be 0 or more", code="out-of-range")
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
        price = genai_prices.calc_price(
            tokens, model_ref=identity["model"], provider_id=identity["provider"]
        )
    except LookupError:
        return None
    return price.total_price


@dataclass(frozen=True)
class Spending:
    """Cost of the calls of a run; two of them add up.

    >>> str(Spending(calls=2, usd=Decimal("0.5")) + Spending(calls=1, retries=1))
    '0.5000 USD, 3 calls, 0 replayed, 1 retries, 0 refused, 0 invalid, 0 errors'
    >>> str(Spending(calls=2, unpriced=2))[:58]
    'an unknown sum for 2 calls without a price, 2 calls, 0 rep'
    """

    calls: int = 0
    """Calls that a server answered now."""
    replayed: int = 0
    """Recorded answers that were used again."""
    retries: int = 0
    """Attempts at a call that were lost (timed out or cut off) and may have been billed, and
    attempts at the check of a server that were made again, which cost nothing."""
    refused: int = 0
    """Answers that the model or a filter refused; like the next two, also replayed ones."""
    invalid: int = 0
    """Answers that were truncated, or that the validator rejected in both attempts."""
    errors: int = 0
    """Calls that the server rejected or could not answer."""
    usd: Decimal = Decimal(0)
    """Price of the calls made now, lost attempts at their worst case; without those of unknown
    price."""
    unpriced: int = 0
    """Calls made now whose price is not known."""

    def __add__(self, addend: Spending) -> Spending:
        sums = {f.name: getattr(self, f.name) + getattr(addend, f.name) for f in fields(self)}
        return Spending(**sums)

    def __str__(self) -> str:
        names = (f.name for f in fields(self) if f.name not in ("usd", "unpriced"))
        counts = ", ".join(f"{getattr(self, name):,} {name}" for name in names)
        known = f"{self.usd:.4f} USD" if self.usd or not self.unpriced else ""
        unknown = f"an unknown sum for {self.unpriced:,} calls without a price"
        money = " and ".join(filter(None, (known, unknown if self.unpriced else "")))
        return f"{money}, {counts}"


@dataclass(frozen=True)
class Hold:
    """Money that is set aside for one attempt."""

    intent: int
    """Its intent in the spending log."""
    usd: Decimal
    """The most that the attempt can cost, US dollars; 0 if no price is known."""


class Budget:
    """The money of one run, shared by all of its callers and generators, in all of its processes.

    Safe to use from threads. What was spent is in the spending log, see there.
    """

    def __init__(
        self,
        prices: PriceTable,
        max_usd: Decimal | None = None,
        log: Path | None = None,
        alone: bool = False,
    ) -> None:
        """`max_usd` caps the whole run: what the log holds, whoever wrote it, included.

        log: the run's spending log; None for one that ends with this object. `alone`: no other
        process may use it meanwhile.
        """
        self.prices = prices
        self.max_usd = max_usd
        self.spending = Spending()
        # Not a method: a cycle would keep the log's file open until the collector comes.
        self._value = partial(_in_usd, prices, max_usd)
        self.log = SpendingLog(log, self._value, alone)
        self._units: dict[str, dict[str, Decimal] | None] = {}
        self._under_way: dict[int, _Attempt] = {}
        self._waiting: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._ends = 0

    @property
    def spent(self) -> Decimal:
        """Total spent, US dollars; lost attempts, and what other processes have under way, at
        their worst case."""
        if not self.log.exists:
            return Decimal(0)
        with self.log.turn():
            return self.log.total - self._held()

    def count(self, spending: Spending) -> None:
        """Adds to `spending`, the summary for people; `spent`, which the cap bounds, is apart."""
        with self._lock:
            self.spending += spending

    def restore(self, source: str, recorded: Iterable[tuple[str, Charge]]) -> None:
        """Makes sure that what a ledger or a log of images recorded as paid is counted.

        `recorded` are its calls with what they cost. As a rule the spending log knows of them all;
        it doesn't where the ledger came from elsewhere, or a power cut took the log's last lines.
        Raises UnpricedError under a cap where a call has no known price.
        """
        costs = [(call, self._value(charge)) for call, charge in recorded]
        if not costs:
            return
        with self.log.turn():
            # A call that another process has just recorded is still open here: it will close it.
            waiting = {intent.call for intent in self.log.open.values() if intent.source == source}
            counted = self.log.recorded.get(source, Decimal(0))
            missing = sum(
                (usd or Decimal(0) for call, usd in costs if call not in waiting), -counted
            )
            if missing > LEAST:
                self.log.find(source, missing)

    def adopt(self, source: str, find: Callable[[str], Charge | None]) -> None:
        """Closes what a dead process left open in a ledger that this process alone writes now.

        find: what a call cost that the ledger holds, else None. What it doesn't hold is lost.
        """
        if not self.log.exists:
            return
        with self.log.turn():
            unclosed = [
                intent
                for intent in self.log.open.values()
                if intent.source == source
                and intent.id not in self._under_way
                and intent.id not in self.log.lost
            ]
            last = {intent.call: intent for intent in unclosed}  # another followed those before it
            for intent in unclosed:
                cost = find(intent.call) if last[intent.call] is intent else None
                if cost is not None:
                    self.log.close([intent.id], source, cost, recorded=True)
            if dead := [intent.id for intent in unclosed if intent.id in self.log.open]:
                self.log.lose(dead)

    def reserve(
        self,
        identity: Mapping[str, str],
        request: ChatRequest,
        source: str = "",
        call: str = "",
        *,
        batched: bool = False,
    ) -> Hold:
        """Sets the worst case of a call's next attempt aside, until `settle`, `release` or `lose`.

        source: the ledger's name; call: the call's id in it. As `hold`.
        """
        worst = self.worst_case(identity, request)
        alone = self.max_usd is not None and not batched
        purpose = f"call of {request.role}"
        return self.hold(worst, purpose, source, identity, call=call, first_alone=alone)

    def hold(
        self,
        worst: Charge,
        purpose: str,
        source: str = "",
        identity: Mapping[str, str] | None = None,
        *,
        call: str = "",
        first_alone: bool = False,
    ) -> Hold:
        """The same for anything else that is paid.

        identity: what is asked; its price may not be below the one that the log knows of.
        first_alone: until a source has its first answer, its attempts go one at a time. What fits
        only once others have ended waits for those of other threads. Raises UnpricedError under a
        cap where the price is unknown, BudgetError if the worst case doesn't fit, CheaperError.
        """
        usd = self._usd(worst)
        while True:
            ends = self._ends  # before the try, so that none ends unnoticed in between
            blocking: str | None = None
            try:
                with self.log.turn():
                    is_first = first_alone and not self.log.is_known(source)
                    if not (is_first and self._can_wait_for(source)):
                        units = self._checked_units(identity)
                        self._check(usd * self.log.factor(source), purpose)
                        self.log.count_at(units)
                        intent = self.log.intend(source, call, worst)
                        attempt = _Attempt(source, usd, threading.current_thread())
                        self._under_way[intent.id] = attempt
                        return Hold(intent.id, usd)
                blocking = source
            except CheaperError:
                raise
            except BudgetError:
                if ends == self._ends and not self._can_wait_for(None):
                    raise
            self._wait(ends, blocking)

    def _checked_units(self, identity: Mapping[str, str] | None) -> dict[str, dict[str, Decimal]]:
        """In a turn: what the units of a model count at, by model; empty where that is unknown.

        Raises CheaperError where it is less than before: were the old price right, the cap would
        be passed.
        """
        if identity is None:
            return {}
        model = _model(identity)
        if model not in self._units:
            self._units[model] = self.prices.units(identity)
        if (units := self._units[model]) is None:
            return {}
        known = self.log.prices.get(model, {})
        lower = [
            f"{n} {usd} instead of {known[n]}"
            for n, usd in units.items()
            if n in known and usd < known[n] - LEAST
        ]
        if lower:
            raise CheaperError(
                f"{model} would count at a lower price than before in {self.log.path}: "
                f"{', '.join(lower)} USD. Run with the earlier --prices, or accept these by "
                f"`counterprior doctor FOLDER --prices FILE --lower-prices`",
                code="cheaper-price",
            )
        return {model: units}

    def accept_prices(self) -> dict[str, dict[str, Decimal]]:
        """Counts at the prices of now from here on, also where they are lower; returns those.

        Models of which this budget knows no price keep theirs.
        """
        changed = {}
        with self.log.turn():
            for model, known in list(self.log.prices.items()):
                kind, _, name = model.partition(":")
                identity = {"kind": kind, "model": name, "provider": kind}
                units = self.prices.units(identity)
                if units is not None and units != known:
                    changed[model] = units
            self.log.count_at(changed)
        return changed

    def _usd(self, charge: Charge) -> Decimal:
        return self._value(charge) or Decimal(0)

    def _can_wait_for(self, source: str | None) -> bool:
        """Whether an attempt of a source, or any that holds money, will end while this thread
        waits: not its own, and not one of a thread that waits itself."""
        this = threading.current_thread()
        return any(
            (attempt.usd > 0 if source is None else attempt.source == source)
            and attempt.thread is not this
            and attempt.thread not in self._waiting
            and attempt.thread.is_alive()
            for attempt in list(self._under_way.values())
        )

    def _wait(self, ends: int, source: str | None) -> None:
        """Waits until an attempt has ended since, or none can be waited for any more."""
        this = threading.current_thread()
        with self._ended:
            self._waiting.add(this)
            self._ended.notify_all()
            try:
                while ends == self._ends and self._can_wait_for(source):
                    self._ended.wait(1.0)
            finally:
                self._waiting.discard(this)

    def _forget(self, holds: Sequence[Hold]) -> None:
        """Takes attempts off those under way."""
        with self._ended:
            for hold in holds:
                self._under_way.pop(hold.intent, None)
            self._ends += 1
            self._ended.notify_all()

    def _held(self) -> Decimal:
        """Money set aside for the attempts under way here, US dollars."""
        attempts = self._under_way.values()
        return sum((a.usd * self.log.factor(a.source) for a in attempts), Decimal(0))

    def check(self, identity: Mapping[str, str], request: ChatRequest) -> None:
        """Raises what `reserve` would raise."""
        usd = self._usd(self.worst_case(identity, request))
        if self.log.exists:
            with self.log.turn():
                self._check(usd, f"call of {request.role}")

    def sent(self, source: str) -> dict[str, Hold]:
        """Returns the amounts set aside for calls of a ledger, also by earlier processes."""
        if not self.log.exists:
            return {}
        with self.log.turn():
            open_ones = [i for i in self.log.open.values() if i.source == source]
            return {intent.call: Hold(intent.id, intent.worst) for intent in open_ones}

    def check_price(self, charge: Charge) -> None:
        """Raises UnpricedError under a cap where the charge has no known price."""
        self._usd(charge)

    def settle(
        self, holds: Sequence[Hold], source: str, cost: Charge, *, recorded: bool = True
    ) -> Decimal:
        """Counts what attempts cost together, in place of what was set aside for them.

        The cap isn't checked: it is paid. `recorded` where the source holds that cost too. Returns
        it in US dollars.
        """
        with self.log.turn():
            self.log.close([hold.intent for hold in holds], source, cost, recorded)
        self._forget(holds)
        return self._usd(cost)

    def release(self, holds: Sequence[Hold]) -> None:
        """Gives back what was set aside for attempts that were not billed."""
        if holds:
            self.settle(holds, "", FREE, recorded=False)

    def lose(self, holds: Sequence[Hold]) -> None:
        """Leaves attempts open that may have been billed, until a person settles them."""
        under_way = [hold for hold in holds if hold.intent in self._under_way]
        if under_way:
            with self.log.turn():
                self.log.lose([hold.intent for hold in under_way])
            self._forget(under_way)

    def price(
        self,
        identity: Mapping[str, str],
        request: ChatRequest,
        usage: Usage | None,
        source: str = "",
    ) -> Charge:
        """Returns the cost of an answered call.

        A part of the usage that the server didn't report counts at its worst case, raised by what
        the source is known to cost above that.
        """
        tokens, answer = prompt_bound(request, _image_tokens(identity["model"])), request.max_tokens
        if usage is not None:
            if (usage.input_tokens and usage.output_tokens) or usage == Usage(0, 0):
                usd = self.prices.cost(identity, usage)
                return Charge(None, dict(identity), usage) if usd is None else Charge(usd)
            tokens, answer = usage.input_tokens or tokens, usage.output_tokens or answer
        charge = self._dearest(identity, tokens, answer)
        return replace(charge, usd=charge.usd and charge.usd * self.log.factor(source))

    def worst_case(self, identity: Mapping[str, str], request: ChatRequest) -> Charge:
        """The most that one attempt of a call can cost where the server does what it is asked."""
        tokens = prompt_bound(request, _image_tokens(identity["model"]))
        return self._dearest(identity, tokens, request.max_tokens)

    def _dearest(self, identity: Mapping[str, str], tokens: int, answer: int) -> Charge:
        """The cost of a prompt and an answer, whether the prompt is written to a cache or not."""
        plain = Usage(tokens, answer)
        cached = replace(plain, cache_write_tokens=tokens)
        costs = [self.prices.cost(identity, usage) for usage in (plain, cached)]
        prices = [cost for cost in costs if cost is not None]
        return Charge(max(prices)) if len(prices) == 2 else Charge(None, dict(identity), cached)

    def _check(self, usd: Decimal, purpose: str) -> None:
        """In a turn: raises BudgetError if an amount doesn't fit."""
        if self.max_usd is None or self.log.total + usd <= self.max_usd:
            return
        under_way, held = self._held(), self.log.held
        lost = self.log.held_for(self.log.lost)
        others = held - under_way - lost
        settle = "(`counterprior doctor FOLDER` shows them)"
        facts = [
            f"{lost:.4f} USD of it attempts without an outcome {settle}" if lost else "",
            f"{others:.4f} USD of it under way in other processes, or left by one that was killed "
            f"{settle}"
            if others > LEAST
            else "",
        ]
        unsettled = "".join(f", {fact}" for fact in facts if fact)
        raise BudgetError(
            f"the next {purpose} may cost {usd:.4f} USD, which would exceed the cap of "
            f"{self.max_usd} USD: {self.log.total - under_way:.4f} USD are spent{unsettled} and "
            f"{under_way:.4f} USD are under way. Nothing is lost: run the same command again with "
            f"a higher --max-usd",
            code="over-budget",
        )


@dataclass(frozen=True)
class _Attempt:
    """An attempt under way in this process."""

    source: str
    usd: Decimal
    """Its worst case, US dollars."""
    thread: threading.Thread
    """Who waits for its answer."""


def _in_usd(prices: PriceTable, max_usd: Decimal | None, charge: Charge) -> Decimal | None:
    """US dollars; None for an unknown price. Raises UnpricedError for one under a cap."""
    usd = prices.of(charge)
    if usd is None and max_usd is not None:
        raise UnpricedError(_unpriced(charge), code="no-price")
    return usd


def _image_tokens(model: str) -> int:
    dearer = (tokens for start, tokens in DEARER_IMAGES.items() if model.startswith(start))
    return next(dearer, IMAGE_TOKENS)


def prompt_bound(request: ChatRequest, image_tokens: int = IMAGE_TOKENS) -> int:
    """More tokens than the prompt can have: a token holds at least one byte."""
    spec = request.spec()
    texts = [request.system, *(content for content in request.user if isinstance(content, str))]
    texts += [str(spec["schema"])] if spec["schema"] else []
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    images = sum(isinstance(content, ImagePart) for content in request.user)
    return size + image_tokens * images + FRAME_TOKENS


def _model(identity: Mapping[str, str]) -> str:
    return f"{identity['kind']}:{identity['model']}"


def _unpriced(charge: Charge) -> str:
    model = _model(charge.identity)
    entry, unit = "{input: ..., output: ...}", "per million tokens"
    if charge.image:
        entry, unit = "{image: ..., edit: ...}", "each"
    return (
        f"no price is known for {model}, so --max-usd can't be kept: give a price table with "
        f"`{model}: {entry}` in USD {unit} (--prices FILE), or drop the cap"
    )
