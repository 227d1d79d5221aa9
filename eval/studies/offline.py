"""Recipes without their models: the renderer draws, and what finds its figures judges.

Such a study shows the way through a recipe, from images to the table, in seconds and without
weights, keys or labels. Its numbers are the renderer's and say nothing about any model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

from ...errors import UsageError
from ..geometry.metrics import METRICS
from ..suites import SUITES
from .recipes import Recipe

MOST_SEEDS = 16
"""Seeds that `best-of` draws, at most."""
_ENTRY = re.compile(r'  (?P<name>[^\s#"][^:]*): "(?P<spec>.*)"')


def offline_text(recipe: Recipe) -> str:
    """The recipe's file with other models and few rows; its table and comments stay.

    Raises UsageError for a recipe that nothing here can stand in for.
    """
    study = recipe.study
    lacking = {
        "a corpus that `counterprior corpus mine` read": bool(study.corpora),
        "models that write texts": bool(study.all_captioners),
        "scorers of image quality": bool(study.scorers),
        "weights": any("lora:" in str(spec) for spec in study.methods.values()),
        "a generator that draws its prompts": bool(study.suites)
        and not any(SUITES[suite].offline_rows for suite in study.suites),
    }
    if reasons := [needed for needed, is_lacking in lacking.items() if is_lacking]:
        raise UsageError(
            f"{recipe.name} needs {' and '.join(reasons)}",
            "without --offline it is printed as it ships",
            code="unsupported",
        )
    return "\n".join(_lines(recipe)) + "\n"


def _lines(recipe: Recipe) -> Iterator[str]:
    yield "# Offline: `render:` stands in for all models, and rules without weights for judges."
    yield "# The numbers are the renderer's and say nothing about any model. Labels are omitted."
    yield "# Things that it can't draw fail (exit code 1). `best-of` draws 16 seeds at most."
    yield "#"
    block, place, seen = "", 0, set[str]()
    drawn = [SUITES[suite] for suite in recipe.study.suites if SUITES[suite].offline_rows]
    reader = drawn[0].offline_judge
    # Each search draws up to 16 images a prompt: several share the rows.
    searches = sum("best-of:" in str(spec) for spec in recipe.study.methods.values())
    for line in recipe.text.splitlines():
        if line and not line.startswith((" ", "#")):
            block, place = line.partition(":")[0], 0
        if block == "labels":
            continue
        if block == "suites" and line.startswith("  "):
            yield from _sample(line, max(1, searches))
        elif block in ("generators", "judges", "methods") and (entry := _ENTRY.match(line)):
            place += 1
            spec = entry["spec"]
            if block == "generators":
                offline = _generator(place)
            else:
                variants = (_judges if block == "judges" else _methods)(spec, reader)
                offline = next(v for v in variants if v not in seen)
            seen.add(offline)
            yield f'  {entry["name"]}: "{offline}"'
        else:
            yield re.sub(r'spec: "diffusers:[^"]*"', 'spec: "render:"', line)


def _sample(line: str, searches: int) -> Iterator[str]:
    suite, _, settings = line.strip().partition(": ")
    rows = SUITES[suite].offline_rows
    if not rows:
        return
    if prompts := re.search(r'data: "prompts/([^"?]+)([^"]*)"', settings):
        file = resources.files(__package__) / "stand_ins" / prompts[1]
        settings = f'data: "{file}{prompts[2]}", {settings}'
        yield f"  # Some prompts of ours that the renderer can draw stand in for {prompts[1]}."
    others = re.findall(r"^data: \"[^\"]*\"|seeds: \d|seeds: \[.*?\]|where: \w+", settings)
    yield f"  {suite}: {{{', '.join([*others, f'limit: {rows // searches}'])}}}"


def _generator(place: int) -> str:
    """A renderer of its own for each generator, so that lines of the table differ."""
    biases = f"order_bias={place / 2:g}&grounding={max(0.2, 0.8 - place / 10):g}"
    return f"render:?{biases}&lock_in={min(0.8, place / 10):g}&literal=0.2"


def _judges(spec: str, reader: str) -> Iterator[str]:
    """The same rule on figures that are found by template, on those that the renderer says it drew,
    and by the other convention; or, of other judges, `reader` and versions of it that err."""
    kind, _, adapter = spec.partition(":")
    if kind not in (*METRICS, "checker"):
        yield reader
        yield from (f"faulty:{reader}?side={errors / 20:g}" for errors in range(1, 21))
        return
    depth = ["rule.depth=ground"] if "rule.depth" in adapter else []
    authors = ["rule.convention=authors"]
    # What spoils the masks of a detector does so with those of its stand-in.
    spoiler, _, spoiling = (
        adapter.partition("?") if adapter.startswith("spoiled:") else ("", "", "")
    )
    conventions = [authors] if "rule.convention=authors" in adapter else [[], authors]
    for convention in conventions:
        for detector in ("pixels", "scene"):
            options = "&".join([*filter(None, [spoiling]), *convention, *depth])
            stand_in = f"spoiled:{detector}" if spoiler else detector
            yield f"{kind}:{stand_in}" + (f"?{options}" if options else "")


def _methods(spec: str, reader: str) -> Iterator[str]:
    """The same method; who chooses does so by such a judge, among at most `MOST_SEEDS`."""
    head, by, judge = spec.partition("by=")
    head = re.sub(r"best-of:(\d+)", lambda n: f"best-of:{min(int(n[1]), MOST_SEEDS)}", head)
    yield from (head + by + j.replace("?", "&") for j in _judges(judge, reader)) if by else (spec,)
