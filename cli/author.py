"""Commands that write bank content with models; every call is recorded, and a rebuild is free."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    Bank,
    BankOut,
    Base,
    Batch,
    Concurrency,
    Further,
    Input,
    Json,
    Laws,
    LedgerFile,
    Model,
    Output,
    Reviewer,
    Sampling,
    SessionOptions,
)
from .progress import progress_bar
from .show_content import print_authored


def show_prompts(
    context: typer.Context,
    prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Print the prompt file of every role.")
    ] = False,
) -> None:
    """Write benchmark content with models; every call is recorded, and a rebuild is free.

    Example: `counterprior author constrained --backend openai:MODEL --ledger calls.jsonl
    --bank mybank --max-usd 5`, then `counterprior build --bank mybank`
    """
    if prompts:
        from ..agents.roles import describe_prompts

        print(describe_prompts())
    elif context.invoked_subcommand is None:
        print(context.get_help())


def constrained(
    model: SessionOptions,
    bank: BankOut,
    base: Base = None,
    domain: Annotated[list[str] | None, Input(help="A domain to open; repeatable.")] = None,
    rounds: Annotated[int, Sampling(min=1, help="Maximum number of rounds.")] = 20,
    target: Annotated[int, Sampling(min=1, help="Pairs in the bank at which to stop.")] = 400,
    proposals: Annotated[
        int | None,
        Sampling(
            min=1,
            max=60,
            help="Proposals of a round; without it, missing pairs over the rounds that remain.",
        ),
    ] = None,
    eyes: Annotated[
        bool, Model(help="Show the Critic the drawn image of each proposal: its model sees images.")
    ] = False,
) -> None:
    """Write pairs whose layout a standard fixes: Scout, Critic and Curator take turns (OTS-Bench).

    Example: `counterprior author constrained --backend openai:MODEL --ledger calls.jsonl
    --bank mybank --max-usd 5`
    """
    from ..agents.constrained.rounds import LoopSettings
    from ..builders.authoring.constrained import author_constrained

    session = model.settings()
    loop = LoopSettings(rounds, target, proposals=proposals, domains=tuple(domain or ()), eyes=eyes)
    with progress_bar() as progress:
        print_authored(author_constrained(session, loop, base, bank, progress))


def counterfactual(
    model: SessionOptions,
    bank: BankOut,
    base: Base = None,
    laws: Laws = None,
    reviewer: Reviewer = "",
    rules: Annotated[
        bool,
        Input(
            "--rules",
            help="Symbolic rules instead, each as it holds here and in five other worlds.",
        ),
    ] = False,
    per_law: Annotated[int, Sampling(min=1, max=8, help="Scenes for each law.")] = 4,
    concurrency: Concurrency = 8,
    batch: Batch = False,
) -> None:
    """Write scenes in which one law is altered, with a review and questions (CF-World).

    Example: `counterprior author counterfactual --backend openai:MODEL --reviewer anthropic:MODEL
    --ledger calls.jsonl --bank mybank --laws laws.yaml --max-usd 5`
    """
    from ..builders.authoring.laws import author_counterfactual, author_rules

    session = model.settings(reviewer, concurrency, batch)
    with progress_bar() as progress:
        if rules:
            authored = author_rules(session, laws, base, bank, progress)
        else:
            authored = author_counterfactual(
                session, laws, per_law=per_law, base=base, bank=bank, progress=progress
            )
        print_authored(authored)


def consistency(
    model: SessionOptions,
    bank: BankOut,
    images: Annotated[str, Input(help="Folder of images, or DATASET[:SPLIT].")],
    license: Annotated[str, Input(help="SPDX id of the images' license.")] = "",  # noqa: A002
    base: Base = None,
    reviewer: Reviewer = "",
    second_reviewer: Annotated[
        str, Further(help="Spec of a third model that reviews independently.")
    ] = "",
    drawer: Annotated[str, Model(help="Spec of the generator that draws the captions.")] = "",
    limit: Annotated[int | None, Sampling(min=1, help="Maximum number of images.")] = None,
    smallest_side: Annotated[
        int, Further(min=1, help="Smallest side in pixels; smaller images are excluded.")
    ] = 512,
    cycles: Annotated[
        int, Further(min=1, help="Annotations per image at most, until reviewers accept one.")
    ] = 3,
    answerable: Annotated[
        bool,
        Further("--answerable", help="Reject questions that the caption alone does not answer."),
    ] = False,
    concurrency: Concurrency = 8,
) -> None:
    """Write captions, edits and questions for your images, by a game of two models (ACON).

    Example: `counterprior author consistency --images photos --license CC-BY-4.0 --bank mybank
    --ledger calls.jsonl --backend openai:MODEL --reviewer anthropic:MODEL --drawer diffusers:PATH`
    """
    from ..builders.authoring.consistency import GameSettings, author_consistency

    session = model.settings(reviewer, concurrency)
    game = GameSettings(
        images=images,
        drawer=drawer,
        license=license,
        limit=limit,
        smallest_side=smallest_side,
        second_reviewer=second_reviewer,
        cycles=cycles,
        answerable=answerable,
    )
    with progress_bar() as progress:
        print_authored(author_consistency(session, game, base, bank, progress))


def verify(
    model: SessionOptions,
    bank: BankOut,
    base: Annotated[Path, Input(help="The bank to check.")],
    every: Annotated[bool, Input("--every", help="Also check pairs that were checked.")] = False,
    concurrency: Concurrency = 8,
    batch: Batch = False,
) -> None:
    """Check pairs with a second model by mirrored statements; a person settles disagreements.

    Example: `counterprior author verify --backend anthropic:MODEL --ledger checks.jsonl
    --base mybank --bank checked --max-usd 5`
    """
    from ..builders.authoring.verification import verify_pairs

    session = model.settings(concurrency=concurrency, batch=batch)
    with progress_bar() as progress:
        print_authored(verify_pairs(session, base, bank, every, progress))


def relations(
    prompts: Annotated[Path, typer.Argument(help="Text file with one prompt per line.")],
    model: SessionOptions,
    out: Annotated[Path, Output(help="JSONL file to write.")],
    conveyed: Annotated[
        bool,
        Input("--conveyed", help="Also list relations that no word of place states (PSE B.7)."),
    ] = False,
    concurrency: Concurrency = 8,
) -> None:
    """Extract spatial relations from free prompts, by a model and by rules (PSE, appendix).

    Example: `counterprior spatial relations prompts.txt --backend openai:MODEL
    --ledger calls.jsonl --out relations.jsonl`
    """
    from ..agents.relation_files import extract_file

    session = model.settings(concurrency=concurrency)
    with progress_bar() as progress:
        print(extract_file(session, prompts, out, progress, conveyed))


def rarity(
    captions: Annotated[
        list[str] | None,
        typer.Argument(help="Files of captions to count in, as `corpus mine` reads them."),
    ] = None,
    bank: Bank = None,
    out: Annotated[
        Path | None, Output(help="cooccurrence.yaml to write, with what was counted.")
    ] = None,
    json: Json = False,
) -> None:
    """Show how rare each rare attribute is in captions, beside a glass bridge; or count again.

    Exits with 1 if a rare attribute is linked with its concept more often than glass with bridge.

    Example: `counterprior author rarity cc3m.parquet laion.parquet --out cooccurrence.yaml`
    """
    from ..builders.attributes import count_anew, read_attributes, read_counts, sought
    from ..builders.bank import DEFAULT_BANK
    from ..corpus_analysis.mining.cooccurrence import count_together
    from .show_content import print_counted, print_rarity

    pairs, counted = read_attributes(bank or DEFAULT_BANK), read_counts(bank or DEFAULT_BANK)
    if captions:
        with progress_bar() as progress:
            caption_counts = count_together(captions, sought(pairs), progress)
        print_counted(caption_counts)
        counted = count_anew(caption_counts.counts, counted.sources, out)
    print_rarity(pairs, counted, json)


def publish(ledger: LedgerFile, out: Annotated[Path, Output(help="File to write.")]) -> None:
    """Write a ledger for publication: sorted, so that the order of calls does not matter.

    Example: `counterprior author publish --ledger calls.jsonl --out published.jsonl`
    """
    from ..agents.ledger import Ledger

    with Ledger(ledger, read_only=True) as opened:
        opened.publish(out)


def worlds(
    file: Annotated[
        list[str] | None, Input(help="A file in counterfactual/, without its suffix; repeatable.")
    ] = None,
    bank: Bank = None,
    sheet: Annotated[
        bool, Output("--sheet", help="Print YAML to fill in for the groups without an entry.")
    ] = False,
    alike: Annotated[
        int, Output(min=0, help="Number of most similar pairs of groups to print.")
    ] = 0,
    json: Json = False,
) -> None:
    """Show which altered worlds have an entry, and list every fault.

    Exits with 1 if there is a fault. No model is called; docs/write-worlds.md is the guide.

    Example: `counterprior author worlds --file biology`
    """
    from ..builders.bank import DEFAULT_BANK
    from ..builders.worlds_report import alike_groups, sheets, worlds_files
    from .show_content import print_alike, print_worlds

    folder, stems = bank or DEFAULT_BANK, tuple(file or ())
    if sheet:
        print(sheets(folder, stems))
    elif alike:
        print_alike(alike_groups(folder, stems, alike), json)
    else:
        print_worlds(worlds_files(folder, stems), json)
