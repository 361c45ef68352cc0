"""Policies whose SHA-256 holds and whose header or numbers cannot be: BrokenFile names the field."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from doxa import BadInput, BrokenFile
from doxa.search import load_policy, policy
from doxa.storage.sealed import read
from for_episodes import Reach
from for_storage import forge


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], dict[str, Tensor]]:
    """A policy, and what its file holds."""
    path = tmp_path_factory.mktemp("policy") / "a.doxa"
    found = policy(Reach, net(), longest=5, generations=2, size=4, episodes=1, progress=False)
    found.save(path)
    return found, *read(path, "doxa.policy")


def put(name: str, value: Any) -> Callable[..., Any]:
    return lambda header, tensors: header.update({name: value})


def with_tensor(name: str, change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    return lambda header, tensors: tensors.update({name: change(tensors[name]).contiguous()})


CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "no layout": (lambda h, t: h.pop("layout"), "no 'layout'"),
    "a layout of nothing": (put("layout", []), "layout is"),
    "no best": (lambda h, t: t.pop("best"), "no 'best'"),
    "a best cut short": (with_tensor("best", lambda t: t[:-1]), "best holds"),
    "a mean with NaN": (with_tensor("mean", lambda t: t * math.nan), "mean holds NaN"),
    "a best without end": (with_tensor("best", lambda t: t + math.inf), "best holds NaN, infinity"),
    "a scale of another kind": (with_tensor("scale", lambda t: t.double()), "scale holds torch.float64"),
    "weights of whole numbers": (
        lambda h, t: t.update({k: t[k].long() for k in ("best", "mean", "scale")}),
        "best holds NaN, infinity or no real",
    ),
    "counts in a list": (put("counts", []), "counts is"),
    "counts of one": (put("counts", {"best": 3}), "no 'mean'"),
    "a count below": (put("counts", {"best": -1, "mean": 3}), "counts.best is -1"),
    "a count that is true": (put("counts", {"best": True, "mean": 3}), "counts.best is True"),
    "a count of a fraction": (put("counts", {"best": 1.5, "mean": 3}), "counts.best is 1.5"),
    "statistics of nothing": (put("counts", {"best": None, "mean": None}), "belongs to nothing"),
    "statistics of another kind": (with_tensor("best.seen", lambda t: t.float()), "double precision"),
    "statistics of another shape": (with_tensor("best.seen", lambda t: t.repeat(2)), "differ in shape"),
    "statistics with NaN": (with_tensor("best.seen", lambda t: t * math.nan), "no statistics"),
    "squares below": (with_tensor("mean.squares", lambda t: t - 1e9), "no statistics"),
    "a tensor of nobody": (lambda h, t: t.update(more=torch.ones(1)), "'more' that belongs to nothing"),
    "solved in words": (put("solved", "yes"), "solved is 'yes'"),
    "longest in words": (put("longest", "5"), "longest is '5'"),
    "longest of nothing": (put("longest", 0), "longest is 0"),
    "longest without end": (put("longest", math.inf), "longest is inf"),
    "a trajectory by name": (put("trajectory", {"a": 1}), "trajectory is"),
    "a trajectory of numbers": (put("trajectory", [1]), r"trajectory\[0\] is 1"),
    "a trajectory in depth": (put("trajectory", [{"return": [1]}]), r"trajectory\[0\].return"),
    "an environment by number": (put("environment", 3), "environment is 3"),
    "a bound by number": (put("bound", ["clip"]), "bound is"),
}


@pytest.mark.parametrize(("change", "words"), CASES.values(), ids=CASES)
def test_what_cannot_be_true_is_refused(change: Callable[..., Any], words: str, honest: Any, tmp_path: Path) -> None:
    header, tensors = copy.deepcopy(honest[1:])
    assert torch.equal(load_policy(forge(tmp_path / "a", header, tensors), net(), Reach).play(3), honest[0].play(3))
    change(header, tensors)
    with pytest.raises(BrokenFile, match=words) as refused:
        load_policy(forge(tmp_path / "hostile.doxa", header, tensors), net(), Reach)
    assert "hostile.doxa" in str(refused.value)


def test_statistics_of_other_observations_are_refused(honest: Any, tmp_path: Path) -> None:
    header, tensors = copy.deepcopy(honest[1:])
    tensors |= {name: t.repeat(2) for name, t in tensors.items() if name.endswith(("seen", "squares"))}
    with pytest.raises(BadInput, match="has seen observations of shape"):
        load_policy(forge(tmp_path / "a", header, tensors), net(), Reach)


def test_what_could_not_be_loaded_is_not_saved(honest: Any, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be saved: scale holds NaN"):
        replace(honest[0], scale=honest[0].scale * math.nan).save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("names", [("best", "mean", "scale"), ("buffers.1.running_mean",)])
def test_numbers_of_another_precision_are_refused(names: tuple[str, ...], honest: Any, tmp_path: Path) -> None:
    header, tensors = copy.deepcopy(honest[1:])
    tensors |= {name: tensors[name].double() for name in names}
    with pytest.raises(BadInput, match=r"is torch.float64, that of the net torch.float32; bring the"):
        load_policy(forge(tmp_path / "a", header, tensors), net(), Reach)
