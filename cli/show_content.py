"""Prints authored content, its cost, and its gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import WRONG, console, new_table, print_json, print_note

if TYPE_CHECKING:
    from ..builders.attributes import AttributePair, Counted
    from ..builders.authoring.folder import AuthoringReport
    from ..builders.worlds_report import AlikeGroups, WorldsFile
    from ..corpus_analysis.mining.cooccurrence import CaptionCounts


def print_authored(report: AuthoringReport) -> None:
    """Prints the counts of entries, the reason for the end, and the cost by role and model."""
    numbers = ("calls", "failed", "input tokens", "output tokens", "USD", "unpriced")
    table = new_table("role", "model", *numbers, numbers=numbers, title=f"calls for {report.bank}")
    for account in report.accounts:
        counts = account.calls, account.failed, account.input_tokens, account.output_tokens
        cost = f"{account.usd:.4f}", f"{account.unpriced:,}"
        table.add_row(account.role, account.model, *(f"{count:,}" for count in counts), *cost)
    output = console(width=120)
    output.print(table)
    counted = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    output.print(f"{counted}; stopped by {report.stopped}")


def print_worlds(files: list[WorldsFile], as_json: bool) -> None:
    """Prints the filled groups of each file, then each fault; exits with 1 for a fault."""
    faults = [fault for file in files for fault in file.faults]
    counts = {
        file.stem: {
            "groups": len(file.groups),
            "filled": len(file.entries),
            **{f"depth {depth}": count for depth, count in file.depths.items()},
            **file.marked,
            "faults": len(file.faults),
        }
        for file in files
    }
    if as_json:
        print_json({"files": counts, "faults": [fault._asdict() for fault in faults]})
    else:
        columns = tuple(counts[files[0].stem])
        table = new_table("file", *columns, numbers=columns, title="altered worlds, second edition")
        for stem, of_file in counts.items():
            table.add_row(stem, *map(str, of_file.values()))
        table.add_section()
        table.add_row("all", *(str(sum(c[name] for c in counts.values())) for name in columns))
        console(width=120).print(table)
        for fault in faults:
            print(": ".join(field for field in fault if field))
    if faults:
        raise SystemExit(WRONG)


def print_alike(pairs: list[AlikeGroups], as_json: bool) -> None:
    """Prints pairs of groups with their texts, the most alike first."""
    if as_json:
        print_json([pair._asdict() for pair in pairs])
        return
    for pair in pairs:
        print(f"{pair.likeness:.3f} {pair.first}: {pair.first_text}")
        print(f"      {pair.second}: {pair.second_text}")


def print_counted(caption_counts: CaptionCounts) -> None:
    """Prints the number of captions of each source, and the parser."""
    read = ", ".join(f"{n:,} of {source}" for source, n in caption_counts.captions.items())
    print_note(
        f"different captions: {read}; SHA-256 {caption_counts.digest}; {caption_counts.model}"
    )


def print_rarity(pairs: list[AttributePair], counted: Counted, as_json: bool) -> None:
    """Prints how often captions have concept and attribute together; exits with 1 for a fault.

    `up to` is the upper end of the 95 % interval (Wilson) of the linked share.
    """
    from ..builders.attributes import REFERENCE, rarity_faults, sought
    from ..eval.stats.intervals import wilson

    lines = [
        (name, words, counted.counts[name])
        for name, words in sought(pairs).items()
        if name in counted.counts
    ]
    faults = list(rarity_faults(pairs, counted))
    if as_json:
        print_json(
            {
                "sources": [source.model_dump() for source in counted.sources],
                "counts": {
                    name: sightings.model_dump(exclude={"name"}) for name, _, sightings in lines
                },
                "faults": [list(fault) for fault in faults],
            }
        )
    else:
        numbers = ("captions", "together", "linked", "up to")
        table = new_table(
            "pair", "words", *numbers, numbers=numbers, title="attributes in captions"
        )
        for name, words, sightings in lines:
            high = wilson(sightings.linked, sightings.concept).high if sightings.concept else 1.0
            counts = sightings.concept, sightings.together, sightings.linked
            table.add_row(name, " + ".join(words), *(f"{n:,}" for n in counts), f"{high:.2%}")
        output = console(width=120)
        output.print(table)
        for source in counted.sources:
            output.print(f"{source.name}: {source.captions:,} captions, {source.license}")
        for kind in ("rare", "common"):
            of_kind = [sightings for name, _, sightings in lines if name.endswith(f"/{kind}")]
            linked, named = (sum(getattr(s, f) for s in of_kind) for f in ("linked", "concept"))
            linked_pairs = sum(sightings.linked > 0 for sightings in of_kind)
            high = wilson(linked, named).high if named else 1.0
            output.print(
                f"{kind}: linked in {linked:,} of {named:,} captions with the concept (up to "
                f"{high:.2%}); {linked_pairs} of {len(of_kind)} pairs"
            )
        if REFERENCE in counted.counts:
            output.print(f"{len(faults)} pairs seen more often than {REFERENCE}")
        for fault in faults:
            print(": ".join(fault))
    if faults:
        raise SystemExit(WRONG)
