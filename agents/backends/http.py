"""Shared by the HTTP backends: spec options, the connection, error classes, reading a body."""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Callable, Container, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt

from ...errors import UsageError
from ...fetching import Limits, TooLarge
from ...printable import without_surrogates
from ...specs import Options, Spec, Unit
from ..chat import (
    BackendError,
    CallOutcome,
    ChatRequest,
    Completion,
    Permit,
    UnusableModelError,
    Usage,
    always,
)
from ..retry import (
    RETRIED,
    GaveUpError,
    RetryPolicy,
    TransientError,
    UnreadableAnswerError,
    UnreadableError,
)
from .bounded import CHAT_BYTES, Redirected, bound, within

if TYPE_CHECKING:
    import ssl

    import httpx2

R = TypeVar("R")

UNUSABLE = frozenset({401, 402, 403, 404})
"""Statuses about key, account or model, not about this request."""

ABOUT_SETTINGS = frozenset(
    {"model_not_found", "invalid_model", "unknown_model", "invalid_api_key", "api_key_invalid"}
)
"""Error codes that say the same under the status 400."""

_ABOUT_SETTINGS = re.compile(
    r"\b(unknown|invalid|no such|unsupported) model\b"
    r"|\bmodel\b.{0,120}\b(not found|does ?n[o']t exist|is unknown|not a valid model)\b"
    r"|\bnot a valid model\b"
    r"|\b(invalid|incorrect|unknown) api key\b|\bapi key (is )?(not valid|invalid|incorrect)\b",
    re.IGNORECASE | re.DOTALL,
)
"""How servers say it in words; Mistral, OpenRouter, Gemini and xAI do so under the status 400."""

DECLINED = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
"""Error codes of a server that declines a request for its content."""

SHOWN = 500
"""Characters of a server's message that an error message shows."""

SECRET_FROM = 12
"""Length in characters from which a key counts as a secret."""

LOST_UPSTREAM = frozenset({502, 504, *range(520, 528)})
"""Statuses of a gateway whose server may have done the work, and billed it."""

NOT_DONE = frozenset({401, 402, 403, 404, 405, 409, 410, 411, 413, 414, 415, 429, 501, 503, 529})
"""Statuses that say that a request was not worked on. A vendor bills no other rejection either;
what any other server bills for the rest, nobody knows."""

DEEPEST = 64
"""Levels of nesting in an answer; no server's own has ten."""

UNLISTED = frozenset({405, 501})
"""Statuses by which a server says that it lists no models."""

TRANSIENT = RETRIED - UNLISTED
"""Statuses after which a check asks again."""

LIST_FAILED = 500
"""Status by which `transformers serve` without network says, every time, that it can't list its
models; it answers all the same."""

KEY_REJECTED = frozenset({401, 403})
"""Statuses about the key."""

RAW = {"X-Stainless-Raw-Response": "true"}
"""Header that makes the SDK return the response itself, to be read whatever it holds."""

LISTED = 10
"""Most names of a server's models in a message."""

CHECK_SECONDS = 20.0
"""Longest wait for an answer when a server is only checked."""

NO_KEY_NEEDED = "none"
"""Sent as the key to the user's own server if no key is set."""


class ConnectionOptions(Options):
    """How a server is asked; changes no answer."""

    timeout: Annotated[float, Field(ge=0.01), Unit("seconds")] = 600
    """Time limit for a whole answer; after it, the attempt counts as lost."""
    attempts: PositiveInt = RetryPolicy.attempts
    """Largest number of attempts at a call."""


class BackendOptions(ConnectionOptions):
    """Options of a chat model behind a server."""

    temperature: Annotated[float, Field(ge=0)] | None = None
    """Sent only if set; several newer models reject it."""
    max_tokens: Annotated[int, Field(ge=1), Unit("tokens")] | None = None
    """Longest answer, for servers with a small context; by default as the request says."""


@dataclass(frozen=True)
class ModelEndpoint:
    """A model behind a server, and how it is asked."""

    model: str
    """Name of the model, as the server knows it."""
    base_url: str | None
    """Root of the API; None for the SDK's default: its environment variable, else the vendor."""
    options: BackendOptions

    @classmethod
    def from_spec(cls, spec: Spec) -> ModelEndpoint:
        """``MODEL[@BASE_URL][?timeout=s&attempts=n&temperature=t&max_tokens=n]``.

        Raises UsageError as `Options.read`, and where no model is named.
        """
        model, _, base_url = spec.argument.partition("@")
        if not model:
            problem = f"{spec.kind}: name a model, e.g. {spec.kind}:MODEL"
            raise UsageError(problem, code="missing-option")
        return cls(model, base_url or None, BackendOptions.read(spec))

    @property
    def retry(self) -> RetryPolicy:
        """When to try again."""
        return RetryPolicy(self.options.attempts)

    def bound(self, request: ChatRequest) -> int:
        """Longest answer to a request, in tokens."""
        return min(request.max_tokens, self.options.max_tokens or request.max_tokens)

    def identity(self, kind: str, base_url: str) -> dict[str, str]:
        """The identity of a model that is served at `base_url`.

        A vendor's own endpoint is its `provider`. Any other is `custom` with host and port as its
        `server`: two servers may serve different models under one name.
        """
        address = server(base_url)
        identity = {"kind": kind, "model": self.model, "provider": VENDORS.get(address, "custom")}
        if address not in VENDORS:
            identity["server"] = address
        if self.options.temperature is not None:
            identity["temperature"] = f"{self.options.temperature:g}"
        if self.options.max_tokens is not None:
            identity["max_tokens"] = str(self.options.max_tokens)
        return identity


VENDORS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}
"""Host of a vendor's own endpoint -> provider."""


def server(base_url: str) -> str:
    """Host and port of a URL, without user, password, path and query.

    >>> server("https://me:secret@GPU-1.example:8000/v1?key=secret")
    'gpu-1.example:8000'
    """
    return urlsplit(base_url).netloc.rpartition("@")[2].lower()


class Client(Protocol):
    """The part of both SDKs' clients that is used here."""

    @property
    def base_url(self) -> Any: ...

    def post(self, path: str, *, cast_to: type[Any], body: Any, options: Any) -> Any: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Client)


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Certificates that connections trust; reading all of them takes longer than most answers."""
    import httpx2

    return httpx2.create_ssl_context()


@dataclass(frozen=True)
class Wire(Generic[C]):
    """An SDK's client, the model that it asks, and its key; both SDKs name their errors alike."""

    kind: str
    """Kind of the backend."""
    endpoint: ModelEndpoint
    """The model, and how it is asked."""
    sdk: Any
    """The SDK's module."""
    client: C
    """The SDK's client."""
    key: str
    """Never shown."""
    variable: str
    """Environment variable of the key."""

    @classmethod
    def open(
        cls,
        spec: Spec,
        sdk: Any,
        make: Callable[..., C],
        variable: str,
        max_bytes: int = CHAT_BYTES,
    ) -> Wire[C]:
        """The connection that a spec names, with the key of an environment variable.

        max_bytes: largest answer, after decoding. Raises UsageError for a wrong option,
        BackendError for a missing key.
        """
        endpoint = ModelEndpoint.from_spec(spec)
        key = read_key(variable, endpoint.base_url)
        http = sdk.DefaultHttpxClient(verify=_certificates())
        bound(http, max_bytes)
        # Attempts are ours to count: the SDK's own retries would hide what was billed.
        client = make(
            api_key=key,
            base_url=endpoint.base_url,
            timeout=endpoint.options.timeout,
            max_retries=0,
            http_client=http,
        )
        wire = cls(spec.kind, endpoint, sdk, client, key, variable)
        # Its sockets are closed with it, not when the collector finds them.
        weakref.finalize(wire, client.close)
        return wire

    def identity(self) -> dict[str, str]:
        """The model's settings."""
        return self.endpoint.identity(self.kind, str(self.client.base_url))

    def check(self, list_models: Callable[..., Any], path: str) -> int:
        """Makes sure that the server answers and takes key and model, by what costs nothing.

        If the server knows no list of models, fails to give it or lists other models only, a
        request without messages at `path`, which is not answered or billed, tells that from a wrong
        URL, from a server that is down and from a model that it does not serve. After a status that
        may pass, it is asked again as a call is. Returns the number of attempts that were made
        again. Raises BackendError with the cause.
        """
        seconds = min(CHECK_SECONDS, self.endpoint.options.timeout)
        policy = self.endpoint.retry
        repeated = 0

        def ask(
            body: dict[str, Any],
            policy: RetryPolicy = policy,
            passing: Container[int] = TRANSIENT,
        ) -> tuple[int, str]:
            nonlocal repeated
            options = {"timeout": seconds}
            send = partial(self.client.post, path, cast_to=object, body=body, options=options)
            try:
                status, text, again = self.settled(send, passing, policy)
            except GaveUpError:
                raise
            except BackendError:  # a server that failed may have closed this connection
                status, text, again = self.settled(send, passing, policy)
            repeated += again
            return status, text

        def ask_apart(body: dict[str, Any]) -> tuple[int, str]:
            """A server that fails at this request says nothing about key and model: status 0."""
            try:
                return ask(body, passing=TRANSIENT - {LIST_FAILED})
            except GaveUpError:
                return 0, ""

        try:
            status, text, repeated = self.settled(partial(list_models, timeout=seconds))
        except GaveUpError as no_list:  # it may answer calls all the same
            try:
                asked, answer = ask({}, RetryPolicy(attempts=1))
            except GaveUpError:
                raise no_list from None
            if asked in UNUSABLE:
                raise no_list if asked == 404 else self._rejected(asked, answer) from None
            return no_list.attempts - 1
        listed = _model_names(text) if status == 200 else []
        if status in (404, LIST_FAILED):
            asked, answer = ask({})
            if status == 404 or asked != 404:
                status, text = asked, answer
        elif 400 <= status < 500 and status not in {*UNUSABLE, *UNLISTED}:
            # LiteLLM's proxy says 400 about a key: to a list of models as to a request.
            if ask_apart({}) == (status, text):
                raise self._rejected(status, text, self._about_key)
        elif listed and self.endpoint.model not in listed:  # it may be an alias
            asked, answer = ask_apart(
                {"model": self.endpoint.model, "messages": [], "max_tokens": 1}
            )
            if is_about_settings(asked, answer):
                names = ", ".join(listed[:LISTED]) + (", ..." if len(listed) > LISTED else "")
                raise self._rejected(asked, answer, f"; it lists {names}")
        if status in UNUSABLE or status == LIST_FAILED:
            raise self._rejected(status, text)
        return repeated

    def settled(
        self,
        send: Callable[[], Any],
        passing: Container[int] = TRANSIENT - {LIST_FAILED},
        policy: RetryPolicy | None = None,
    ) -> tuple[int, str, int]:
        """Status and text of an answer that costs nothing, asked for again while it may pass; and
        the number of attempts that were made again.

        passing: statuses that may pass; by default those of a list of models. policy: by default
        that of calls. Raises GaveUpError with the last status, BackendError without an answer.
        """
        attempts = 0

        def attempt() -> tuple[int, str]:
            nonlocal attempts
            attempts += 1
            status, text, wait = self._status(send)
            if status in passing:
                raise TransientError(self._rejection(status, text), wait)
            return status, text

        (status, text), _ = (policy or self.endpoint.retry).run(attempt)
        return status, text, attempts - 1

    def _rejected(self, status: int, text: str, more: str = "") -> BackendError:
        about_key = self._about_key if status in KEY_REJECTED else ""
        message = self._rejection(status, text) + about_key + more
        return BackendError(message, code="server-error")

    def _rejection(self, status: int, text: str) -> str:
        return f"{self._address}: HTTP {status}: {hide(text, self.key)[:SHOWN]}"

    @property
    def _about_key(self) -> str:
        if self.key == NO_KEY_NEEDED:
            return f"; no key was sent: {self.variable} is not set"
        return f"; the key is that of {self.variable}"

    @property
    def _address(self) -> str:
        return server(str(self.client.base_url))

    def _status(self, send: Callable[[], Any]) -> tuple[int, str, float | None]:
        """Status and text of the answer, and the seconds that it asks to wait. Raises BackendError
        without an answer."""
        try:
            response = self._called(send)
        except UnreadableError as error:
            raise BackendError(f"{self._address}: {error}", code="server-error") from None
        except TransientError as error:
            raise BackendError(f"{error}; is the server up?", code="server-unreachable") from None
        except self.sdk.APIStatusError as error:
            answer = error.response
            return answer.status_code, answer.text, retry_after(answer.headers)
        raw = getattr(response, "http_response", None)
        return 200, "" if raw is None else raw.text, None

    def ask(
        self,
        send: Callable[[], Any],
        read: Callable[[dict[str, Any]], R],
        permit: Permit = always,
    ) -> tuple[R | Completion, int]:
        """Returns what `read` makes of the body of a raw response, or a rejected request's
        completion; and the number of earlier attempts that may have been billed.

        An answer that can't be read is an error of this request, with its reason. Raises
        BackendError, and what `permit` raises.
        """
        try:
            return self.endpoint.retry.run(lambda: self._send_once(send, read), permit)
        except UnreadableAnswerError as error:
            return unusable(str(error)), error.lost_attempts - 1

    def repeat(self, send: Callable[[], R], limits: Limits | None = None) -> R:
        """The result of a request that may be sent twice, within other bounds than an answer's
        if `limits` are set. Raises BackendError."""

        def attempt() -> R:
            with within(limits) if limits else nullcontext():
                return self._sent(send)

        return self.endpoint.retry.run(attempt)[0]

    def once(self, send: Callable[[], R]) -> R:
        """The result of a request that must not: without an answer it may still be under way."""
        try:
            return self._sent(send)
        except TransientError as error:
            raise BackendError(
                f"the batch may not have arrived: {error}", code="server-unreachable"
            ) from None

    def _send_once(
        self, send: Callable[[], Any], read: Callable[[dict[str, Any]], R]
    ) -> R | Completion:
        try:
            response = self._called(send)
        except self.sdk.APIStatusError as error:
            vendor = "server" not in self.identity()
            return failed_status(
                error.response, self.key, self._address, vendor, variable=self.variable
            )
        return read(read_body(response.http_response.content, self.key))

    def _sent(self, send: Callable[[], R]) -> R:
        try:
            return self._called(send)
        except self.sdk.APIStatusError as error:
            raise BackendError(
                failed_status(error.response, self.key, self._address).text, code="server-error"
            ) from None

    def _called(self, send: Callable[[], R]) -> R:
        """What a call of the SDK returns.

        Raises TransientError without an answer, UnreadableError for one that is too large,
        BackendError for one that leads elsewhere, and the SDK's APIStatusError.
        """
        try:
            return send()
        except (self.sdk.APIConnectionError, TooLarge, Redirected) as error:
            # One SDK wraps what it doesn't know.
            cause = error.__cause__ or error
            if isinstance(cause, Redirected):
                raise BackendError(
                    f"{self._address}: {hide(str(cause), self.key)}; name that server in the spec "
                    "if you trust it with prompts and images",
                    code="server-error",
                ) from None
            if isinstance(cause, TooLarge):
                raise UnreadableError(f"it has {cause}", retryable=False) from None
            reason = hide(str(cause), self.key)
            raise TransientError(
                f"{self._address}: no answer: {reason}", billed=was_sent(cause)
            ) from None


def _model_names(listing: str) -> list[str]:
    """Names in a server's list of models; empty where it is none."""
    try:
        entries = json.loads(listing)["data"]
        return [str(entry["id"]) for entry in entries]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def was_sent(error: BaseException | None) -> bool:
    """Whether a request may have reached its server: not where no connection came about."""
    import httpx2

    return not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout))


def read_key(variable: str, base_url: str | None) -> str:
    """The API key from the environment. Raises BackendError if the vendor's is missing."""
    if key := os.environ.get(variable):
        return key
    if base_url:
        return NO_KEY_NEEDED
    raise BackendError(
        f"set {variable} in the environment; keys are read from nowhere else", code="no-token"
    )


def unusable(reason: str) -> Completion:
    """An answer that was billed, but can't be used; it isn't asked for again."""
    return Completion("error", f"the answer can't be used: {reason}"[:SHOWN], None, {})


def read_or_fail(read: Callable[[dict[str, Any]], Completion], body: Any) -> Completion:
    """Returns what `read` makes of a body, or its failure where that can't be read."""
    try:
        return read(body)
    except UnreadableError as error:
        return unusable(str(error))


def read_body(content: bytes, key: str) -> dict[str, Any]:
    """The JSON object of a response; the key is hidden if the server echoes it, and no text holds
    a lone surrogate.

    Raises UnreadableError for anything else: the work is done and billed.
    """
    try:
        body = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise UnreadableError("it is nested too deeply", retryable=False) from None
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UnreadableError("the server's answer is no JSON object")
    if _depth(body) > DEEPEST:
        raise UnreadableError("it is nested too deeply", retryable=False)
    return cast(dict[str, Any], hide(_in_texts(without_surrogates, body), key))


def _depth(value: Any) -> int:
    """Levels of nesting, counted up to one more than are allowed."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        depth += 1
        inner = [v for v in level if isinstance(v, (dict, list))]
        level = [x for v in inner for x in (v.values() if isinstance(v, dict) else v)]
    return depth


def may_be_billed(status: int, vendor: bool) -> bool:
    """Whether a rejected request may be on the bill."""
    return status in LOST_UPSTREAM if vendor else status not in NOT_DONE


def failed_status(
    response: httpx2.Response, key: str, where: str, vendor: bool = False, *, variable: str = "key"
) -> Completion:
    """A rejected request as a completion, without usage where it may be billed.

    where: host and port. vendor: whether it comes from a vendor's own endpoint. variable:
    environment variable of the key. Raises TransientError for what may pass, UnusableModelError
    for what concerns every request.
    """
    status = response.status_code
    text = hide(response.text, key)
    message = f"HTTP {status}: {text[:SHOWN]}"
    billed = may_be_billed(status, vendor)
    if status in RETRIED:
        raise TransientError(f"{where}: {message}", retry_after(response.headers), billed=billed)
    declined = is_declined(text)
    if status < 400 or (is_about_settings(status, text) and not declined):
        raise UnusableModelError(
            f"{where}: {message} (every call would fail alike, so none was recorded: check model, "
            f"address and {variable}, and run the same command again)",
            lost_attempts=int(billed),
            code="server-error",
        )
    outcome: CallOutcome = "refused" if declined else "error"
    usage = None if billed else Usage(0, 0)
    return Completion(outcome, message, usage, {"status": status, "body": text})


def is_about_settings(status: int, text: str) -> bool:
    """Whether a rejection is about key, account or model, and not about one request.

    text: the body of the answer.

    >>> is_about_settings(400, '{"error": {"message": "m-1 is not a valid model ID"}}')
    True
    >>> is_about_settings(400, '{"error": {"message": "the image is too large for this model"}}')
    False
    """
    if status != 400:
        return status in UNUSABLE
    error = _error(text)
    codes = {str(error.get(name)).lower() for name in ("code", "type", "status")}
    words = error.get("message", text)
    return bool(codes & ABOUT_SETTINGS or _ABOUT_SETTINGS.search(str(words)[:SHOWN]))


def is_declined(text: str) -> bool:
    """Whether a rejection is about the content of a request: by its code, or as OpenRouter says it
    under the status 403."""
    error = _error(text)
    metadata = error.get("metadata")
    return str(error.get("code")) in DECLINED or (
        isinstance(metadata, dict) and "flagged_input" in metadata
    )


def _error(text: str) -> dict[str, Any]:
    """The object `error` of a server's answer; empty where there is none."""
    try:
        error = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return error if isinstance(error, dict) else {}


def with_lost(completion: Completion, lost: int) -> Completion:
    """The completion with the number of earlier attempts that may have been billed."""
    return replace(completion, lost_attempts=lost) if lost else completion


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks the client to wait; None if it names a date or nothing."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return None


def hide(value: Any, key: str) -> Any:
    """A parsed value, or a text, without the key, in every string of it, however it is escaped.

    A placeholder key (`EMPTY`, `x`) may be a word of an answer, and stays.
    """
    if len(key) < SECRET_FROM:
        return value

    def hidden(text: str) -> str:
        replaced = text.replace(key, HIDDEN)
        escaped = any(mark in replaced for mark in ESCAPES)
        return _in_any_form(key).sub(HIDDEN, replaced) if escaped else replaced

    return _in_texts(hidden, value)


def _in_texts(change: Callable[[str], str], value: Any) -> Any:
    """A parsed value with every text in it changed, names of fields too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _in_texts(change, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_in_texts(change, inner) for inner in value]
    return value


HIDDEN = "[key]"
ESCAPES = ("\\", "%", "&#")
"""Matches a text with an escaped character, in JSON, a URL or HTML."""


@lru_cache(maxsize=8)
def _in_any_form(key: str) -> re.Pattern[str]:
    """The key with each character plain or escaped, in JSON also several times over."""

    def forms(character: str) -> str:
        code, plain = ord(character), re.escape(character)
        json_form = rf"\\+(?:u{code:04x}|{plain})"
        return rf"(?:{plain}|{json_form}|%{code:02x}|&#0*{code};|&#x0*{code:x};)"

    return re.compile("".join(map(forms, key)), re.IGNORECASE)
