"""Where on the site a replication is: its page, its heading and its address; and where a requirement is."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doxa_replicate import Artefact

SPACE = "\N{NO-BREAK SPACE}"
REQUIREMENTS = "requirements.md"
REQUIREMENT = re.compile(r"\b(?:C-)?(?:WU|HWA|NN|VO|RB|G|UCI)-\d+\b")  # or a claim, by its ID
GROUPS = {
    "priors": ("Priors", "What is believed of a weight before any data."),
    "regression": ("Regression", "A curve with noise, learned on a part of its axis, asked about all of it."),
    "mnist": ("MNIST", "Handwritten digits: error, calibration, pruning, attacks."),
    "kl-split": ("Shares of the KL", "What Adam makes of shares that halve from minibatch to minibatch."),
    "bandits": ("Bandits", "Mushrooms to be eaten or left: beliefs that decide what is tried."),
    "uci": ("UCI regression", "Small tables, judged on the splits that the literature uses."),
    "further": ("Further", "What the document leaves for later, on digits that are few, or of which one is scarce."),
    "functions": (
        "Functions",
        "Searches that see values alone, on functions that can be drawn, and how sure they are.",
    ),
    "nets": ("Nets", "Nets that are found by what they are worth, without any slope of it."),
    "": ("Others", "What stands alone."),
}
ACRONYMS = {"lrt": "LRT", "uci": "UCI", "mnist": "MNIST", "fgsm": "FGSM", "cpu": "CPU", "gpu": "GPU", "sgd": "SGD"}


def pages(artefacts: Mapping[str, Artefact]) -> dict[str, list[Artefact]]:
    """Which artefacts stand on which page, documents in the order of the table and groups in that above."""
    documents = list(dict.fromkeys(map(document, artefacts.values())))
    group_names = list(GROUPS)

    def order(artefact: Artefact) -> tuple[int, int]:
        return documents.index(document(artefact)), group_names.index(
            artefact.group
        ) if artefact.group in group_names else len(group_names)

    artefacts_by_page: dict[str, list[Artefact]] = {}
    for artefact in sorted(artefacts.values(), key=order):
        artefacts_by_page.setdefault(page(artefact), []).append(artefact)
    return artefacts_by_page


def page(artefact: Artefact) -> str:
    return f"replications/{artefact.name.partition('/')[0]}/{artefact.group or 'others'}.md"


def group(artefact: Artefact) -> tuple[str, str]:
    """The title of a page and its first sentence."""
    return GROUPS.get(artefact.group, (artefact.group.capitalize(), ""))


def document(artefact: Artefact) -> str:
    return artefact.name.partition("/")[0].replace("-", " ").capitalize()


def anchor(artefact: Artefact) -> str:
    return artefact.name.partition("/")[2].replace("/", "-")


def name(artefact: Artefact) -> str:
    """Figure 2 of weight-uncertainty/figure-2."""
    first, *others = anchor(artefact).split("-")
    return " ".join([ACRONYMS.get(first, first.capitalize()), *(ACRONYMS.get(word, word) for word in others)])


def link(artefact: Artefact) -> str:
    return f"[{name(artefact).replace(' ', SPACE)}]({page(artefact)}#{anchor(artefact)})"


def link_requirements(text: str, page: str) -> str:
    """Words of a page with every ID of a requirement or claim as a link to what it says."""
    target = posixpath.relpath(REQUIREMENTS, posixpath.dirname(page))
    return REQUIREMENT.sub(lambda match: f"[{match[0]}]({target}#{match[0].lower()})", text)
