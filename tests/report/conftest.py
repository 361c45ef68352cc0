"""Results made up for the report, and a reader of pages."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

Result = dict[str, Any]

SECTIONS: Result = {
    "history": [{"nll": 2.0, "kl": 90.0, "validation_nll": 1.5}, {"nll": 0.5, "kl": 40.0, "validation_nll": None}],
    "findings": ["Overconfident: its mean confidence is 97.0%, but 90.0% of its labels are right."],
    "reliability": {"confidence": [None, 0.6, 0.95], "accuracy": [None, 0.5, 0.9], "count": [0, 20, 80]},
    "entropy": {"edges": [0.0, 1.0, 2.0, 3.0], "inside": [70, 20, 10], "outside": [10, 20, 70]},
    "pruning": {"share": [0.0, 0.5, 0.95], "error": [0.02, 0.03, None], "se": [0.001, 0.002, None]},
    "signal_to_noise": {"edges": [-20.0, -10.0, 0.0, 10.0], "count": [500, 400, 100]},
    "intervals": {"level": [0.5, 0.9], "coverage": [0.48, 0.91], "se": [None, None]},
    "band": {
        "x": [-1.0, 0.0, 1.0, 2.0],
        "mean": [0.0, 0.1, 0.2, None],
        "lower": [-2.0, 0.0, 0.1, -3.0],
        "upper": [2.0, 0.2, 0.3, 3.0],
        "train_x": [0.0, 0.5, 1.0],
        "train_y": [0.1, 0.2, 0.3],
    },
    "unsure": [{"image": [[0.0, 0.5], [1.0, 0.25]], "label": 2, "probabilities": [0.5, 0.3, 0.2]}],
    "attack": {"radius": [0.0, 0.1], "accuracy": [0.98, 0.4]},
}


def result(name: str = "belief", nll: float = 0.1, error: float | None = 0.01, **sections: Any) -> Result:
    """A result over five seeds with all sections; one given as None is left out."""
    scores = {
        "error": {"value": 0.0234567, "error": 0.0031, "over": "seeds", "count": 5},
        "nll": {"value": nll, "error": error, "over": "seeds", "count": 5},
        "auroc_entropy": {"value": 0.9, "error": 0.01, "over": "seeds", "count": 5},
    }
    content = {
        "name": name,
        "data": {"name": "digits", "rows": 360, "task": "classification", "classes": ["zero", "one", "two"]},
        "settings": {"epochs": 60, "prior": "N(0, 1)"},
        "stamp": {"seeds": [0, 1], "versions": {"torch": "2.13"}, "device": "CPU", "commit": None, "seconds": 3.5},
        "scores": scores,
        **SECTIONS,
        **sections,
    }
    return {key: value for key, value in content.items() if value is not None}


@pytest.fixture
def make_result() -> Callable[..., Result]:
    return result


class Reader(HTMLParser):
    """What a browser would find in a page: elements with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = page
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] != "style":
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return "".join(self.texts)


@pytest.fixture
def read() -> Callable[[str], Reader]:
    return Reader
