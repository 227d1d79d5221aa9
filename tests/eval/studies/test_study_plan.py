"""A plan says what a study then does, and what would fail in it."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles
import yaml
from refusals import raises

from counterprior.agents.spending import SpendingLog
from counterprior.eval.core import GeneratorError
from counterprior.eval.engine.run import RunError
from counterprior.eval.store.shards import RunLock
from counterprior.eval.studies.preflight import PROBED, plan_study
from counterprior.eval.studies.runner import run_study

HOM, UC = "t2i_homogenization", "spatial_uc"
Cli = Callable[..., subprocess.CompletedProcess[str]]


def written(folder: Path, data: Path, **changes: Any) -> Path:
    suites = {HOM: {"limit": 3}, UC: {"limit": 4, "seeds": 2}}
    plain = doubles.study_file(data, suites) | {"probes": ["swap", "mirror"]} | changes
    file = folder / "s.yaml"
    file.write_text(yaml.safe_dump(plain))
    return file


def test_a_plan_counts_what_is_then_done(text_release: Path, tmp_path: Path) -> None:
    file, out = written(tmp_path, text_release), tmp_path / "out"
    plan = plan_study(file)
    assert plan.seconds is None and plan.size is None and plan.usd == 0 and not plan.problems
    assert not any(name.startswith("loaded") for name in doubles.DID), "a plan loads no model"
    planned = {(p.name, p.what): p.count for p in plan.workloads}
    assert planned["red", f"images of {HOM}"] == 6 and planned["red", f"images of {UC}"] == 8
    run_study(file, out)
    images = sum(n for name, n in doubles.DID.items() if name.startswith("red "))
    asked = sum(n for name, n in doubles.DID.items() if name.startswith("ann "))
    assert images == sum(p.count for p in plan.images)
    assert asked == sum(p.count for p in plan.questions)
    assert not plan_study(file, out).workloads
    more = plan_study(file, out, changes=["generators.blue=python:study_doubles:painter?name=blue"])
    assert {p.name for p in more.images if p.count} == {"blue"}
    assert sum(p.count for p in more.questions) == asked


def test_a_plan_says_what_a_run_would_refuse(text_release: Path, tmp_path: Path) -> None:
    file, out = written(tmp_path, text_release), tmp_path / "out"
    run_study(file, out)
    limited = written(
        tmp_path, text_release, suites={HOM: {"limit": 2}, UC: {"limit": 4, "seeds": 2}}
    )
    (problem,) = plan_study(limited, out).problems
    with raises("another-run", problem, error=RunError):
        run_study(limited, out)
    assert "was made with limit 3, and the study's file now says 2" in problem
    assert not plan_study(limited).problems


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("generators", {"red": "python:study_doubles:painter?name=blue"}),
        ("judges", {"ann": "python:study_doubles:reader?name=bo"}),
    ],
)
def test_a_plan_names_a_model_that_is_another_one_now(
    text_release: Path, tmp_path: Path, kind: str, other: dict[str, str]
) -> None:
    file, out = written(tmp_path, text_release), tmp_path / "out"
    run_study(file, out)
    changed = written(tmp_path, text_release, **{kind: other})
    (problem,) = plan_study(changed, out).problems
    with raises("another-run", problem, error=RunError):
        run_study(changed, out)


def test_refused_images_have_no_questions(text_release: Path, tmp_path: Path) -> None:
    refused = iter([True])

    def refuse() -> None:
        if next(refused, False):
            raise GeneratorError("not this one", status="refused")

    file, out = written(tmp_path, text_release), tmp_path / "out"
    asked = sum(part.count for part in plan_study(file).questions)
    doubles.BEFORE[:] = [refuse]
    run_study(file, out)
    done = sum(n for name, n in doubles.DID.items() if name.startswith("ann "))
    assert 0 < done < asked
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with RunLock(out, kind="study"):  # a study that is at work can be planned
        assert not plan_study(file, out).workloads
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_probe_measures_time_and_disk_and_leaves_nothing(
    text_release: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, text_release, generators={"fair": "render:"}, judges={"p": "pixels"})
    plan = plan_study(file, probe=True, changes=[f"suites={json.dumps({HOM: {'limit': 9}})}"])
    assert not plan.problems and plan.seconds is not None and plan.seconds > 0
    (part,) = plan.images
    assert part.count == 18 and part.size is not None and part.size > 18 * 1000
    assert list(tmp_path.iterdir()) == [file]
    doubles.reset()
    plan = plan_study(written(tmp_path, text_release), probe=True)
    assert sum(n for name, n in doubles.DID.items() if name.startswith("red ")) == 2 * PROBED


def test_money_is_estimated_through_the_price_table(
    text_release: Path, tmp_path: Path, server: Any
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        yaml.safe_dump(
            {
                "openai:m-1": {"input": 1, "output": 4},
                "openai-image:m-1": {"image": 0.5, "edit": 1},
            }
        )
    )
    models = {
        "generators": {"paid": server.spec("openai").replace("openai:", "openai-image:", 1)},
        "judges": {"paid": server.spec("openai")},
        "probes": [],
    }
    plan = plan_study(written(tmp_path, text_release, prices=str(prices), max_usd=1, **models))
    images = {p.what: p.usd for p in plan.images}
    assert images == {f"images of {HOM}": 3.0, f"images of {UC}": 4.0}
    for part in plan.questions:
        assert part.usd is not None and part.most_usd is not None
        assert 1000e-6 * part.count < part.usd < part.most_usd
    assert any("the cap of 1" in problem for problem in plan.problems)
    enough = math.ceil(plan.usd or 0)
    file = written(tmp_path, text_release, prices=str(prices), max_usd=enough, **models)
    assert not plan_study(file).problems
    begun = tmp_path / "begun"
    begun.mkdir()
    shutil.copy(file, begun / "study.yaml")
    log = SpendingLog(begun / "ledgers" / "spending.jsonl", lambda charge: charge.usd)
    with log.turn():
        log.find("runs/a/images", Decimal(2))
    log.finish()
    before = (begun / "ledgers" / "spending.jsonl").read_bytes()
    (problem,) = plan_study(file, begun).problems
    assert f"the cap of {enough}.0 USD" in problem and "the 2.00 that are spent" in problem
    spending = begun / "ledgers" / "spending.jsonl"
    assert spending.read_bytes() == before
    spending.write_bytes(b"{}\n" + before)
    (problem,) = plan_study(file, begun).problems
    assert str(spending) in problem
    assert server.paid == 0, "a plan costs nothing"
    unknown = plan_study(written(tmp_path, text_release, **models))
    assert unknown.usd is None and not unknown.problems, "unknown is not 0"
    capped = plan_study(written(tmp_path, text_release, max_usd=1, **models))
    assert {p.partition(":")[0] for p in capped.problems} == {"generator paid", "judge paid"}
    assert all("no price is known for openai" in problem for problem in capped.problems)


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"judges": {"a": "anthropic:m"}}, "judge a: "),
    "judge": ({"judges": {"a": "python:study_doubles:keyless"}}, "judge a: no key: set THE_KEY"),
    "folder": ({"generators": {"f": "folder:gone"}}, "generator f: folder: gone"),
    "labels": ({"labels": {HOM: "gone.csv"}}, "labels: there is no file gone.csv"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_would_fail_is_said(
    name: str, text_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    changes, message = PROBLEMS[name]
    plan = plan_study(written(tmp_path, text_release, **changes))
    assert [p for p in plan.problems if p.startswith(message)], plan.problems


def test_a_judge_that_can_t_take_the_questions(full_release: Path, tmp_path: Path) -> None:
    suites = {"rule_decoupling": {"limit": 6}}
    plan = plan_study(
        written(tmp_path, full_release, suites=suites, judges={"p": "pixels"}, probes=[])
    )
    assert plan.problems == [
        "judge p can't answer the questions of rule_decoupling (yes_no): "
        "`except: [{judge: p, suite: rule_decoupling}]` excludes its cells"
    ]


@pytest.mark.slow
def test_an_editing_suite_with_a_model_that_draws_from_a_text(
    full_release: Path, tmp_path: Path, checkpoint: Callable[[str], Path]
) -> None:
    spec = f"diffusers:{checkpoint('flux')}?device=cpu&steps=1"
    suites = {"i2i_homogenization": {"limit": 2}}
    file = written(tmp_path, full_release, suites=suites, generators={"flux": spec}, probes=[])
    (problem,) = plan_study(file).problems
    assert "generator flux on i2i_homogenization: FluxPipeline" in problem
    assert "draws from a text and can't edit" in problem
    done = run_study(file, tmp_path / "out")
    assert [f.cause for f in done.failures] == [problem.partition(": ")[2]]


def test_the_command_line_prints_a_plan(text_release: Path, tmp_path: Path, cli: Cli) -> None:
    file = written(tmp_path, text_release, generators={"fair": "render:"}, judges={"p": "pixels"})
    (tmp_path / "gone").write_text("")
    done = cli("study", "plan", file, "--set", "labels.spatial_uc=nowhere.csv", cwd=tmp_path)
    assert done.returncode == 1 and "labels:" in done.stderr and "nowhere.csv" in done.stderr
    assert "14 images to make" in done.stdout and "unknown" in done.stdout
