"""Results as a pull request on a model's repository: checked, opened once, found again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from forking import ForkingCommand
from huggingface_hub import parse_eval_result_entries
from loopback_hub import LoopbackHub
from published import published_run
from pushing import REPO, online
from refusals import raises

from counterprior.cards.errors import HubError
from counterprior.cards.pull_request import (
    Benchmark,
    PullRequest,
    check_results,
    open_pull_request,
)
from counterprior.cards.remote import Repository
from counterprior.errors import UsageError
from counterprior.eval.report.exports import results_by_model

MODEL = "tester/flux"
SUITE = "t2i_homogenization"
EVAL = f"tasks:\n- {{id: {SUITE}, config: {SUITE}, split: test}}\n".encode()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    """With a benchmark and a model."""
    with online(), LoopbackHub(tmp_path / "hub") as hub:
        hub.create(REPO)
        hub.create(f"models/{MODEL}")
        hub.commit(REPO, {"eval.yaml": EVAL})
        yield hub


def benchmark(hub: LoopbackHub) -> Benchmark:
    return Benchmark.find(Repository(REPO, hub.url, waits=(0,)), hub.head(REPO))


def entry(commit: str, **changes: object) -> str:
    dataset = {"id": REPO, "task_id": SUITE, "revision": commit}
    fields = {"dataset": dataset, "value": 12.5, "notes": "hom in %; n = 40; counterprior"}
    for name, value in changes.items():
        (dataset if name in dataset else fields)[name] = value
    return yaml.safe_dump([fields])


def opened(hub: LoopbackHub, text: str = "", name: str = "a.yaml") -> PullRequest:
    files = {f".eval_results/{name}": text or entry(hub.head(REPO))}
    model = Repository(MODEL, hub.url, waits=(0, 0), kind="model")
    return open_pull_request(model, files, benchmark(hub))


def test_it_is_opened_once(hub: LoopbackHub) -> None:
    first = opened(hub)
    assert first == PullRequest(MODEL, f"{hub.url}/{MODEL}/discussions/1", True)
    for number in range(2, 5):  # others, so that ours is on a later page
        assert opened(hub, entry(hub.head(REPO), value=number)).opened
    assert opened(hub) == PullRequest(MODEL, first.url, False)
    assert len(hub.pull_requests(f"models/{MODEL}")) == 4
    tree = hub.tree(f"models/{MODEL}", "refs/pr/1")
    assert tree[".eval_results/a.yaml"].decode() == entry(hub.head(REPO))
    assert ".eval_results/a.yaml" not in hub.tree(f"models/{MODEL}", "main")


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_opens_no_second_one(hub: LoopbackHub, applied: bool) -> None:
    hub.fail("POST", "/models/.*/commit/main$", applied=applied)
    assert opened(hub).opened is not applied
    assert list(hub.pull_requests(f"models/{MODEL}")) == ["1"]


def test_opens_no_request_for_files_on_main(hub: LoopbackHub) -> None:
    hub.commit(f"models/{MODEL}", {".eval_results/a.yaml": entry(hub.head(REPO)).encode()})
    assert opened(hub) == PullRequest(MODEL, f"{hub.url}/{MODEL}", False)
    assert not hub.pull_requests(f"models/{MODEL}")


WRONG: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "task": ({"task_id": "spatial_uc"}, ("not-a-benchmark", "spatial_uc", SUITE)),
    "dataset": ({"id": "a/b"}, ("hub-refuses", "a/b@")),
    "revision": ({"revision": "v1.0.0"}, ("hub-refuses", "@v1.0.0")),
    "value": ({"value": "12.5"}, ("hub-refuses", "'12.5'")),
    "undefined": ({"value": float("nan")}, ("hub-refuses", "nan")),
    "n": ({"notes": "hom; n = 0"}, ("hub-refuses", "notes")),
    "no n": ({"notes": "min = 4"}, ("hub-refuses", "notes")),
    "field": ({"score": 1}, ("hub-refuses", "fields")),
}


@pytest.mark.parametrize("what", WRONG)
def test_rejects_results_that_readers_cannot_use(hub: LoopbackHub, what: str) -> None:
    changes, refusal = WRONG[what]
    with raises(*refusal, error=HubError):
        opened(hub, entry(hub.head(REPO), **changes))
    assert not hub.pull_requests(f"models/{MODEL}")


def test_rejects_bad_places_and_benchmarks_without_tasks(hub: LoopbackHub) -> None:
    with raises("hub-refuses", ".eval_results/", error=HubError):
        opened(hub, name="../README.yaml")
    with raises("hub-refuses", error=HubError):
        check_results({}, benchmark(hub))
    with raises("no-revision", error=HubError):
        Benchmark.find(Repository(REPO, hub.url, waits=(0,)), "v9.9.9")
    hub.commit(REPO, {"eval.yaml": b"- a"})
    with raises("not-a-benchmark", error=HubError):
        benchmark(hub)
    hub.commit(REPO, {"eval.yaml": None})
    with raises("not-a-benchmark", "eval.yaml", error=HubError):
        benchmark(hub)


@pytest.mark.slow
def test_the_command_opens_it_for_the_model_of_the_run(
    hub: LoopbackHub, tmp_path: Path, cli: ForkingCommand
) -> None:
    run = published_run(tmp_path / "run", SUITE, "g")
    header = json.loads((run / "run.json").read_text())
    header["generator"] |= {"model": MODEL, "revision": "a" * 40}
    (run / "run.json").write_text(json.dumps(header))
    command = ("report", run, "--out", tmp_path / "site")
    of_release = ("--dataset", f"{REPO}@{hub.head(REPO)}")
    done = cli(*command, *of_release, "--create-pr", env=hub.environment)
    assert done.returncode == 0, done.stderr
    assert f"{MODEL}: 2 result files, opened: {hub.url}/{MODEL}/discussions/1" in done.stderr
    tree = hub.tree(f"models/{MODEL}", "refs/pr/1")
    written = {name: data for name, data in tree.items() if name.startswith(".eval_results/")}
    assert len(written) == 2
    for data in written.values():
        (result,) = parse_eval_result_entries(yaml.safe_load(data))
        assert (result.dataset_id, result.dataset_revision) == (REPO, hub.head(REPO))
        assert "n = " in (result.notes or "") and b"/home/" not in data
    # Whose they are must be known, and be one.
    assert [*results_by_model(tmp_path / "site")] == [MODEL]
    report = json.loads((tmp_path / "site" / "report.json").read_text())
    report["results"][0]["run"]["generator"] = {"kind": "render", "version": "1"}
    (tmp_path / "site" / "report.json").write_text(
        json.dumps(report | {"results": report["results"][:1]})
    )
    with raises("missing-option", "--model-id", error=UsageError):
        results_by_model(tmp_path / "site")
    assert [*results_by_model(tmp_path / "site", "a/b")] == ["a/b"]
