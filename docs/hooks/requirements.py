"""What the documents ask for, and what shows it: tables of the page of requirements, made from `docs/requirements/`.

Each document has a TOML file there, with a table for each requirement and claim. What has once been shown, in whole or
in part, stands in `shown.txt`, which is held against these files by a test; what is newly shown is added to it by

    python docs/hooks/requirements.py

Its first lines count, for each prefix of IDs, how many are noted and how many of them in whole; neither ever falls.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
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
    "shared": ("Shared", "What several of them ask for, to be there once for all; last, a claim of Doxa's own."),
}
STATES = ("shown", "partly", "open")
JOINT = re.compile(r"(?<=[/_:])(?=\w)")
Entry = Mapping[str, Any]  # what it "says", what it is "shown" by, and what of it is "open"
Entries = Mapping[str, Entry]  # by ID


def read(folder: Path = FOLDER) -> dict[str, Entries]:
    """The entries of every document that has a file, documents in the order above."""
    files = {name: folder / f"{name}.toml" for name in DOCUMENTS}
    return {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}


def once_shown(folder: Path = FOLDER) -> dict[str, str]:
    """The best state that each ID has had at any time, of those that have been shown at all."""
    return dict(line for line in _noted_lines(folder) if len(line) == 2)


def counts_reached(folder: Path = FOLDER) -> dict[str, tuple[int, int]]:
    """For each prefix of IDs, how many have been noted and how many of them in whole."""
    return {line[0]: (int(line[1]), int(line[2])) for line in _noted_lines(folder) if len(line) == 3}


def _noted_lines(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / ONCE_SHOWN).read_text(encoding="utf-8").splitlines()]


def add_newly_shown(before: Mapping[str, str], documents: Mapping[str, Entries]) -> dict[str, str]:
    """These states, each raised to what it is now, and behind them what is newly shown."""
    return {**before, **{name: min(now, before.get(name, now), key=STATES.index) for name, now in shown_now(documents)}}


def shown_now(documents: Mapping[str, Entries]) -> Iterator[tuple[str, str]]:
    """The ID and the state of what is shown, in whole or in part."""
    for entries in documents.values():
        yield from ((name, state(entry)) for name, entry in entries.items() if state(entry) != "open")


def count_by_prefix(noted: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """For each prefix of IDs, how many are noted and how many of them in whole."""
    all_noted = Counter(map(prefix, noted))
    in_whole = Counter(prefix(name) for name, noted_state in noted.items() if noted_state == "shown")
    return {each: (count, in_whole[each]) for each, count in all_noted.items()}


def prefix(name: str) -> str:
    """WU of WU-01 and of C-WU-1."""
    return name.removeprefix("C-").partition("-")[0]


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
    """Note what is newly shown, and how many that makes; a count that was higher stays."""
    noted, reached = add_newly_shown(once_shown(folder), read(folder)), counts_reached(folder)
    for each, counted in count_by_prefix(noted).items():
        before = reached.get(each, (0, 0))
        reached[each] = (max(before[0], counted[0]), max(before[1], counted[1]))
    lines = [f"{each} {in_all} {whole}" for each, (in_all, whole) in reached.items()]
    lines += [f"{name} {noted_state}" for name, noted_state in noted.items()]
    (folder / ONCE_SHOWN).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
