"""Who runs the workers: a process pool, Daft on this machine, or Daft on a Ray cluster.

An engine turns jobs into manifest entries as they finish, in any order. It never sees a caption.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from .captions.gate import GateSettings
from .captions.miner import MinerSettings
from .captions.parser import single_threaded
from .errors import CorpusError
from .shards import Job, ShardSettings, Worker, end_with_parent
from .sources import Shard, SourceSettings

Engine = Callable[[Sequence[Job], ShardSettings, int], Iterator[dict[str, Any]]]
"""Jobs, settings and number of workers to entries; raises WorkerDied."""

_VAIN_STARTS = 3
"""Starts of an engine in a row that finish nothing before it is given up."""


class EngineError(CorpusError):
    """An engine that can't go on; finished shards are kept, and the same command goes on."""


class WorkerDied(Exception):
    """An engine stopped, mostly because a worker was killed; the message says what it saw."""


def engine(name: str) -> Engine:
    """`local`: Daft here, or the pool where Daft isn't installed; `pool`; `ray`: Daft on Ray."""
    if name == "pool" or (name == "local" and importlib.util.find_spec("daft") is None):
        return pool
    if name in ("local", "ray"):
        if importlib.util.find_spec("daft") is None:
            raise EngineError(f"--engine {name} needs Daft: pip install daft")
        if name == "ray" and importlib.util.find_spec("ray") is None:
            raise EngineError("--engine ray needs Ray: pip install ray")
        return daft_on_ray if name == "ray" else daft_here
    raise EngineError(f"no engine {name!r}: choose from local, pool, ray")


def run_jobs(
    run: Engine,
    jobs: Sequence[Job],
    settings: ShardSettings,
    workers: int,
    restarting: Callable[[int], None],
) -> Iterator[dict[str, Any]]:
    """Entries of all jobs. When a worker dies the engine is started again with what is left.

    So a death costs the shards in flight, one a worker. `restarting` is told of every restart.
    Raises EngineError where engines keep stopping without finishing anything.
    """
    left = {job.key: job for job in jobs}
    restarts = in_vain = 0
    while left:
        before = len(left)
        try:
            for entry in run(list(left.values()), settings, workers):
                del left[entry["key"]]
                yield entry
            return
        except WorkerDied as death:
            in_vain = in_vain + 1 if len(left) == before else 0
            if in_vain == _VAIN_STARTS:
                raise EngineError(
                    f"the engine stopped {in_vain} times in a row ({death}) with {len(left)} "
                    f"shards left; were workers killed, or out of memory? Run the same command "
                    f"again, perhaps with fewer --workers or --engine pool"
                ) from death
            restarts += 1
            restarting(restarts)


def pool(jobs: Sequence[Job], settings: ShardSettings, workers: int) -> Iterator[dict[str, Any]]:
    """A process pool, one shard a task."""
    executor = ProcessPoolExecutor(
        min(workers, len(jobs)), get_context("spawn"), _start, (settings,)
    )
    try:
        for future in as_completed([executor.submit(_mine, job) for job in jobs]):
            yield future.result()
    except BrokenProcessPool as error:
        raise WorkerDied(str(error)) from None
    finally:
        executor.shutdown(cancel_futures=True)


_worker: Worker | None = None


def _start(settings: ShardSettings) -> None:
    global _worker
    _worker = Worker(settings)


def _mine(job: Job) -> dict[str, Any]:
    assert _worker is not None
    return _worker.mine(job)


def daft_here(
    jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """Daft's native runner."""
    return _daft("native", jobs, settings, workers)


def daft_on_ray(
    jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """Daft on the Ray cluster that `RAY_ADDRESS` names, or on one of its own on this machine."""
    return _daft("ray", jobs, settings, workers)


def _daft(
    runner: str, jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """One query, in a process of its own.

    Daft gives a query up when one of its workers dies, and may leave the others behind or abort
    the process; workers end with the process that started them.
    """
    spawn = get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    query = spawn.Process(
        target=_query, args=(runner, jobs, settings, workers, sender), daemon=True
    )
    query.start()
    sender.close()  # so that the end of the query ends what can be received
    try:
        while isinstance(message := receiver.recv(), dict):
            yield message
        query.join()
        if message:
            raise WorkerDied(f"Daft ({runner}): {message}")
    except EOFError:
        query.join()
        raise WorkerDied(f"Daft ({runner}) ended with code {query.exitcode}") from None
    finally:
        query.kill()
        query.join()


def _query(
    runner: str, jobs: Sequence[Job], settings: ShardSettings, workers: int, sender: Connection
) -> None:
    """Send each entry as it comes; last, the error that ended the query, or an empty text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the run, which ends this process
    end_with_parent()
    os.environ.update(DAFT_RUNNER=runner)  # read by Daft when it is imported
    import daft

    @daft.cls(use_process=True, max_concurrency=workers)
    class Mine:
        def __init__(self, text: str) -> None:
            # Daft forks nothing: the class is made anew in each process, from text alone.
            from .engines import settings_from
            from .shards import Worker

            self.worker = Worker(settings_from(text))

        @daft.method.batch(return_dtype=daft.DataType.string(), batch_size=1)
        def mine(self, column: Any) -> list[str]:
            from .engines import job_from

            return [json.dumps(self.worker.mine(job_from(text))) for text in column.to_pylist()]

    # One query, so that workers and their models live on; one partition a shard, so that Ray
    # returns entries as shards finish and not all at the end.
    frame = daft.from_pylist([{"job": json.dumps(asdict(job))} for job in jobs])
    if runner == "ray":  # the native runner streams rows anyhow, and warns
        frame = frame.into_partitions(len(jobs))
    mine: Any = Mine(json.dumps(asdict(settings))).mine  # an expression, once decorated
    try:
        for row in frame.select(mine(daft.col("job")).alias("entry")).iter_rows():
            sender.send(json.loads(row["entry"]))
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}")
    else:
        sender.send("")


QUIET = {
    "DO_NOT_TRACK": "1",
    "DAFT_ANALYTICS_ENABLED": "0",
    "SCARF_NO_ANALYTICS": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DAFT_PROGRESS_BAR": "0",
}
"""No library tells anyone of a run, and no bar but ours is shown."""


def prepare_environment() -> None:
    """What workers must find before they import NumPy; call before an engine starts."""
    os.environ.update(single_threaded() | QUIET)


def settings_from(text: str) -> ShardSettings:
    """Settings back from the JSON of their `asdict`."""
    data = json.loads(text)
    source = SourceSettings(**{**data["source"], "paths": tuple(data["source"]["paths"])})
    return ShardSettings(source, GateSettings(**data["gate"]), MinerSettings(**data["miner"]))


def job_from(text: str) -> Job:
    """A job back from the JSON of its `asdict`."""
    data = json.loads(text)
    groups = data["shard"]["groups"]
    shard = Shard(**{**data["shard"], "groups": None if groups is None else tuple(groups)})
    return Job(shard, data["target"], data["key"])
