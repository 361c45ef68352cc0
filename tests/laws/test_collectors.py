"""Laws of the collectors' room: a net's own way is kept, whoever learns beside it, and whenever it is interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import collectors, likelihoods, priors
from doxa.collectors.last import Last
from doxa.learners.point import Point
from doxa.weights.layout import lay_out

EXAMPLES = {f"{name}-{i}": one for name, examples in collectors.EXAMPLES.items() for i, one in enumerate(examples)}
SEEDS = [3, 8, 5]
KEYS: dict[str, Any] = {"likelihood": likelihoods.gaussian(0.5), "batch_size": 8, "progress": False, "lr": 0.02}


class Enough(Exception):
    """What interrupts a run."""


@dataclass(frozen=True)
class Collecting(Point):
    """A point estimate with a collector of one's choice."""

    keep: Any = field(default_factory=Last)

    @property
    def kind(self) -> tuple[Any, ...]:
        return Collecting, self.keep

    def collector(self, fleet: Sequence[Collecting]) -> Any:
        return self.keep


def rows() -> tuple[Tensor, Tensor]:
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    return x, x[:, :1] - x[:, 1:2].square()


def net() -> nn.Module:
    """With BatchNorm, whose statistics belong to what is kept."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))


def tensors(belief: doxa.Belief) -> list[Tensor]:
    values = [value for value in vars(belief.posterior).values() if isinstance(value, Tensor)]
    return values + [buffer for buffers in belief.buffers for buffer in buffers.values()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_member_is_what_it_is_alone(name: str) -> None:
    each = [Collecting(priors.gaussian(scale), keep=EXAMPLES[name]) for scale in (0.1, 1.0, 3.0)]
    beliefs = doxa.fleet(net(), rows(), learners=each, seeds=SEEDS, epochs=3, **KEYS)
    for belief, learner, seed in zip(beliefs, each, SEEDS, strict=True):
        alone = doxa.fit(net(), rows(), learner=learner, seed=seed, epochs=3, **KEYS)
        for value, expected in zip(tensors(belief), tensors(alone), strict=True):
            torch.testing.assert_close(value, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_resumed_fleet_is_the_uninterrupted_one_to_the_byte(name: str, tmp_path: Path) -> None:
    learner = Collecting(priors.gaussian(1.0), keep=EXAMPLES[name])

    def run(folder: str, **more: Any) -> None:
        doxa.fleet(net(), rows(), learners=learner, seeds=SEEDS, checkpoint=tmp_path / folder, epochs=4, **KEYS, **more)

    def interrupt(beliefs: Sequence[doxa.Belief]) -> list[dict[str, float]]:
        if len(beliefs[0].record.history) == 3:
            raise Enough
        return [{} for _ in beliefs]

    run("whole")
    with pytest.raises(Enough):
        run("cut", watch=interrupt)
    run("cut", resume=True)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "cut").iterdir())
    for file in names:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


@pytest.mark.parametrize("name", EXAMPLES)
def test_where_nothing_moves_what_is_kept_is_the_start(name: str) -> None:
    """Whatever is made of a way, of one that stays in a place it is that place."""
    keys = {**KEYS, "epochs": 4, "lr": lambda moment: 0.0}
    kept = doxa.fit(net(), rows(), learner=Collecting(keep=EXAMPLES[name]), **keys).posterior.mean
    torch.testing.assert_close(kept, lay_out(net())[1])
