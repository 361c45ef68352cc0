"""The pages of replications, made from `results/` as the site is built: one for each group of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import addresses
import claims
from cells import cards, text
from formatting import duration, reference, setting
from page_elements import render_elements

if TYPE_CHECKING:
    from doxa_replicate import Artefact

RESULTS = Path(__file__).resolve().parents[2] / "results"
SUMMARY = "replications.md"


def on_config(config: Any) -> Any:
    """Put the pages below the summary in the navigation, those of a document together."""
    nav_by_document: dict[str, list[dict[str, str]]] = {}
    for path, members in addresses.pages(artefacts()).items():
        nav_by_document.setdefault(addresses.document(members[0]), []).append({addresses.group(members[0])[0]: path})
    nav_index = config.nav.index({"Replications": SUMMARY})
    documents = [{document: nav_pages} for document, nav_pages in nav_by_document.items()]
    config.nav[nav_index] = {"Replications": [{"Every claim": SUMMARY}, *documents]}
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


def pages(all_artefacts: Mapping[str, Artefact], results: Path) -> dict[str, str]:
    """The Markdown of every page by its path: the artefacts of a group, run or not."""
    markdown_by_path = {}
    for path, members in addresses.pages(all_artefacts).items():
        title, first_sentence = addresses.group(members[0])
        sections = [section(artefact, claims.load_result(artefact, results)) for artefact in members]
        markdown_by_path[path] = (
            _join_parts(f"# {addresses.document(members[0])}: {title}", first_sentence, *sections) + "\n"
        )
    return markdown_by_path


def section(artefact: Artefact, result: Mapping[str, Any] | None) -> str:
    """An artefact beside the document: its values, ours, the verdicts, what was chosen, and where it comes from."""
    record: Mapping[str, Any] = result or {
        "reference": artefact.reference,
        "left_open": artefact.left_open,
        "departures": artefact.departures.get("full", ()),
    }
    anchor, rows = addresses.anchor(artefact), list(claims.verdict_rows(artefact, result))
    return _join_parts(
        f"## {addresses.name(artefact)} {{ #{anchor} }}",
        f"**{text(artefact.title)}.**",
        _part("What the document reports", reference(record["reference"])),
        _part("What was found", render_elements(artefact.show(result), anchor) if result else _not_run(artefact)),
        _part("Claims", _join_parts(_judged_before(artefact, result), claims.as_table(rows, addresses.page(artefact))))
        if rows
        else "",
        _part("What was left open, and what was chosen", _list(record["left_open"])),
        _part("Where this is not what the document did", _list(record["departures"])),
        _part("How to run it again", f"```sh\n{command(artefact, result)}\n```"),
        stamp(artefact, result) if result else "",
    )


def _judged_before(artefact: Artefact, result: Mapping[str, Any] | None) -> str:
    """A word where a kept result was judged by criteria that are no longer an artefact's own."""
    criteria = {claim.criterion for claim in artefact.claims}
    if result is None or all(verdict["criterion"] in criteria for verdict in result["verdicts"]):
        return ""
    return (
        "*This result is older than the way in which Doxa runs and judges it today: its verdicts are by the criteria "
        "that stand here, and the command below makes it anew.*"
    )


def stamp(artefact: Artefact, result: Mapping[str, Any]) -> str:
    """Where the numbers of a result come from."""
    origin = [
        text(", ".join(f"{k} {v}" for k, v in result["versions"].items())),
        text(result["device"]),
        claims.seeds_text(result["seeds"]),
        duration(result["seconds"]),
        f"commit `{result['commit']}`" if result["commit"] else "",
        f"`results/{artefact.name}.json`",
        f"requirements {addresses.link_requirements(text(', '.join(result['rows'])), addresses.page(artefact))}",
    ]
    origin = [each for each in origin if each]
    settings = "; ".join(f"{k.replace('_', ' ')} {setting(v)}" for k, v in result["settings"].items())
    return f'<p class="stamp" markdown="span">{"; ".join(origin)}. Settings: {text(settings)}.</p>'


def command(artefact: Artefact, result: Mapping[str, Any] | None) -> str:
    """The one command that gives the result again."""
    on_gpu = result is not None and not result["device"].startswith("CPU")
    return f"doxa replicate {artefact.name} --full{' --device cuda' if on_gpu else ''} --out results"


def count() -> str:
    """How many claims there are, and what became of them."""
    return claims.count_sentence(claims.tally(artefacts(), RESULTS))


def every_claim() -> str:
    """Every claim in a line, with what decided it and where it is shown."""
    rows = sorted(claims.all_verdict_rows(artefacts(), RESULTS), key=lambda row: claims.claim_order(row["claim"]))
    return claims.as_table(rows, SUMMARY, artefacts()) if rows else ""


def every_replication() -> str:
    """Every table and figure in a line."""
    rows = []
    for artefact in artefacts().values():
        result = claims.load_result(artefact, RESULTS)
        verdict_counts = Counter(row["verdict"] for row in claims.verdict_rows(artefact, result))
        verdicts = ", ".join(
            f"{verdict_counts[verdict]} {claims.badge(verdict)}"
            for verdict in claims.VERDICTS
            if verdict_counts[verdict]
        )
        run_text = f"{text(result['device'])}, {duration(result['seconds'])}" if result else claims.NOT_RUN
        requirement_links = addresses.link_requirements(text(", ".join(artefact.requirements)), SUMMARY)
        title = f"{text(artefact.title)} <small>{requirement_links}</small>"
        rows.append((addresses.link(artefact), verdicts or "no claim", title, run_text))
    return cards(("replication", "claims", "what it shows, and for which requirements", "run on, in"), rows)


def _not_run(artefact: Artefact) -> str:
    return f"*{claims.NOT_RUN.capitalize()} at full size, which takes {text(artefact.durations[1])}.*"


def _part(title: str, content: str) -> str:
    """A heading that the table of contents leaves out, and what stands below it; nothing where that is empty."""
    return f'<h3 class="part">{title}</h3>\n\n{content}' if content else ""


def _list(sentences: Any) -> str:
    return "\n".join(f"- {text(each)}" for each in sentences)


def _join_parts(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
