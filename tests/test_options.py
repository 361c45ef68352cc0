"""One record says what `fit` and `fleet` can be told, with which defaults, and refuses what cannot be used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import learners, likelihoods, priors
from doxa.errors import BadInput
from doxa.training.options import COUNTS, Options

X = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()
KEYS: dict[str, Any] = {"likelihood": likelihoods.categorical(), "batch_size": 4, "progress": False}
LEARNER = learners.variational(priors.gaussian(1.0))


@pytest.mark.parametrize(
    ("front", "own_keywords"),
    [
        (doxa.fit, {"net", "data", "learner", "likelihood", "lr", "validation", "seed"}),
        (doxa.fleet, {"net", "data", "learners", "likelihood", "lr", "validation", "seeds", "rows", "at_once"}),
    ],
)
def test_the_keywords_of_a_front_are_the_options_and_its_own(front: Callable[..., Any], own_keywords: set[str]) -> None:
    parameters = inspect.signature(front).parameters
    options = {field.name: field for field in fields(Options)}
    assert {*parameters} == {*options} | own_keywords
    assert not own_keywords & {*options}
    for name, field in options.items():
        assert parameters[name].default == field.default
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        # The watch of one belief is shown it by itself.
        assert parameters[name].annotation == field.type or (front, name) == (doxa.fit, "watch")


def test_every_option_is_told_in_a_line() -> None:
    for field in fields(Options):
        assert field.metadata["help"].endswith(".")
        assert "\n" not in field.metadata["help"]


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_of_nothing_is_refused_and_what_is_one_becomes_an_int(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} must be at least 1, got 0"):
        Options(**{name: 0})
    with pytest.raises(BadInput, match=f"{name} must be a whole number; got 1.5"):
        Options(**{name: 1.5})
    assert type(getattr(Options(**{name: torch.tensor(3)}), name)) is int


def test_what_may_be_left_out_may_be_none_and_nothing_else() -> None:
    assert Options(patience=None, checkpoint_steps=None) == Options()
    with pytest.raises(BadInput, match="epochs must be a whole number; got None"):
        Options(epochs=None)  # type: ignore[arg-type]


def test_a_fleet_saves_within_epochs_as_often_as_asked(tmp_path: Path) -> None:
    checkpoint_exists = []

    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            checkpoint_exists.append((tmp_path / "checkpoint.doxa").exists())
            return self.net(x)

    keys = {"learners": LEARNER, "epochs": 1, **KEYS}
    doxa.fleet(Looking(), (X, Y), checkpoint=tmp_path, checkpoint_steps=1, **keys)
    assert checkpoint_exists[-3:] == [False, True, True]
