"""Commands that build, check and publish a release."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from ..cpus import available_cpus
from ..errors import UsageError
from ..progress import Progress, silent
from .console import print_json, print_note
from .options import (
    DIST,
    Bank,
    CallOptions,
    Cost,
    Further,
    HubOptions,
    Input,
    Json,
    Output,
    Release,
    Sampling,
)
from .progress import progress_bar
from .show_release import (
    print_bank_faults,
    print_census,
    print_configs,
    print_diff,
    print_digest,
    print_plan,
    print_released,
    print_report,
    print_seeds,
)

if TYPE_CHECKING:
    from ..builders.build import BuildSettings
    from ..cards.push_plan import Validate
    from ..cards.validate import ReleaseReport
    from ..eval.studies.seeding import SeedSettings


def build(
    calls: CallOptions,
    config: Annotated[list[str] | None, Input(help="Only this config; repeatable.")] = None,
    bank: Bank = None,
    only: Annotated[
        str | None, Input(help="Only print the rows of this entry of the bank, by its id.")
    ] = None,
    seed_images: Annotated[str, Input(help="Generator spec, or `none`.")] = "render:",
    seed_judge: Annotated[
        str, Input(help="Spec of a judge; only seed images that it accepts are kept.")
    ] = "",
    seed_license: Annotated[
        str, Further(help="SPDX id of their license, unless `render:` draws them.")
    ] = "",
    seed: Annotated[int, Sampling(min=0, help="Seed of the sampled suites.")] = 0,
    seed_tries: Annotated[int, Further(min=1, help="Maximum number of attempts for a scene.")] = 8,
    holdout: Annotated[float | None, Sampling(help="Share of rows to hold out, e.g. 0.1.")] = None,
    salt_file: Annotated[
        Path | None, Sampling(help="File with the secret that selects the held-out rows.")
    ] = None,
    baselines: Annotated[
        list[Path] | None,
        Further(help="Published study, downloaded: its scores go on the card; repeatable."),
    ] = None,
    jobs: Annotated[int, Cost(min=1, help="Number of processes.")] = available_cpus(),
    out: Annotated[Path, Output(help="Folder of the release.")] = DIST,
    holdout_out: Annotated[
        Path | None, Further(help="Folder of the held-out rows; OUT-holdout by default.")
    ] = None,
    seeds_out: Annotated[
        Path | None, Further(help="Folder of the judged seed images; OUT-seeds by default.")
    ] = None,
) -> None:
    """Make the release from the banks: no key, no network, no GPU, no model call.

    With --seed-judge a generator draws the seed images and a judge keeps them: see docs/release.md.
    With --only an entry's rows are printed as JSON, and its images are written to OUT-only.

    Example: `counterprior build --config spatial_uc --config t2i_correctness --out dist/small`
    """
    from ..builders.bank import DEFAULT_BANK
    from ..builders.build import BuildSettings
    from ..builders.build import build as build_items
    from ..builders.holdout import REBUILDABLE, read_secret, split
    from ..cards.baselines import read_baselines
    from ..cards.write import check_keeps, write_releases

    if only is not None:
        if holdout is not None or baselines or seed_judge or seed_images != "render:":
            raise UsageError(
                "--only prints rows and makes no release: --holdout, --baselines, --seed-images "
                "and --seed-judge have no part in it",
                code="conflicting-options",
            )
        settings = BuildSettings(tuple(config or ()), bank or DEFAULT_BANK, seed, jobs=jobs)
        _print_only(only, settings, out.with_name(f"{out.name}-only"))
        return
    secret, outs = read_secret(holdout, salt_file, out, holdout_out)
    for folder in outs:
        check_keeps(folder, config or ())
    scores = read_baselines(baselines or ())
    settings = BuildSettings(
        configs=tuple(config or ()),
        bank=bank or DEFAULT_BANK,
        seed=seed,
        seed_images=seed_images,
        checked_seeds=_checked_seeds(
            seed_images,
            seed_judge,
            out=seeds_out or out.with_name(f"{out.name}-seeds"),
            tries=seed_tries,
            calls=calls,
        ),
        seed_license=seed_license,
        jobs=jobs,
    )
    with progress_bar() as progress:
        make_items = partial(build_items, settings, progress)
        written = write_releases(lambda: split(make_items(), secret), outs, scores)
    for folder, facts in written.items():
        print_configs(facts, folder)
        print_digest(folder, facts)
        print_seeds(facts)
    if secret and bank is None:
        print_note(REBUILDABLE)


def _print_only(entry: str, settings: BuildSettings, folder: Path) -> None:
    """Prints the rows of an entry as JSON, and writes their images into a folder."""
    from ..builders.bank import begin_bank
    from ..builders.drawings import drawing
    from ..builders.only import only_rows
    from ..storage import write_whole

    with drawing(settings.jobs):
        begin_bank(settings.bank)
        only = only_rows(entry, settings)
    print_json(only.records())
    images = {image.path: image.bytes for image in only.images()}
    for name, data in images.items():
        write_whole(folder / name, data)
    count = sum(map(len, only.rows.values()))
    shown = f"{len(images):,} images in {folder}" if images else "no image"
    rows = f"{count:,} row{'s' * (count != 1)}"
    print_note(f"{entry}: {rows} of {', '.join(only.rows)}; {shown}")
    if only.undrawn:
        print_note(f"without seed images: {only.undrawn}")


def _checked_seeds(
    generator: str, judge: str, calls: CallOptions, **settings: Any
) -> SeedSettings | None:
    """Returns the settings with which a judge accepts seed images; None without a judge."""
    if not judge:
        return None
    from ..eval.studies.seeding import SeedSettings

    return SeedSettings(generator, judge, cost=calls.cost(), **settings)


def validate(
    path: Annotated[
        Path | None, Argument(help="Folder of a release, as `build` made it; none for the bank.")
    ] = None,
    bank: Bank = None,
    redraw: Annotated[
        bool, Further("--redraw", help="Draw every image and read every Croissant record again.")
    ] = False,
    jobs: Annotated[int, Cost(min=1, help="Number of processes.")] = available_cpus(),
    json: Json = False,
) -> None:
    """Check a release (schema, counts, digests, content, card, Croissant file) or a bank.

    Exits with 1 and names file, row and field of each problem. Of a bank it checks the entries,
    their texts and the layouts of the gold images. If these have no fault, it prints how many
    constrained pairs there are, how many of them a release takes, and which questions about drawn
    worlds tell the worlds apart.

    Example: `counterprior validate dist/counterprior`
    """
    if path is not None:
        with progress_bar() as progress:
            report = _check_by(bank, jobs, redraw=redraw)(path, progress)
        print_report(report, json)
        return
    from ..builders.bank_faults import bank_faults
    from ..builders.census import bank_census, worlds_census
    from ..builders.suite import Banks

    banks = Banks.at(bank)
    with progress_bar() as progress:
        faults = list(bank_faults(banks, progress))
        if faults:
            print_bank_faults(faults, json)
        worlds = worlds_census(banks, progress)
    print_census(bank_census(banks), worlds, json)
    if not json:
        print_note(f"{bank or 'the shipped bank'}: no fault")


def _check_by(bank: Path | None, jobs: int = available_cpus(), *, redraw: bool = False) -> Validate:
    """The whole validation, by the shipped bank or another.

    redraw: nothing is a sample, and no drawing of an earlier run is used.
    """
    from ..builders.bank import DEFAULT_BANK, begin_bank
    from ..builders.build import (
        bank_digest,
        is_addition,
        read_readings,
        read_reviews,
        rebuilt,
        released_with,
        row_checks,
        stated_facts,
    )
    from ..builders.drawings import count_drawn, drawing, drawing_beside, drawings
    from ..builders.seeds import kept_seeds
    from ..builders.votes import read_votes, review_by_people
    from ..cards.config_checks import Origin
    from ..cards.validate import validate as check

    folder = bank or DEFAULT_BANK
    with drawing(use_kept=not redraw):
        votes = read_votes(folder)
        origin = Origin(
            bank_digest(folder),
            rebuilt(folder),
            released_with(votes),
            stated_facts,
            read_reviews(folder),
            read_readings(folder),
            lambda configs: review_by_people(votes, configs),
            is_addition(folder),
            lambda: drawings().text("gold"),
            kept_seeds,
            partial(drawing_beside, use_kept=not redraw),
            count_drawn,
        )
    rules = row_checks(folder)

    def checked(
        release: Path, progress: Progress = silent, *, quick: bool = False
    ) -> ReleaseReport:
        with drawing(jobs, use_kept=not redraw):
            if not quick:
                begin_bank(folder)
            return check(release, rules, origin, progress, quick=quick, every=redraw, jobs=jobs)

    return checked


def diff(
    old: Annotated[Path, Argument(help="Folder of the published release.")],
    new: Annotated[Path, Argument(help="Folder of the next one.")],
    json: Json = False,
) -> None:
    """List rows added, removed and edited in each config, and the version bump they require.

    Example: `counterprior diff dist/published dist/counterprior --json`
    """
    from ..cards.diff import diff as compare

    print_diff(compare(old, new), json)


def push(
    path: Release,
    hub: HubOptions,
    version: Annotated[str, Output(help="Version to release, X.Y.Z.")],
    bank: Bank = None,
    date: Annotated[str, Output(help="Day of the release, YYYY-MM-DD; today by default.")] = "",
    create: Annotated[bool, Output("--create", help="Create the repository.")] = False,
    allow_drop: Annotated[
        bool, Output("--allow-drop", help="Let a MAJOR version drop published files.")
    ] = False,
    allow_license_change: Annotated[
        bool, Output("--allow-license-change", help="Let published rows change their license.")
    ] = False,
    dry_run: Annotated[bool, Output("--dry-run", help="Only print the plan.")] = False,
    json: Json = False,
) -> None:
    """Release a version on the Hub: one commit, verified from a cold cache, then tagged.

    Example: `counterprior push dist/counterprior --repo-id NAMESPACE/NAME --version 1.0.0
    --dry-run`
    """
    from ..cards.content import PushSettings
    from ..cards.push import execute
    from ..cards.push_plan import planned

    settings = PushSettings(
        **asdict(hub),
        version=version,
        date=date,
        create=create,
        dry_run=dry_run,
        allow_drop=allow_drop,
        allow_license_change=allow_license_change,
    )
    with (
        progress_bar() as progress,
        planned(path, settings, _check_by(bank), progress) as plan,
    ):
        print_plan(plan, json)
        if not dry_run:
            print_released(plan, execute(plan, progress))


def publish(
    runs: Annotated[list[Path], Argument(help="A study, or folders of judged runs.")],
    hub: HubOptions,
    license: Annotated[  # noqa: A002
        str, Output(help="License of the images, e.g. cc-by-4.0; required.")
    ] = "",
    format: Annotated[  # noqa: A002
        str, Output(help="png: the judged files as they are; webp: smaller.")
    ] = "png",
    quality: Annotated[
        int | None, Output(help="Quality of lossy webp, 1 to 100; lossless by default.")
    ] = None,
    version: Annotated[
        str | None, Output(help="vX.Y.Z; by default the smallest that the change allows.")
    ] = None,
    out: Annotated[Path | None, Output(help="Folder to write; RUNS/published by default.")] = None,
    dry_run: Annotated[bool, Output("--dry-run", help="Write the folder, print the plan.")] = False,
    json: Json = False,
) -> None:
    """Publish images, verdicts and scores on the Hub: one commit, verified, then tagged.

    Run again to continue: what is uploaded is not uploaded twice.

    Example: `counterprior publish study --repo-id NAMESPACE/NAME --license cc-by-4.0 --dry-run`
    """
    from ..cards.content import PublicationContent, PushSettings
    from ..cards.push import execute
    from ..cards.push_plan import check_settings, planned
    from ..cards.verify import check_publication
    from ..eval.publishing.building import PublishSettings, build_publication
    from ..eval.publishing.members import folder_of

    settings = PublishSettings(license=license, image_format=format, quality=quality)
    pushing = PushSettings(
        **asdict(hub),
        version=None if version is None else version.removeprefix("v"),
        create=True,
        dry_run=dry_run,
    )
    check_settings(pushing)
    content, folder = PublicationContent(), folder_of(runs, out)
    with progress_bar() as progress:
        build_publication(runs, folder, settings, progress)
        with planned(folder, pushing, check_publication, progress, content) as plan:
            print_plan(plan, json)
            if not dry_run:
                print_released(plan, execute(plan, progress))


def verify(
    path_or_repo: Annotated[
        str, Argument(help="Folder of a release or publication, or NAMESPACE/NAME.")
    ],
    revision: Annotated[str | None, Input(help="Tag or commit on the Hub.")] = None,
    load: Annotated[bool, Input("--load", help="Also load every config.")] = False,
    sha256: Annotated[
        str | None,
        Input("--sha256", help="Digest of the release, or of its rows, that you got elsewhere."),
    ] = None,
    signed_by: Annotated[
        Path | None, Input(help="File of allowed signers: a name and an SSH key in each line.")
    ] = None,
    entry: Annotated[
        bool, Input("--entry", help="Also refuse what can't stand on a leaderboard.")
    ] = False,
    holdout: Annotated[
        Path | None,
        Input(
            help="Folder of the rows held out of this release: prove that they are disjoint, "
            "complete, and split as the commitment says."
        ),
    ] = None,
    salt_file: Annotated[Path | None, Input(help="With --holdout: the salt of the build.")] = None,
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Compare every file, row, card and Croissant entry with the release's own checksums, and
    these with what is known outside of it.

    The scores of a publication are computed again from its verdicts. Exits with 1 and names what
    differs; with 3 where nothing differs, but nothing outside vouches for it either.

    Example: `counterprior verify counterprior/counterprior --revision v1.0.0`
    """
    if holdout is not None or salt_file is not None or bank is not None:
        others = {
            "--revision": revision,
            "--load": load,
            "--sha256": sha256,
            "--signed-by": signed_by,
            "--entry": entry,
        }
        if ignored := [name for name, value in others.items() if value not in (None, False)]:
            raise UsageError(
                f"a hold-out is compared with a release folder: {ignored[0]} has no part in it",
                f"leave out {' and '.join(ignored)}, and verify the release by itself with them",
                code="conflicting-options",
            )
        print_report(_verify_holdout(path_or_repo, holdout, salt_file, bank), json)
        return
    from ..cards.verify import verify_release

    report = verify_release(
        path_or_repo,
        revision,
        as_reader=load,
        sha256=sha256,
        signed_by=signed_by,
        entry=entry,
        jobs=available_cpus(),
    )
    print_report(report, json)


def _verify_holdout(
    public: str, private: Path | None, salt_file: Path | None, bank: Path | None
) -> ReleaseReport:
    """Compares a release and the rows held out of it with a full build. Raises UsageError unless
    both the rows and the salt are named."""
    from ..builders.build import row_checks
    from ..builders.holdout import divider, read_salt
    from ..cards.holdout import verify_holdout

    if private is None or salt_file is None:
        raise UsageError(
            "a hold-out is verified with its rows and its salt",
            "pass both --holdout and --salt-file",
            code="missing-option",
        )
    rules = row_checks(bank)
    return verify_holdout(Path(public), private, divider(read_salt(salt_file)), rules)
