"""Options that several commands share, each defined once; their groups; the panels of the help.

``seed: Annotated[int, Sampling(help="...")] = 0`` puts an option of one command into a panel. A
parameter such as ``calls: CallOptions`` gives a command all options of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..errors import UsageError
from .help import COST, FURTHER, INPUT, MODEL, OUTPUT, SAMPLING, HelpAll

if TYPE_CHECKING:
    from ..agents.session import SessionSettings
    from ..eval.engine.costs import Cost as RunCost
    from ..eval.engine.steps import JudgeSettings
    from ..eval.results.scoring import ScoreSettings
    from ..eval.workers.farm import Scale

Input = partial(typer.Option, rich_help_panel=INPUT)
Model = partial(typer.Option, rich_help_panel=MODEL)
Sampling = partial(typer.Option, rich_help_panel=SAMPLING)
Cost = partial(typer.Option, rich_help_panel=COST)
Output = partial(typer.Option, rich_help_panel=OUTPUT)
Further = partial(typer.Option, rich_help_panel=FURTHER)
"""An option that only `--help-all` shows."""

Json = Annotated[bool, Output("--json", help="Print JSON instead of text.")]

Explain = Annotated[bool, Output("--explain", help="Print all scores, each with what it means.")]

# Releases
DIST = Path("dist/counterprior")
Bank = Annotated[Path | None, Input(help="Folder of the bank; the shipped one by default.")]
Release = Annotated[Path, typer.Argument(help="Folder of a release, as `build` made it.")]
Endpoint = Annotated[str | None, Output(help="URL of another Hub.")]

# Runs
Data = Annotated[str, Input(help="Release: a folder, or NAMESPACE/NAME on the Hub.")]
Revision = Annotated[str | None, Further(help="Tag or commit, if the release is on the Hub.")]
SuiteName = Annotated[str, Input(help="Config, e.g. t2i_homogenization.")]
GeneratorSpec = Annotated[str, Model(help="Spec: folder:DIR, render:?order_bias=1, ...")]
Methods = Annotated[
    list[str] | None,
    Model("--method", help="Change the generator: switch:a2b?at=3, lora:DIR, ...; repeatable."),
]
Judges = Annotated[
    list[str], Model("--judge", help="Spec: pixels, human:FILE, openai:MODEL, ...; repeatable.")
]
SomeJudges = Annotated[
    list[str] | None,
    Model("--judge", help="Spec: pixels, human:FILE, openai:MODEL, ...; repeatable."),
]
BenchmarkName = Annotated[
    str,
    Further(
        "--benchmark",
        help="With --prompts: whose list it is: compbench, geneval, hrs, visor, whatsup.",
    ),
]
Probes = Annotated[str, Model(help="Controls for the judge, separated by commas: mirror,swap.")]
Persona = Annotated[
    str, Further(help="How judges are asked: standard, strict or paper, as published.")
]
Frames = Annotated[
    str, Further(help="Frames of a clip: first,middle,last; numbers; count=8; or rate=2.")
]
Limit = Annotated[int | None, Sampling(min=1, help="Rows to sample; all if not given.")]
Where = Annotated[
    list[str] | None,
    Input(
        "--where", help="FIELD=VALUE or FIELD!=VALUE of the rows, e.g. pair_type=A-A; repeatable."
    ),
]
Ids = Annotated[Path | None, Input("--ids", help="File of ids of prompts, one a line.")]
Variants = Annotated[
    str, Further("--variants", help="Only these variants of each row, e.g. L1,LR.")
]
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
    Model("--features", help="Also FID, KID, RKE: inception:FILE, clip:, dinov2:; repeatable."),
]
Margins = Annotated[
    list[str] | None,
    Input("--margin", help="Largest loss that doesn't matter, e.g. order_bias=5; repeatable."),
]
EqualityMargin = Annotated[
    float, Input("--margin", help="Largest difference that doesn't matter, in percentage points.")
]
LabelsFile = Annotated[Path, Input(help="File of human labels.")]
SomeLabels = Annotated[Path | None, Input(help="File of human labels of some cases.")]
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
AcrossJudges = Annotated[bool, Further(help="Compare runs although their judges differ.")]

# Paid calls
MaxUsd = Annotated[float | None, Cost(min=0, help="Cap in US dollars; no call exceeds it.")]
Prices = Annotated[Path | None, Further(help="YAML of your own prices, in US dollars.")]
Concurrency = Annotated[int, Cost(min=1, help="Calls at the same time.")]
RetryFailed = Annotated[
    bool, Further("--retry-failed", help="Ask again what is recorded as rejected by the server.")
]

# Processes that share the work
Workers = Annotated[
    int | None,
    Further(min=1, help="Worker processes; one, or one per device, by default."),
]
Devices = Annotated[str, Further(help="GPUs for the workers, e.g. 0,1; all visible by default.")]
ShardText = Annotated[
    str, Further("--shard", help="I/N: make and judge only this part of the run, e.g. 2/8.")
]
EngineName = Annotated[str, Further("--engine", help="local, or ray: workers on a Ray cluster.")]

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
    str,
    Input(
        "--kind", help="What is labeled: verdict, judge, quality, compare, real, worlds or bank."
    ),
]


@dataclass(frozen=True)
class RowOptions:
    """Rows of a release that a run uses."""

    data: Data = "dist/counterprior"
    revision: Revision = None
    limit: Limit = None
    where: Where = None
    ids: Ids = None
    variants: Variants = ""
    seeds: Seeds = 1

    def settings(self) -> dict[str, Any]:
        """Returns what `RunSettings` calls them. Raises UsageError for a choice without a `=`."""
        for text in self.where or ():
            if "=" not in text:
                raise UsageError(
                    f"--where {text}: no value", "write FIELD=VALUE", code="bad-format"
                )
        chosen = [*(self.where or ()), *([str(self.ids)] if self.ids else [])]
        return {
            "data": self.data,
            "revision": self.revision,
            "limit": self.limit,
            "only": chosen or None,
            "variants": tuple(variant for variant in self.variants.split(",") if variant),
            "seeds": self.seeds,
        }


@dataclass(frozen=True)
class QuestionOptions:
    """Questions that a judge answers about each image."""

    probes: Probes = ""
    persona: Persona = "standard"
    frames: Frames = "first,middle,last"

    def settings(self, revision: str | None) -> JudgeSettings:
        """Returns the settings for a run on this revision of a release."""
        from ..eval.engine.steps import JudgeSettings

        probes = tuple(probe for probe in self.probes.split(",") if probe)
        return JudgeSettings(probes, self.persona, revision=revision, frames=self.frames)


@dataclass(frozen=True)
class CallOptions:
    """Cap and prices of paid calls, how many are made at the same time, and which again."""

    concurrency: Concurrency = 8
    max_usd: MaxUsd = None
    prices: Prices = None
    retry_failed: RetryFailed = False

    def cost(self) -> RunCost:
        """Returns the cost settings of a run."""
        from ..eval.engine.costs import Cost as RunCost

        return RunCost(self.concurrency, self.max_usd, self.prices, self.retry_failed)


@dataclass(frozen=True)
class ScaleOptions:
    """Processes and devices that share the work."""

    workers: Workers = None
    devices: Devices = ""
    shard: ShardText = ""
    engine: EngineName = "local"

    def scale(self) -> Scale:
        """Returns the number of workers, their devices, the shard and the engine."""
        from ..eval.store.shards import parse_shard
        from ..eval.workers.farm import Scale, as_engine

        devices = tuple(name.strip() for name in self.devices.split(",") if name.strip())
        return Scale(
            workers=self.workers or max(1, len(devices)),
            devices=devices,
            shard=parse_shard(self.shard) if self.shard else None,
            engine=as_engine(self.engine),
        )


@dataclass(frozen=True)
class ScoreOptions:
    """Judges whose verdicts are scored."""

    judge: JudgeNames = None
    across_judges: AcrossJudges = False
    partial: Partial = False

    def settings(self, **settings: Any) -> ScoreSettings:
        """Returns the settings of scoring; `settings` are further fields."""
        from ..eval.results.scoring import ScoreSettings

        return ScoreSettings(
            judges=tuple(self.judge or ()),
            across_judges=self.across_judges,
            partial=self.partial,
            **settings,
        )


@dataclass(frozen=True)
class SiteOptions:
    """Contents of a site besides its pages."""

    full_size: FullSize = None
    export: Exports = None
    dataset: Benchmarked = ""


@dataclass(frozen=True)
class HubOptions:
    """Repository and Hub for a commit."""

    repo_id: Annotated[str, Output(help="Dataset repository, NAMESPACE/NAME.")]
    private: Annotated[bool, Output("--private", help="Refuse a public repository.")] = False
    sign: Annotated[Path | None, Output(help="SSH key that signs what is pushed.")] = None
    endpoint: Endpoint = None


@dataclass(frozen=True)
class SessionOptions:
    """The ledger in which a model's calls are recorded, the model, and what it may cost."""

    ledger: LedgerFile
    backend: Backend = ""
    replay: Replay = False
    max_usd: MaxUsd = None
    prices: Prices = None
    retry_failed: RetryFailed = False

    def settings(
        self, reviewer: str = "", concurrency: int = 1, batch: bool = False
    ) -> SessionSettings:
        """Returns the settings of a session in which models write content."""
        from ..agents.session import SessionSettings

        return SessionSettings(
            ledger=self.ledger,
            backend=self.backend,
            reviewer=reviewer,
            replay=self.replay,
            max_usd=self.max_usd,
            prices=self.prices,
            concurrency=concurrency,
            retry_failed=self.retry_failed,
            batch=batch,
        )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with every parameter that is a group of options replaced by the fields
    of the group, each an option after its own; the command receives the group. `--help-all` is
    added where an option is in the panel of further ones."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[Parameter] = []
    shared: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            parameters.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))
            continue
        assert isinstance(hint, type)
        groups[parameter.name] = hint
        shared += [
            option.replace(kind=Parameter.KEYWORD_ONLY)
            for option in signature(hint, eval_str=True).parameters.values()
        ]
    parameters += shared
    if any(_is_further(parameter.annotation) for parameter in parameters):
        parameters.append(
            Parameter("help_all", Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll)
        )

    @wraps(command)
    def grouped(**values: Any) -> None:
        values.pop("help_all", None)
        for name, group in groups.items():
            options = {f.name: values.pop(f.name) for f in fields(group) if f.name in values}
            values[name] = group(**options)
        command(**values)

    grouped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    grouped.__annotations__ = {p.name: p.annotation for p in parameters}
    return grouped


def _is_further(annotation: Any) -> bool:
    facts = getattr(annotation, "__metadata__", ())
    return any(getattr(fact, "rich_help_panel", None) == FURTHER for fact in facts)
