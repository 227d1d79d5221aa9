"""Opens a pull request with results on a model's repository, once, and checks it before.

The files are entries of `.eval_results/`, as the Hub shows them on a model's page and on the
leaderboard of the benchmark (Hub docs, evaluation results).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from ..parsing import load_yaml
from .errors import HubError
from .push_checks import SIGNATURE, some
from .remote import Repository, Tree, is_passing

EVAL = "eval.yaml"
"""Registers a dataset as a benchmark, with its tasks."""
FOLDER = ".eval_results/"


@dataclass(frozen=True)
class Benchmark:
    """A dataset on the Hub that results are of."""

    repository: Repository
    """The dataset."""
    commit: str
    """40 hex digits: what results name, because it can't move."""
    tasks: frozenset[str]
    """Ids that its `eval.yaml` lists at that commit."""

    @property
    def dataset(self) -> str:
        """As results name it: NAMESPACE/NAME@COMMIT."""
        return f"{self.repository.name}@{self.commit}"

    @classmethod
    def find(cls, repository: Repository, revision: str) -> Benchmark:
        """The benchmark at a tag or commit. Raises HubError if the dataset is not one."""
        commit = repository.commit_of(revision)
        with TemporaryDirectory() as temporary:
            folder = Path(temporary) / "eval"
            if EVAL not in repository.download(commit, folder, only=[EVAL]):
                raise HubError(
                    f"{repository.name}@{revision} has no {EVAL}, so the Hub knows no task of it: "
                    f"give the benchmark's release with --dataset",
                    code="not-a-benchmark",
                )
            try:
                tasks = load_yaml((folder / EVAL).read_text("utf-8"), EVAL)["tasks"]
                listed = frozenset(str(task["id"]) for task in tasks)
            except (yaml.YAMLError, LookupError, TypeError, UnicodeDecodeError):
                raise HubError(
                    f"{repository.name}@{revision}: {EVAL} lists no tasks", code="not-a-benchmark"
                ) from None
        return cls(repository, commit, listed)


@dataclass(frozen=True)
class PullRequest:
    """A pull request on the Hub, new or already open."""

    model: str
    """Repository of the model."""
    url: str
    """Its page; that of the model where its main holds the files already."""
    opened: bool
    """Whether it is new."""


def check_results(files: Mapping[str, str], benchmark: Benchmark) -> None:
    """Raises HubError for a file that the Hub or a reader could not use.

    files: path in the model's repository -> YAML.
    """
    for path, text in files.items():
        for code, problem in _problems(path, text, benchmark):
            raise HubError(problem, code=code)
    if not files:
        raise HubError("no run has a defined headline score: nothing to open", code="hub-refuses")


def _problems(path: str, text: str, benchmark: Benchmark) -> list[tuple[str, str]]:
    """The code and the text of each problem."""
    from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries

    name = benchmark.repository.name
    problems = []
    if not re.fullmatch(rf"{re.escape(FOLDER)}[\w.-]+\.yaml", path):
        problems.append(("hub-refuses", f"{path}: is not directly in {FOLDER}"))
    written: Any = load_yaml(text, path)
    try:
        entries = parse_eval_result_entries(written)
    except (LookupError, TypeError, AttributeError, ValueError):
        return [("hub-refuses", f"{path}: has no results in the Hub's format")]
    if not entries or eval_result_entries_to_yaml(entries) != written:
        return [("hub-refuses", f"{path}: has fields that the Hub's format lacks")]
    for entry in entries:
        value, notes = entry.value, entry.notes or ""
        if (entry.dataset_id, entry.dataset_revision) != (name, benchmark.commit):
            dataset = f"{entry.dataset_id}@{entry.dataset_revision}"
            problem = f"{path}: is of {dataset}, not of {name}@{benchmark.commit}"
            problems.append(("hub-refuses", problem))
        if entry.task_id not in benchmark.tasks:
            tasks = some(sorted(benchmark.tasks))
            problem = f"{path}: {name} has no task {entry.task_id!r}: it has {tasks}"
            problems.append(("not-a-benchmark", problem))
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            problem = f"{path}: the value is {value!r}, not a number"
            problems.append(("hub-refuses", problem))
        if not (n := re.search(r"(?:^|; )n = (\d+)(?:;|$)", notes)) or int(n[1]) < 1:
            problems.append(("hub-refuses", f"{path}: the notes do not give n"))
    return problems


def open_pull_request(
    model: Repository, files: Mapping[str, str], benchmark: Benchmark
) -> PullRequest:
    """Opens a pull request with the files, unless main or an open one of ours has them.

    Raises HubError if a file is wrong, the model isn't there, or the Hub refuses. A request
    whose answer was lost is looked for before another is made.
    """
    check_results(files, benchmark)
    title = f"Add results on {benchmark.repository.name}"
    with TemporaryDirectory() as temporary:
        for path, text in files.items():
            (Path(temporary) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(temporary) / path).write_text(text, "utf-8")
        head = model.head()
        if head is None:
            raise HubError(
                f"the model {model.name} does not exist, or your token can't see it: pass "
                f"--model-id, the model that these results are of",
                code="no-repository",
            )
        if _holds(model.tree(head.commit), files, Path(temporary)):
            return PullRequest(model.name, f"{model.api.endpoint}/{model.name}", False)
        for wait in [*model.waits, None]:
            if (existing := _existing(model, files, title, Path(temporary))) is not None:
                return existing
            try:
                return PullRequest(model.name, _create(model, files, title, benchmark), True)
            except Exception as error:
                if not is_passing(error) or wait is None:
                    raise model.named(error) from error
            time.sleep(wait)
    raise AssertionError("unreachable")


def _holds(tree: Tree, files: Mapping[str, str], folder: Path) -> bool:
    """Whether a tree has every file, with the same content."""
    return all(path in tree and tree[path].is_of(folder / path) for path in files)


def _existing(
    model: Repository, files: Mapping[str, str], title: str, folder: Path
) -> PullRequest | None:
    """The open pull request of this title that has the files."""

    def ask() -> list[Any]:
        return list(
            model.api.get_repo_discussions(
                model.name,
                repo_type="model",
                discussion_type="pull_request",
                discussion_status="open",
            )
        )

    for request in model.persist(ask):
        if request.title == title and _holds(model.tree(f"refs/pr/{request.num}"), files, folder):
            url = f"{model.api.endpoint}/{model.name}/discussions/{request.num}"
            return PullRequest(model.name, url, False)
    return None


def _create(model: Repository, files: Mapping[str, str], title: str, benchmark: Benchmark) -> str:
    from huggingface_hub import CommitOperationAdd

    where = f"{benchmark.repository.name}@{benchmark.commit}"
    commit = model.once(
        lambda: model.api.create_commit(
            model.name,
            [CommitOperationAdd(path, text.encode()) for path, text in sorted(files.items())],
            repo_type="model",
            commit_message=title,
            commit_description=f"Measured on {where}; each file says how.\n\n{SIGNATURE}",
            create_pr=True,
        )
    )
    return commit.pr_url or ""
