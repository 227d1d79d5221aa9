"""Workers that are Ray actors, on the cluster at RAY_ADDRESS, or on a new one on this machine.

The run's folder must be on storage that all machines see: actors write into it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import UsageError
from ...extras import install_command
from .tasks import Numbered, Reply, TaskWorker, WorkerHandle, do_bundle, open_task


class Actor:
    """One worker; Ray sets its device before it is created."""

    def __init__(self, folder: str) -> None:
        self._worker: TaskWorker[Any, Any] | None = None
        if os.path.isdir(folder):  # relative paths and the user's own modules
            os.chdir(folder)

    def open(self, payload: bytes) -> bytes:
        """As `tasks.open_task`."""
        self._worker, reply = open_task(payload)
        return reply

    def do(self, bundle: list[Numbered[Any]]) -> bytes:
        """As `tasks.do_bundle`."""
        assert self._worker is not None
        return do_bundle(self._worker, bundle)


@dataclass(eq=False)
class _Link:
    actor: Any
    replies: deque[Any] = field(default_factory=deque)
    """Futures of the actor's calls, in order."""


class RayActors:
    """A `WorkerPool` on a cluster."""

    def __init__(self, payload: bytes, workers: int, gpus: bool) -> None:
        """Raises UsageError if Ray is not installed or no cluster answers."""
        if importlib.util.find_spec("ray") is None:
            raise UsageError(
                "--engine ray needs Ray",
                install_command("ray"),
                code="missing-library",
            )
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
            except (ConnectionError, TimeoutError) as error:
                address = os.environ.get("RAY_ADDRESS", "")
                raise UsageError(
                    f"no Ray cluster answers at {address}: {error}", code="server-unreachable"
                ) from None
        resources = actor_resources(ray.cluster_resources(), workers, gpus)
        self._actor_class = ray.remote(**resources)(Actor)
        self._payload = ray.put(payload)
        self._links: list[_Link] = []

    def start(self, number: int) -> WorkerHandle[Any]:
        actor = self._actor_class.remote(os.getcwd())
        link = _Link(actor, deque([actor.open.remote(self._payload)]))
        self._links.append(link)
        return WorkerHandle(number, link)

    def send(self, worker: WorkerHandle[Any], bundle: list[Numbered[Any]]) -> None:
        worker.link.replies.append(worker.link.actor.do.remote(bundle))

    def receive(
        self, workers: Sequence[WorkerHandle[Any]]
    ) -> list[tuple[WorkerHandle[Any], Reply | None]]:
        by_future = {worker.link.replies[0]: worker for worker in workers}
        ready, _ = self._ray.wait(list(by_future), num_returns=1)
        replies: list[tuple[WorkerHandle[Any], Reply | None]] = []
        for future in ready:
            worker = by_future[future]
            worker.link.replies.popleft()
            try:
                replies.append((worker, pickle.loads(self._ray.get(future))))
            except self._ray.exceptions.RayActorError:
                self._links.remove(worker.link)
                replies.append((worker, None))
        return replies

    def close(self) -> None:
        for link in self._links:
            self._ray.kill(link.actor)
        if self._ours:
            self._ray.shutdown()


def actor_resources(cluster: Mapping[str, float], workers: int, gpus: bool) -> dict[str, float]:
    """Resources that each actor reserves: a share of a GPU if it may have one, else of a CPU.

    A share is 1 / k of a device, so that all workers have room at the same time.

    >>> actor_resources({"CPU": 64, "GPU": 2}, 3, gpus=True)
    {'num_gpus': 0.5}
    >>> actor_resources({"CPU": 64, "GPU": 2}, 3, gpus=False)
    {'num_cpus': 1.0}
    """
    name, count = ("gpus", cluster.get("GPU", 0)) if gpus else ("cpus", cluster.get("CPU", 0))
    return {f"num_{name}": 1 / math.ceil(workers / count) if count else 0}
