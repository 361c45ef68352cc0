"""What the documents ask for, and what shows it: tables of the page of requirements, made from `docs/requirements/`.

Each document has a TOML file there, with a table for each requirement and claim. What has once been shown stands in
`shown.txt`, which is held against these files by a test; what is newly shown is added to it by

    python docs/hooks/requirements.py
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from addresses import link
from cells import cards, table, text
from replications import artefacts

if TYPE_CHECKING:
    from doxa_replicate import Artefact

FOLDER = Path(__file__).resolve().parents[1] / "requirements"
ONCE_SHOWN = "shown.txt"
DOCUMENTS = {
    "weight-uncertainty": ("Weight uncertainty", "Bayes by Backprop: on a curve, on MNIST and on mushrooms."),
    "hwa": ("HWA", "A belief's parameters, averaged on the way of its training."),
    "foundations": ("Foundations", "Exercises on neural nets, from a single unit to nets that make images."),
    "variational-optimisation": ("Variational optimisation", "Learning from values alone, without their slopes."),
    "robustness": ("Robustness", "What weights that are drawn do against images that were made to deceive."),
}
STATES = ("shown", "partly", "open")
JOINT = re.compile(r"(?<=[/_:])(?=\w)")
Entry = Mapping[str, Any]  # what it "says", what it is "shown" by, and what of it is "open"
Entries = Mapping[str, Entry]  # by ID


def read(folder: Path = FOLDER) -> dict[str, Entries]:
    """The entries of every document that has a file, documents in the order above."""
    files = {name: folder / f"{name}.toml" for name in DOCUMENTS}
    return {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}


def once_shown(folder: Path = FOLDER) -> list[str]:
    """The IDs that have been shown at any time."""
    return (folder / ONCE_SHOWN).read_text(encoding="utf-8").split()


def add_newly_shown(before: Sequence[str], documents: Mapping[str, Entries]) -> list[str]:
    """These IDs and behind them, each once, those that are shown now."""
    return list(dict.fromkeys([*before, *shown_ids(documents)]))


def shown_ids(documents: Mapping[str, Entries]) -> Iterator[str]:
    """The IDs of what is shown, in whole or in part."""
    for entries in documents.values():
        yield from (name for name, entry in entries.items() if state(entry) != "open")


def state(entry: Entry) -> str:
    """Whether an entry is shown, partly so, or open."""
    if not entry.get("shown"):
        return "open"
    return "partly" if entry.get("open") else "shown"


def requirements_count() -> str:
    """How much of each document is shown."""
    return counts(read())


def every_requirement() -> str:
    """Every requirement and claim in a line, a section for each document."""
    return sections(read(), artefacts())


def counts(documents: Mapping[str, Entries]) -> str:
    """A line for each document: its requirements and claims, and how many are shown, partly shown and open."""
    rows = []
    for name, entries in documents.items():
        counts_by_state = Counter(map(state, entries.values()))
        rows.append((DOCUMENTS[name][0], len(entries), *(counts_by_state[each] for each in STATES)))
    return table(("document", "in all", *STATES), rows)


def sections(documents: Mapping[str, Entries], all_artefacts: Mapping[str, Artefact]) -> str:
    """For each document a heading, a sentence, and a table of what it asks for."""
    parts = []
    for name, entries in documents.items():
        title, first_sentence = DOCUMENTS[name]
        rows = [_row(*each, all_artefacts) for each in entries.items()]
        parts += [f"## {title}", first_sentence, cards(("ID", "what it asks for", "shown by"), rows)]
    return "\n\n".join(parts)


def reference(reference_text: str, all_artefacts: Mapping[str, Artefact]) -> str:
    """A page, or a result that has a page, as a link; tests and other results by their names."""
    if reference_text.startswith("docs/"):
        return _page(reference_text.removeprefix("docs/"))
    artefact = all_artefacts.get(reference_text.removeprefix("results/").removesuffix(".json"))
    return link(artefact) if artefact else _file(reference_text)


def _row(name: str, entry: Entry, all_artefacts: Mapping[str, Artefact]) -> tuple[str, str, str]:
    parts = [reference(each, all_artefacts) for each in entry.get("shown", ())]
    if entry.get("open"):
        parts.append(f"*open: {text(entry['open'])}*")
    return f'<a id="{name.lower()}"></a>{name}', text(entry["says"]), "<br>".join(parts)


def _page(address: str) -> str:
    name, _, anchor = address.removesuffix(".md").replace(".md#", "#").partition("#")
    return f"[{': '.join(each.replace('-', ' ') for each in (name, anchor) if each)}]({address})"


def _file(file_name: str) -> str:
    """A long name that breaks at its joints, where a line is too short for it."""
    return f"<code>{'<wbr>'.join(map(text, JOINT.split(file_name)))}</code>"


def main(folder: Path = FOLDER) -> None:
    """Note what is newly shown."""
    names = add_newly_shown(once_shown(folder), read(folder))
    (folder / ONCE_SHOWN).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


if __name__ == "__main__":
    main()
