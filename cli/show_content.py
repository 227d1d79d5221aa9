"""Prints what was written, what it cost, and what is left to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import WRONG, console, print_json, print_note, table

if TYPE_CHECKING:
    from ..builders.attributes import AttributePair, Counted
    from ..builders.authoring.folder import AuthoringReport
    from ..builders.worlds_report import AlikeGroups, WorldsFile
    from ..corpus_analysis.mining.cooccurrence import CaptionCounts


def print_authored(report: AuthoringReport) -> None:
    """Prints what was written, why the run ended, and what it cost by role and model."""
    numbers = ("calls", "failed", "input tokens", "output tokens", "USD", "unpriced")
    shown = table("role", "model", *numbers, numbers=numbers, title=f"calls for {report.bank}")
    for account in report.accounts:
        counts = account.calls, account.failed, account.input_tokens, account.output_tokens
        cost = f"{account.usd:.4f}", f"{account.unpriced:,}"
        shown.add_row(account.role, account.model, *(f"{count:,}" for count in counts), *cost)
    output = console(width=120)
    output.print(shown)
    counted = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    output.print(f"{counted}; stopped by {report.stopped}")


def print_worlds(files: list[WorldsFile], as_json: bool) -> None:
    """Prints how much of each file is filled, then each fault; exits with 1 if there is one."""
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
        names = tuple(counts[files[0].stem])
        shown = table("file", *names, numbers=names, title="altered worlds, second edition")
        for stem, of_file in counts.items():
            shown.add_row(stem, *map(str, of_file.values()))
        shown.add_section()
        shown.add_row("all", *(str(sum(c[name] for c in counts.values())) for name in names))
        console(width=120).print(shown)
        for fault in faults:
            print(": ".join(part for part in fault if part))
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


def print_counted(found: CaptionCounts) -> None:
    """Notes which captions were counted, and with which parser."""
    read = ", ".join(f"{n:,} of {source}" for source, n in found.captions.items())
    print_note(f"different captions: {read}; SHA-256 {found.digest}; {found.model}")


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
                "counts": {name: seen.model_dump(exclude={"name"}) for name, _, seen in lines},
                "faults": [list(fault) for fault in faults],
            }
        )
    else:
        numbers = ("captions", "together", "linked", "up to")
        shown = table("pair", "words", *numbers, numbers=numbers, title="attributes in captions")
        for name, words, seen in lines:
            high = wilson(seen.linked, seen.concept).high if seen.concept else 1.0
            counts = seen.concept, seen.together, seen.linked
            shown.add_row(name, " + ".join(words), *(f"{n:,}" for n in counts), f"{high:.2%}")
        output = console(width=120)
        output.print(shown)
        for source in counted.sources:
            output.print(f"{source.name}: {source.captions:,} captions, {source.license}")
        for kind in ("rare", "common"):
            some = [seen for name, _, seen in lines if name.endswith(f"/{kind}")]
            linked, named = (sum(getattr(s, f) for s in some) for f in ("linked", "concept"))
            pairs_seen = sum(seen.linked > 0 for seen in some)
            high = wilson(linked, named).high if named else 1.0
            output.print(
                f"{kind}: linked in {linked:,} of {named:,} captions with the concept (up to "
                f"{high:.2%}); {pairs_seen} of {len(some)} pairs"
            )
        if REFERENCE in counted.counts:
            output.print(f"{len(faults)} pairs seen more often than {REFERENCE}")
        for fault in faults:
            print(": ".join(fault))
    if faults:
        raise SystemExit(WRONG)
