"""Shared code of generators behind an API of OpenAI's SDK: options, seeds, facts of the server."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from io import BytesIO
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from PIL.Image import Image

from ...agents.backends.bounded import IMAGE_BYTES
from ...agents.backends.http import CHECK_SECONDS, RAW, ConnectionOptions, Wire, hide, server
from ...agents.chat import BackendError, Completion
from ...fetching import Downloader, DownloadSettings, FetchError
from ...images import ImageError, open_image
from ...specs import Spec, is_secret
from ..core import OBSERVED, GeneratorError

EXTRA = "extra."
"""Before the name of any other field of the request's body: ``extra.NAME=VALUE``."""
SEED = "seed"
SEEDLESS = ("api.openai.com", ".openai.azure.com", "generativelanguage.googleapis.com")
"""Hosts (or their ends) whose API is known to take no seed, and to reject requests with one."""

FACTS = (
    "model_path",
    "root",
    "revision",
    "task_type",
    "pipeline_name",
    "pipeline_class",
    "dit_precision",
    "vae_precision",
    "text_encoder_precisions",
    "dtype",
    "quantization",
)
"""Fields of a listing that identify the model; others change with every start (`created`, ...)."""

LONGEST = 100_000_000
"""Characters of an encoded image above which it is not decoded."""


class ServedOptions(ConnectionOptions, extra="allow"):
    """Options of a model behind an API; a subclass adds the fields that are sent."""

    undeclared: ClassVar[str] = f"{EXTRA}NAME"
    not_sent: ClassVar[frozenset[str]] = frozenset(("timeout", "attempts", SEED))
    """Options that are no field of a request."""

    seed: Literal["send", "none"] | None = None
    """Whether requests send the seed; by default `send`, unless the API is known to take none."""

    @classmethod
    def takes(cls, name: str) -> bool:
        return name.startswith(EXTRA) and name != EXTRA

    def sent(self, spec: Spec) -> dict[str, Any]:
        """Field of a request -> value, of what a spec sets, in its order."""
        return {
            name.removeprefix(EXTRA): _plain(text) if self.takes(name) else getattr(self, name)
            for name, text in spec.options.items()
            if name not in self.not_sent
        }


class ServedModel:
    """A model behind such an API: what is sent with each request, and who answers."""

    def __init__(self, spec: Spec, options: ServedOptions) -> None:
        """Raises BackendError for a missing key."""
        import openai

        self.call = options.sent(spec)
        http = {n: text for n, text in spec.options.items() if n in ConnectionOptions.model_fields}
        self.wire = Wire.open(
            replace(spec, options=http), openai, openai.OpenAI, "OPENAI_API_KEY", IMAGE_BYTES
        )
        host = urlsplit(str(self.wire.client.base_url)).hostname or ""
        seed = options.seed or ("none" if host.endswith(SEEDLESS) else "send")
        # Left out, a server uses its own: SGLang's is always 1024, one image for every seed.
        self.sends_seed = seed == "send"

    def identity(self) -> dict[str, str]:
        """Model and server, what is sent besides secrets, the server's facts about the model."""
        call = {n: _shown(value) for n, value in self.call.items() if not is_secret(n)}
        seed = "sent" if self.sends_seed else "not sent"
        return {**call, **self.wire.identity(), SEED: seed, **self._served}

    def failure(self, completion: Completion, lost: int) -> GeneratorError:
        """The error of a request that the server rejected."""
        if completion.outcome == "refused":
            return GeneratorError(completion.text, "refused", lost, code="declined")
        blames_seed = self.sends_seed and SEED in completion.text.lower()
        hint = "; a server that takes no seed needs the option seed=none" if blames_seed else ""
        return GeneratorError(completion.text + hint, lost_attempts=lost, code="server-error")

    @cached_property
    def _served(self) -> dict[str, str]:
        """Facts of the server's list of models; empty for a vendor's server or without a list."""
        if "server" not in self.wire.identity():
            return {}
        base = str(self.wire.client.base_url).rstrip("/")
        # SGLang tells about its one model beside `/v1`, where the list is OpenAI's.
        for address in dict.fromkeys((f"{base}/models", f"{base.removesuffix('/v1')}/models")):
            if facts := served_facts(self._listing(address), self.wire.endpoint.model):
                public = {name: hide(text, self.wire.key) for name, text in facts.items()}
                return {OBSERVED + name: text for name, text in public.items()}
        return {}

    def _listing(self, address: str) -> Any:
        seconds = min(CHECK_SECONDS, self.wire.endpoint.options.timeout)
        options: Any = {"timeout": seconds, "headers": RAW}
        get = partial(self.wire.client.get, address, cast_to=str, options=options)
        with suppress(BackendError, ValueError):
            status, text, _ = self.wire.settled(get)
            return json.loads(text) if status == 200 else None
        return None


def served_facts(listing: Any, model: str) -> dict[str, str]:
    """Returns the facts about one model in a server's list of models, in any order.

    In OpenAI's list it is the entry of that name, or the only entry. SGLang returns one object
    without a list.

    >>> served_facts({"data": [{"id": "b"}, {"id": "a", "root": "X/A", "created": 7}]}, "a")
    {'root': 'X/A'}
    >>> served_facts({"model_path": "X/A", "dit_precision": "bf16", "num_gpus": 2}, "any")
    {'model_path': 'X/A', 'dit_precision': 'bf16'}
    """
    entry = listing
    if isinstance(listing, Mapping) and "data" in listing:
        data = listing["data"] if isinstance(listing["data"], Sequence) else []
        entries = [item for item in data if isinstance(item, Mapping)]
        named = [item for item in entries if item.get("id") == model] or entries
        entry = named[0] if len(named) == 1 or named is not entries else None
    if not isinstance(entry, Mapping):
        return {}
    facts = {name: entry[name] for name in FACTS if entry.get(name) not in (None, "")}
    return {name: _shown(value) for name, value in facts.items()}


def decode_image(encoded: Any) -> Image:
    """Decodes base64 text to an image. Raises GeneratorError for anything else."""
    try:
        if len(encoded) > LONGEST:
            raise GeneratorError(
                f"the image is {len(encoded):,} characters long, which is too big",
                code="image-too-large",
            )
        return open_image(BytesIO(base64.b64decode(encoded, validate=True)))
    except (ImageError, binascii.Error, TypeError, ValueError) as error:
        raise GeneratorError(f"the image {error}", code="unreadable-image") from None


FETCHING = DownloadSettings(
    deadline_s=60,
    max_bytes=64_000_000,
    tries=3,
    rest_after=None,
    agent="counterprior/1",
    opt_outs=False,
)
"""How the images are fetched that a server gives an address of."""


NEVER_FETCHED = ("bad_url", "refused_address", "scheme")
"""Reasons for which no address of the same server can be fetched."""


def fetch_image(url: str) -> Image:
    """The image at an address that a server gave, if that is a public one.

    Raises GeneratorError. An address may carry a key, so no error shows more than its host.
    """
    try:
        data, _ = Downloader(FETCHING).download(url)
    except FetchError as error:
        failure = GeneratorError(
            f"the image's address, at {_host(url)}, can't be fetched: {error.reason}",
            code="server-unreachable",
        )
        failure.ends_run = error.reason in NEVER_FETCHED
        raise failure from None
    try:
        return open_image(BytesIO(data))
    except ImageError as error:
        raise GeneratorError(f"the image {error}", code="unreadable-image") from None


def _host(url: str) -> str:
    try:
        return server(url) or "nowhere"
    except ValueError:
        return "nowhere"


def _plain(text: str) -> Any:
    """JSON where the text is JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
