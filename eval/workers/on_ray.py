"""Workers that are Ray actors, on the cluster at RAY_ADDRESS, else on a Ray of our own here.

The run's folder must be on storage that all machines see: actors write images into it.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import UsageError
from .farm import Hand, Numbered, Reply, TaskWorker, done, opened


class Actor:
    """One worker; Ray has set its device before it is made."""

    def __init__(self, folder: str) -> None:
        self._worker: TaskWorker[Any, Any] | None = None
        if os.path.isdir(folder):  # relative paths and the user's own modules
            os.chdir(folder)

    def open(self, payload: bytes) -> bytes:
        """As `farm.opened`."""
        self._worker, reply = opened(payload)
        return reply

    def do(self, bundle: list[Numbered[Any]]) -> bytes:
        """As `farm.done`."""
        assert self._worker is not None
        return done(self._worker, bundle)


@dataclass(eq=False)
class _Link:
    actor: Any
    replies: deque[Any] = field(default_factory=deque)
    """What the actor was asked for, in order."""


class RayActors:
    """A crew on a cluster."""

    def __init__(self, payload: bytes, workers: int) -> None:
        """Raises UsageError where Ray is not installed or no cluster answers."""
        if importlib.util.find_spec("ray") is None:
            raise UsageError("--engine ray needs Ray: pip install 'counterprior[ray]'")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
            except (ConnectionError, TimeoutError) as error:
                address = os.environ.get("RAY_ADDRESS", "")
                raise UsageError(f"no Ray cluster answers at {address}: {error}") from None
        gpus = ray.cluster_resources().get("GPU", 0)
        share = min(1.0, gpus / workers) if gpus else 0
        self._kind = ray.remote(num_gpus=share)(Actor)
        self._payload = ray.put(payload)
        self._all: list[_Link] = []

    def hire(self, number: int) -> Hand[Any]:
        actor = self._kind.remote(os.getcwd())
        link = _Link(actor, deque([actor.open.remote(self._payload)]))
        self._all.append(link)
        return Hand(number, link)

    def send(self, hand: Hand[Any], bundle: list[Numbered[Any]]) -> None:
        hand.link.replies.append(hand.link.actor.do.remote(bundle))

    def receive(self, hands: Sequence[Hand[Any]]) -> list[tuple[Hand[Any], Reply | None]]:
        by_reply = {hand.link.replies[0]: hand for hand in hands}
        ready, _ = self._ray.wait(list(by_reply), num_returns=1)
        found: list[tuple[Hand[Any], Reply | None]] = []
        for reply in ready:
            hand = by_reply[reply]
            hand.link.replies.popleft()
            try:
                found.append((hand, pickle.loads(self._ray.get(reply))))
            except self._ray.exceptions.RayActorError:
                self._all.remove(hand.link)
                found.append((hand, None))
        return found

    def close(self) -> None:
        for link in self._all:
            self._ray.kill(link.actor)
        if self._ours:
            self._ray.shutdown()
