"""The pages of replications, made from `results/` as the site is built: one for each group of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import addresses
import claims
from cells import cards, text
from said import duration, reference, setting
from shown import shown

if TYPE_CHECKING:
    from doxa_replicate import Artefact

RESULTS = Path(__file__).resolve().parents[2] / "results"
SUMMARY = "replications.md"


def on_config(config: Any) -> Any:
    """Put the pages below the summary in the navigation, those of a document together."""
    below: dict[str, list[dict[str, str]]] = {}
    for path, members in addresses.pages(artefacts()).items():
        below.setdefault(addresses.document(members[0]), []).append({addresses.group(members[0])[0]: path})
    place = config.nav.index({"Replications": SUMMARY})
    documents = [{document: some} for document, some in below.items()]
    config.nav[place] = {"Replications": [{"Every claim": SUMMARY}, *documents]}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site; none of them lies on the disk."""
    from mkdocs.structure.files import File

    for path, content in pages(artefacts(), RESULTS).items():
        files.append(File.generated(config, path, content=content))
    return files


def artefacts() -> Mapping[str, Artefact]:
    from doxa_replicate import TABLE

    return TABLE


def pages(known: Mapping[str, Artefact], results: Path) -> dict[str, str]:
    """The Markdown of every page by its path: the artefacts of a group, run or not."""
    found = {}
    for path, members in addresses.pages(known).items():
        title, words = addresses.group(members[0])
        sections = [section(each, claims.result(each, results)) for each in members]
        found[path] = _joined(f"# {addresses.document(members[0])}: {title}", words, *sections) + "\n"
    return found


def section(artefact: Artefact, found: Mapping[str, Any] | None) -> str:
    """An artefact beside the document: its values, ours, the verdicts, what was chosen, and where it comes from."""
    said: Mapping[str, Any] = found or {
        "reference": artefact.reference,
        "left_open": artefact.left_open,
        "departures": artefact.departures.get("full", ()),
    }
    anchor, rows = addresses.anchor(artefact), list(claims.judged(artefact, found))
    return _joined(
        f"## {addresses.name(artefact)} {{ #{anchor} }}",
        f"**{text(artefact.title)}.**",
        _part("What the document reports", reference(said["reference"])),
        _part("What was found", shown(artefact.show(found), anchor) if found else _not_run(artefact)),
        _part("Claims", claims.as_table(rows, addresses.page(artefact)) if rows else ""),
        _part("What was left open, and what was chosen", _list(said["left_open"])),
        _part("Where this is not what the document did", _list(said["departures"])),
        _part("How to run it again", f"```sh\n{command(artefact, found)}\n```"),
        stamp(artefact, found) if found else "",
    )


def stamp(artefact: Artefact, found: Mapping[str, Any]) -> str:
    """Where the numbers of a result come from."""
    origin = [
        text(", ".join(f"{k} {v}" for k, v in found["versions"].items())),
        text(found["device"]),
        claims.seeds(found["seeds"]),
        duration(found["seconds"]),
        f"commit `{found['commit']}`" if found["commit"] else "",
        f"`results/{artefact.name}.json`",
        f"requirements {addresses.requirements(text(', '.join(found['rows'])), addresses.page(artefact))}",
    ]
    origin = [each for each in origin if each]
    settings = "; ".join(f"{k.replace('_', ' ')} {setting(v)}" for k, v in found["settings"].items())
    return f'<p class="stamp" markdown="span">{"; ".join(origin)}. Settings: {text(settings)}.</p>'


def command(artefact: Artefact, found: Mapping[str, Any] | None) -> str:
    """The one command that gives the result again."""
    elsewhere = found is not None and not found["device"].startswith("CPU")
    return f"doxa replicate {artefact.name} --full{' --device cuda' if elsewhere else ''} --out results"


def count() -> str:
    """How many claims there are, and what became of them."""
    return claims.counted(claims.tally(artefacts(), RESULTS))


def every_claim() -> str:
    """Every claim in a line, with what decided it and where it is shown."""
    rows = sorted(claims.every(artefacts(), RESULTS), key=lambda row: claims.order(row["claim"]))
    return claims.as_table(rows, SUMMARY, artefacts()) if rows else ""


def every_replication() -> str:
    """Every table and figure in a line."""
    rows = []
    for each in artefacts().values():
        found = claims.result(each, RESULTS)
        told = Counter(row["verdict"] for row in claims.judged(each, found))
        verdicts = ", ".join(f"{told[verdict]} {claims.badge(verdict)}" for verdict in claims.VERDICTS if told[verdict])
        ran = f"{text(found['device'])}, {duration(found['seconds'])}" if found else claims.NOT_RUN
        asked = addresses.requirements(text(", ".join(each.rows)), SUMMARY)
        title = f"{text(each.title)} <small>{asked}</small>"
        rows.append((addresses.link(each), verdicts or "no claim", title, ran))
    return cards(("replication", "claims", "what it shows, and for which requirements", "run on, in"), rows)


def _not_run(artefact: Artefact) -> str:
    return f"*{claims.NOT_RUN.capitalize()} at full size, which takes {text(artefact.takes[1])}.*"


def _part(title: str, content: str) -> str:
    """A heading that the table of contents leaves out, and what stands below it; nothing where that is empty."""
    return f'<h3 class="part">{title}</h3>\n\n{content}' if content else ""


def _list(sentences: Any) -> str:
    return "\n".join(f"- {text(each)}" for each in sentences)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
