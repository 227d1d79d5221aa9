"""Options that several commands share, each defined once, and the panels that help groups them in.

``seed: Annotated[int, Sampling(help="...")] = 0`` puts an option of one command into a panel.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..eval.workers.farm import Scale

Input = partial(typer.Option, rich_help_panel="Input")
Model = partial(typer.Option, rich_help_panel="Model")
Sampling = partial(typer.Option, rich_help_panel="Sampling")
Cost = partial(typer.Option, rich_help_panel="Cost and speed")
Output = partial(typer.Option, rich_help_panel="Output")

Json = Annotated[bool, Output("--json", help="Print JSON instead of text.")]

# Releases
DIST = Path("dist/counterprior")
Bank = Annotated[Path | None, Input(help="Folder of the bank; the shipped one by default.")]
Release = Annotated[Path, typer.Argument(help="Folder of a release, as `build` made it.")]
SaltFile = Annotated[Path, Input(help="File with the salt of the build.")]

# Runs
Data = Annotated[str, Input(help="Release: a folder, or NAMESPACE/NAME on the Hub.")]
Revision = Annotated[str | None, Input(help="Tag or commit, if the release is on the Hub.")]
SuiteName = Annotated[str, Input(help="Config, e.g. t2i_homogenization.")]
GeneratorSpec = Annotated[str, Model(help="Spec: folder:DIR, render:?order_bias=1, ...")]
Methods = Annotated[
    list[str] | None,
    Model("--method", help="Change the generator: switch:a2b?at=3, lora:DIR, ...; repeatable."),
]
Judges = Annotated[
    list[str], Model("--judge", help="Spec: pixels, human:FILE, openai:MODEL, ...; repeatable.")
]
Probes = Annotated[str, Model(help="Controls for the judge, separated by commas: mirror,swap.")]
Persona = Annotated[str, Model(help="How to answer free questions: standard or strict.")]
Frames = Annotated[
    str, Model(help="Frames of a clip: first,middle,last; numbers; count=8; or rate=2.")
]
Limit = Annotated[int | None, Sampling(min=1, help="Rows to sample; all if not given.")]
Seeds = Annotated[int, Sampling(min=1, max=4, help="Images for each prompt.")]
RunFolder = Annotated[Path, Output(help="Folder of the run.")]
Runs = Annotated[list[Path], typer.Argument(help="Folders of judged runs.")]
RunsToScore = Annotated[list[Path], typer.Argument(help="Folders of runs, the base one first.")]
Scorers = Annotated[
    list[str] | None,
    Model("--scorer", help="Spec: image-reward:, pickscore:, vqascore:hf-vlm:MODEL; repeatable."),
]
Features = Annotated[
    list[str] | None,
    Model("--features", help="Also FID or KID: inception:FILE, clip:MODEL; repeatable."),
]
LabelsFile = Annotated[Path, Input(help="File of people's labels.")]
SomeLabels = Annotated[Path | None, Input(help="File of people's labels of some cases.")]
JudgeNames = Annotated[
    list[str] | None, Model("--judge", help="Only this judge, by kind or name; repeatable.")
]
Partial = Annotated[bool, Input("--partial", help="Also score what is judged so far.")]
FullSize = Annotated[
    bool | None,
    Output(
        "--full-size/--thumbnails",
        help="Full-size images too; by default only for up to 2,000 images.",
    ),
]
Exports = Annotated[
    list[str] | None,
    Output("--export", help="Also write `inspect` or `hub`; repeatable."),
]
Benchmarked = Annotated[
    str, Output("--dataset", help="For `--export hub`: NAMESPACE/NAME@vX.Y.Z of the rows.")
]
AcrossJudges = Annotated[bool, Input(help="Compare runs although their judges differ.")]

# Paid calls
MaxUsd = Annotated[float | None, Cost(min=0, help="Cap in US dollars; no call exceeds it.")]
Prices = Annotated[Path | None, Cost(help="YAML of your own prices, in US dollars.")]
Concurrency = Annotated[int, Cost(min=1, help="Calls at the same time.")]

# Processes that share the work
Workers = Annotated[
    int | None, Cost(min=1, help="Number of worker processes; one, or one per device, by default.")
]
Devices = Annotated[str, Cost(help="GPUs for the workers, e.g. 0,1; all visible ones by default.")]
ShardText = Annotated[
    str, Cost("--shard", help="I/N: make and judge only this part of the run, e.g. 2/8.")
]
EngineName = Annotated[str, Cost("--engine", help="local, or ray: workers on a Ray cluster.")]

# Writing content with models
Backend = Annotated[str, Model(help="openai:MODEL[@URL], anthropic:MODEL or scripted:FILE.")]
Reviewer = Annotated[str, Model(help="A second model that reviews; the writer by default.")]
Replay = Annotated[
    bool, Model("--replay", help="Use recorded calls only: offline, and free of charge.")
]
Batch = Annotated[bool, Cost("--batch", help="Use the provider's batch API: slower, cheaper.")]
LedgerFile = Annotated[Path, Output(help="Record of every call; resume and replay read it.")]
BankOut = Annotated[Path, Output("--bank", help="Folder of the bank to write.")]
Base = Annotated[
    Path | None,
    Input(help="Bank to extend; by default a new bank is begun, without the shipped entries."),
]
Laws = Annotated[Path | None, Input(help="YAML file of your own laws; the bank's by default.")]

# Spatial relations and their audit
Rules = Annotated[Path | None, Input(help="checker.yaml; the published rules by default.")]
ImageSize = Annotated[str, Input(help="WIDTHxHEIGHT in pixels, for images whose row gives none.")]
Verdicts = Annotated[list[str], typer.Argument(help="Files of verdicts, as METHOD=FILE.")]
Folds = Annotated[int, Sampling(min=2, help="Parts of the cross-validation.")]
LabelKind = Annotated[
    str, Input("--kind", help="What is labeled: verdict, judge, quality, compare, worlds or bank.")
]


def controls(probes: str) -> tuple[str, ...]:
    """The controls that ``--probes mirror,swap`` names."""
    return tuple(probe for probe in probes.split(",") if probe)


def scale_of(workers: int | None, devices: str, shard: str, engine: str) -> Scale:
    """What ``--workers``, ``--devices``, ``--shard`` and ``--engine`` ask for together."""
    from ..eval.store.records import parse_shard
    from ..eval.workers.farm import Scale, as_engine

    names = tuple(name.strip() for name in devices.split(",") if name.strip())
    return Scale(
        workers=workers or max(1, len(names)),
        devices=names,
        shard=parse_shard(shard) if shard else None,
        engine=as_engine(engine),
    )
