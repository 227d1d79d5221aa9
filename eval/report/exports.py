"""Results in the formats of other tools: an inspect-ai log, the Hub's results of a model.

Neither has a field for everything: the rest is in their free fields (`metadata`, `notes`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ...errors import UsageError
from ..core import ORIGINAL, Score, Verdict, describe, without_nan
from ..publishing.scrubbing import Scrubber
from ..results.contents import RunContents
from ..results.marks import MARKS, marked_value
from ..results.names import slugify
from ..results.scoring import JudgedRun
from ..stats.estimate import interval_text
from ..store.verdicts import Answered
from .gallery import answers_by_case

FRAMEWORK = "counterprior"
"""Name of the framework in the release's `eval.yaml`."""
FOLDER = "export"
ATTACHED = 32
"""Digits of the name of something attached to a sample, in inspect's logs."""
REPORT = "report.json"
"""The report's numbers for a machine."""


class Dataset(NamedTuple):
    """Location of the benchmark on the Hub."""

    id: str
    """NAMESPACE/NAME."""
    revision: str
    """The release's tag, or its commit: neither moves."""


def check_forms(forms: Sequence[str], dataset: str) -> Dataset | None:
    """The dataset of ``NAMESPACE/NAME@vX.Y.Z``, or with a commit instead; None for an empty text.

    Raises UsageError for another text, an unknown form, or a form without its dataset. A branch is
    refused: it moves, and with it the rows that a number was measured on.

    >>> check_forms(["hub"], "counterprior/counterprior@v1.0.0")
    Dataset(id='counterprior/counterprior', revision='v1.0.0')
    """
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)@(v\d+\.\d+\.\d+|[0-9a-f]{40})", dataset)
    if dataset and match is None:
        raise UsageError(
            f"--dataset {dataset!r}: write NAMESPACE/NAME@vX.Y.Z, the release's tag, or "
            f"NAMESPACE/NAME@COMMIT with its 40 digits",
            code="bad-option",
        )
    for form in forms:
        if form not in FORMS:
            raise UsageError(
                f"--export {form!r}: choose from {', '.join(FORMS)}", code="unknown-name"
            )
    if "hub" in forms and match is None:
        raise UsageError(
            "--export hub: name the benchmark with --dataset NAMESPACE/NAME@vX.Y.Z",
            code="missing-option",
        )
    return Dataset(*match.groups()) if match else None


def export(
    forms: Sequence[str],
    runs: Sequence[RunContents],
    dataset: Dataset | None,
    thumbnails: Mapping[str, Path],
) -> Iterator[tuple[str, str]]:
    """The files of some of `FORMS`, each with its path in the site; one at a time, as logs with
    images are large. thumbnails: SHA-256 of an image -> file."""
    for run in runs:
        for judged in run.judged:
            for form in forms:
                for name, text in FORMS[form](run, judged, dataset, thumbnails).items():
                    yield f"{FOLDER}/{form}/{name}", text


def results_by_model(site: Path, model_id: str = "") -> dict[str, dict[str, str]]:
    """The files of the form `hub` in a written site, by model, then by path in its repository.

    model_id: the model that the results belong to; if empty, that of the generators' identities.
    Raises UsageError if these name none, and where two runs of a model would write one file.
    """
    report = json.loads((site / REPORT).read_text("utf-8"))
    generators = {result["folder"]: result["run"]["generator"] for result in report["results"]}
    if model_id and len({json.dumps(g, sort_keys=True) for g in generators.values()}) > 1:
        raise UsageError(
            f"--model-id {model_id}: the runs are of several generators: report each alone",
            code="conflicting-options",
        )
    by_model: dict[str, dict[str, str]] = {}
    for name, identity in generators.items():
        folder = site / FOLDER / "hub" / slugify(name)
        files = sorted(folder.glob(".eval_results/*.yaml"))
        model = model_id or model_of(identity)
        if files and not model:
            raise UsageError(
                f"{name}: {describe(identity)} names no model on the Hub: name it with "
                f"--model-id NAMESPACE/NAME",
                code="missing-option",
            )
        for file in files:
            path = file.relative_to(folder).as_posix()
            if path in by_model.setdefault(model, {}):
                raise UsageError(
                    f"{name}: two runs of {model} have results in {path}: report one",
                    code="duplicate-id",
                )
            by_model[model][path] = file.read_text("utf-8")
    return by_model


def model_of(identity: Mapping[str, str]) -> str:
    """The model repository that a generator's identity names with its commit; empty if none.

    >>> model_of({"kind": "diffusers", "model": "a/b", "revision": "0" * 40})
    'a/b'
    """
    for prefix in ("", "inner_"):
        model, commit = (identity.get(prefix + name, "") for name in ("model", "revision"))
        is_repository = re.fullmatch(r"[\w.-]+/[\w.-]+", model) and re.fullmatch(
            "[0-9a-f]{40}", commit
        )
        if is_repository and not model.startswith("."):
            return model
    return ""


def inspect_log(
    run: RunContents,
    judged: JudgedRun,
    dataset: Dataset | None,
    thumbnails: Mapping[str, Path],
) -> dict[str, str]:
    """A log (version 2) for `inspect view`: a sample for each image, a score for each question.

    A label is a score's value; without one the value is the reason (`unparsed`, `missing`, ...).
    The images are there as their thumbnails. The fields stand in the order of inspect's own logs:
    its viewer reads the head of a log without the rest.
    """
    result, header = judged.result, run.run.header
    described = json.dumps(
        [header.__dict__, dict(judged.log.identity)], sort_keys=True, default=dict
    )
    identity = hashlib.sha256(described.encode()).hexdigest()[:22]
    when = _judged_at(judged).isoformat()
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "task_id": identity,
            "created": when,
            "task": f"{FRAMEWORK}/{run.suite.name}",
            "dataset": {"name": run.suite.name, "samples": result.cases, "shuffled": False},
            "model": describe(header.generator),
            "config": {},
            "metadata": {
                "rows_sha256": header.rows_sha256,
                "judge_card": without_nan(result.card),
            },
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": result.cases,
            "completed_samples": result.cases,
            "scores": [_metric(score, result.judge) for score in result.scores],
        },
        "stats": {"started_at": when, "completed_at": when},
        "samples": _samples(run, judged),
    }
    scrubbed = Scrubber([run.run.root]).value(without_nan(log))
    for sample in scrubbed["samples"]:  # only now: there is nothing to hide in an image's bytes
        sample["attachments"] = {
            digest[:ATTACHED]: _data_uri(thumbnails[digest])
            for digest in sample.pop("images")
            if digest in thumbnails
        }
        _show_images(sample, scrubbed["eval"]["model"])
    # Half an emoji in an answer is no JSON for strict readers.
    text = re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(scrubbed, indent=1, ensure_ascii=False))
    # A log viewer finds logs by this form of their names: time_task_id.
    name = f"{run.slug}-{_slug_of(judged)}"
    fields = (f"{_judged_at(judged):%Y-%m-%dT%H-%M-%S}", run.suite.name, name)
    return {"_".join(field.replace("_", "-") for field in fields) + ".json": text + "\n"}


def _show_images(sample: dict[str, Any], model: str) -> None:
    """Makes a sample a chat: the user gives the prompt with its source, the model the image.

    Inspect reads attachments in messages alone, so the output names the image.
    """
    digests = (sample["metadata"][key] for key in ("source_sha256", "image_sha256"))
    source, image = (
        [{"type": "image", "image": f"attachment://{digest[:ATTACHED]}"}]
        if digest[:ATTACHED] in sample["attachments"]
        else []
        for digest in digests
    )
    prompt = {"role": "user", "content": [{"type": "text", "text": sample["input"]}, *source]}
    response = {"role": "assistant", "source": "generate", "model": model}
    sample["input"] = [prompt]
    sample["messages"] = [prompt, {**response, "content": image}]
    named = {**response, "content": f"image {sample['metadata']['image_sha256']}"}
    choices = [{"message": named, "stop_reason": "stop"}] if image else []
    sample["output"] = {"model": model, "choices": choices}


def _data_uri(path: Path) -> str:
    return f"data:image/webp;base64,{base64.b64encode(path.read_bytes()).decode()}"


def hub_results(
    run: RunContents,
    judged: JudgedRun,
    dataset: Dataset | None,
    thumbnails: Mapping[str, Path],
) -> dict[str, str]:
    """The headline score as an entry of a model repository's `.eval_results/`.

    Empty if the headline score is undefined, which the format can't express. Serialized by
    huggingface_hub itself, so that the Hub can read it.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    assert dataset is not None, "see check_forms"
    headline = run.suite.headline
    score = judged.whole[headline.score]
    if math.isnan(score.value):
        return {}
    entry = EvalResultEntry(
        dataset_id=dataset.id,
        task_id=run.suite.name,
        value=score.value,
        dataset_revision=dataset.revision,
        date=_judged_at(judged).date().isoformat(),
        # For everybody to read: a judge of this machine is named by its path.
        notes=Scrubber().text("; ".join(_notes(run, judged, score, headline.better))),
    )
    text = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True)
    name = f"{FRAMEWORK}-{run.suite.name}-{_slug_of(judged)}.yaml"
    return {f"{run.slug}/.eval_results/{name}": text}


def _notes(run: RunContents, judged: JudgedRun, score: Score, better: str) -> Iterator[str]:
    """Notes on a score, one each: meaning, interval, n, exclusions, rows, judge."""
    header = run.run.header
    yield f"{score.name} {'in %' if score.unit == '%' else 'from 0 to 1'}, {better} is better"
    population = f"for other {run.suite.population}"
    yield f"95 % interval {interval_text(score.interval, score.unit)}, {population}"
    yield f"n = {score.n}"
    if score.warning:
        yield score.warning
    yield from (MARKS[name].legend for name in score.marks)
    left_out = ", ".join(f"{label} {count}" for label, count in sorted(score.excluded.items()))
    yield f"excluded: {left_out or 'nothing'}"
    limit = f", --limit {header.limit}" if header.limit else ""
    yield f"{header.rows} rows{limit} of the config with digest {header.rows_sha256[:12]}"
    yield f"judge {describe(judged.result.card.identity)}"
    yield FRAMEWORK


Form = Callable[[RunContents, JudgedRun, Dataset | None, Mapping[str, Path]], dict[str, str]]
FORMS: dict[str, Form] = {
    "inspect": inspect_log,
    "hub": hub_results,
}
"""Form -> its files, by name, for one run under one judge."""


def _slug_of(judged: JudgedRun) -> str:
    """A judge as part of a file's name; one that is named by its path keeps the last part of it,
    and a digest tells it from others of that name."""
    name = judged.result.judge
    if (scrubbed := Scrubber().text(name)) == name:
        return slugify(name)
    return f"{slugify(scrubbed)}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _judged_at(judged: JudgedRun) -> datetime:
    """When the last verdict was written."""
    logs = judged.log.root.glob("verdicts*.jsonl")  # one of each shard
    written = max(path.stat().st_mtime for path in logs)
    return datetime.fromtimestamp(int(written), UTC)


def _metric(score: Score, judge: str) -> dict[str, Any]:
    values = {
        "value": score.value,
        "ci_low": score.interval.low,
        "ci_high": score.interval.high,
        "null": score.null,
        "p_value": score.p_value,
    }
    return {
        "name": score.name if score.group == "all" else f"{score.name} {score.group}",
        "scorer": judge,
        "scored_samples": score.n,
        "unscored_samples": sum(score.excluded.values()),
        "params": {"group": score.group},
        "metrics": {n: {"name": n, "value": v} for n, v in values.items() if not math.isnan(v)},
        "metadata": {
            "unit": score.unit,
            "excluded": dict(score.excluded),
            "shown": marked_value(score),
            "warning": score.warning,
            "marks": {name: MARKS[name].legend for name in score.marks},
        },
    }


def _samples(run: RunContents, judged: JudgedRun) -> list[dict[str, Any]]:
    images = run.run.images()
    answers = answers_by_case(judged.log.present(run.present))
    samples = []
    for case in run.run.cases():
        image = images.get(case.id)
        scores = {_name_of(a): _score(a.verdict) for a in answers.get(case.id, [])}
        if image is not None and image.status != "made":
            failed = {"failure": True}
            why = {"explanation": image.message, "metadata": failed}
            scores = {"image": {"value": image.status, "answer": image.status, **why}}
        digests = image.sha256 if image else "", Path(case.source).stem
        samples.append(
            {
                "id": case.id,
                "epoch": 1,
                "input": case.prompt,
                "target": "",
                "scores": scores,
                "images": [digest for digest in digests if digest],
                "metadata": {
                    "variant": case.variant,
                    "seed": case.seed,
                    "groups": dict(case.groups),
                    "image": image.status if image else "not generated",
                    "image_sha256": digests[0],
                    "source_sha256": digests[1],
                },
            }
        )
    return samples


def _name_of(answered: Answered) -> str:
    """The question with its probe and frame: `order (mirror, frame 3)`."""
    about = [] if answered.probe == ORIGINAL else [answered.probe]
    about += [] if answered.frame is None else [f"frame {answered.frame}"]
    return f"{answered.question} ({', '.join(about)})" if about else answered.question


def _score(verdict: Verdict) -> dict[str, Any]:
    about: dict[str, Any] = {"failure": verdict.failed}
    if verdict.probabilities is not None:
        about["probabilities"] = dict(verdict.probabilities)
    answer = {"answer": verdict.label, "explanation": verdict.raw}
    return {"value": verdict.label, **answer, "metadata": about}
