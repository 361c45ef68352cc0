"""Members of one's own in a file: what is saved can be loaded, and what could not be is refused as it is saved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from doxa import BadInput, Belief, load, priors
from for_storage import belief, net


@dataclass(frozen=True)
class Mine:
    """A prior with a field of each kind that a file can hold."""

    widths: list = field(default_factory=lambda: [1.0])
    names: list[str] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    parts: list[Tensor] = field(default_factory=list)
    count: int = 1
    rate: float = 0.5
    low: float | None = None

    def log_prob(self, w: Tensor) -> Tensor:
        return -w.square() / 2

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return -w


def holding(**fields: Any) -> Belief:
    return belief(prior=Mine(**fields))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(priors.TABLE, "mine", Mine)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"widths": [1.0, 2, "a", None, True]},
        {"widths": [], "names": ["a", "b"]},
        {"shape": (3, 4)},
        {"count": 10**20, "rate": 3},
        {"rate": np.float64(0.25), "low": -math.inf},
    ],
)
def test_what_is_saved_is_loaded_as_it_was(fields: dict[str, Any], tmp_path: Path) -> None:
    holding(**fields).save(tmp_path / "a.doxa")
    loaded = load(tmp_path / "a.doxa", net())
    assert loaded.prior == Mine(**fields)
    assert type(loaded.prior.widths) is list
    loaded.save(tmp_path / "b.doxa")
    assert (tmp_path / "a.doxa").read_bytes() == (tmp_path / "b.doxa").read_bytes()


def test_lists_and_tuples_pass_for_each_other(tmp_path: Path) -> None:
    holding(widths=(1, 2), names=("a",), shape=[3, 4], parts=(torch.ones(2),)).save(tmp_path / "a.doxa")
    prior = load(tmp_path / "a.doxa", net()).to(dtype=torch.float64).prior
    assert (prior.widths, prior.names, prior.shape) == ([1, 2], ["a"], (3, 4))
    assert torch.equal(prior.parts[0], torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", True),
        ("count", 1.0),
        ("rate", math.nan),
        ("rate", False),
        ("rate", "0.5"),
        ("low", math.nan),
        ("shape", (1, 2.5)),
        ("shape", 3),
        ("widths", 3),
    ],
)
def test_what_could_not_be_loaded_is_refused_as_it_is_saved(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    with pytest.raises(BadInput, match=rf"prior\.{name} is .*, which a mine does not take"):
        holding(**{name: value}).save(path)
    assert not path.exists()


def test_what_contradicts_itself_is_refused_as_it_is_saved(tmp_path: Path) -> None:
    for broken in (
        belief(prior=priors.gaussian(0.3, centre=torch.zeros(3))),
        belief(prior=priors.gaussian(torch.ones(3))),
    ):
        with pytest.raises(BadInput, match=r"prior\.(centre|scale) holds .* expected"):
            broken.save(tmp_path / "a.doxa")
    untold = belief()
    untold.record.settings["of"] = object()
    with pytest.raises(BadInput, match="cannot be written"):
        untold.save(tmp_path / "a.doxa")
    assert not (tmp_path / "a.doxa").exists()
