"""What went wrong before the engine: modes not the owner's, a record lost between two writes, idle workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import learners, likelihoods, priors, search
from doxa.errors import BadInput

KEYS: dict[str, Any] = {
    "likelihood": likelihoods.categorical(),
    "epochs": 3,
    "batch_size": 16,
    "lr": 0.05,
    "progress": False,
}
LEARNERS = {
    "point": learners.point(),
    "variational": learners.variational(priors.gaussian(1.0)),
    "two samples": learners.variational(priors.gaussian(1.0), doxa.noise.local, samples=2),
    "ensemble": learners.ensemble(learners.point(), 2),
    "search": search.learner(search.weight_space(), size=6),
    "swa": learners.swa(start_at=0.3),
    "langevin": learners.langevin(priors.gaussian(1.0)),
}


def rows() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = 3 + 2 * torch.randn(48, 4, generator=generator)
    return x, (x[:, 0] > 3).long()


def with_backbone(frozen: bool = True) -> nn.Module:
    """A backbone whose BatchNorm knows the rows that it was trained on, which are others, and a head."""
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.5))
    backbone(torch.randn(64, 4))
    for p in backbone.parameters():
        p.requires_grad_(not frozen)
    return nn.Sequential(backbone, nn.Linear(6, 2))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_frozen_backbone_in_evaluation_mode_stays_as_it_is(name: str, whole: bool) -> None:
    """Its statistics, its dropout and so its features; also where the whole net is in evaluation mode."""
    net = with_backbone()
    (net if whole else net[0]).eval()
    modes = [m.training for m in net.modules()]
    belief = doxa.fit(net, rows(), learner=LEARNERS[name], **KEYS)
    assert [m.training for m in net.modules()] == modes
    for buffers in belief.buffers:
        assert torch.equal(buffers["0.1.running_mean"], net[0][1].running_mean)
        assert torch.equal(buffers["0.1.running_var"], net[0][1].running_var)
    for draw in belief.posterior.draws(3, (0,)):
        assert not draw.buffers or not any(name.startswith("0.") for name in draw.buffers)


def test_features_are_those_of_evaluation_while_it_learns() -> None:
    """A head on a frozen backbone learns what it learns on the backbone's own features."""
    net = with_backbone()
    net[0].eval()
    x, y = rows()
    with torch.no_grad():
        features = net[0](x)
    through = doxa.fit(net, (x, y), learner=learners.point(), **KEYS).posterior.mean
    alone = doxa.fit(net[1], (features, y), learner=learners.point(), **KEYS).posterior.mean
    torch.testing.assert_close(through, alone)


def test_a_net_in_evaluation_mode_learns_as_one_in_training_mode() -> None:
    """Where nothing of it is frozen: one that was just loaded, say."""
    net = with_backbone(frozen=False)
    trained = doxa.fit(net, rows(), learner=learners.point(), **KEYS)
    net.eval()
    loaded = doxa.fit(net, rows(), learner=learners.point(), **KEYS)
    assert torch.equal(trained.posterior.mean, loaded.posterior.mean)
    assert torch.equal(trained.buffers[0]["0.1.running_mean"], loaded.buffers[0]["0.1.running_mean"])
    assert not torch.equal(trained.buffers[0]["0.1.running_mean"], net[0][1].running_mean)


def test_nets_in_different_modes_are_no_fleet() -> None:
    evaluating, training = with_backbone(), with_backbone()
    evaluating[0].eval()
    with pytest.raises(BadInput, match="training mode in one of them and in evaluation mode in another"):
        doxa.fleet([evaluating, training], rows(), learners=learners.point(), seeds=[1, 2], **KEYS)


class Enough(Exception):
    pass


@pytest.mark.parametrize("where", ["watch", "validation"])
@pytest.mark.parametrize("patience", [None, 2])
def test_a_checkpoint_on_an_epoch_s_last_step_has_the_epoch(
    patience: int | None, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Broken off between that step and the end of its epoch, a run goes on to the same bytes."""
    net = with_backbone(frozen=False)
    x, y = rows()
    keys = {**KEYS, "epochs": 6, "lr": 0.3, "validation": (x[:20], 1 - y[:20]), "patience": patience}
    learner = LEARNERS["variational"]
    whole = doxa.fit(net, (x, y), learner=learner, checkpoint=tmp_path / "whole", checkpoint_steps=3, **keys)
    epochs_seen: list[int] = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        epochs_seen.append(len(belief.record.history))
        if where == "watch" and len(epochs_seen) == 2:
            raise Enough
        return {}

    if where == "validation":
        from doxa.engine.epochs import EpochMonitor

        validate, times = EpochMonitor.validate, [0]

        def failing(monitor: EpochMonitor, members: Sequence[int]) -> dict[int, float]:
            times[0] += 1
            if times[0] == 2:
                raise Enough
            return validate(monitor, members)

        monkeypatch.setattr(EpochMonitor, "validate", failing)
    with pytest.raises(Enough):  # three steps an epoch: the sixth is the last of the second
        doxa.fit(net, (x, y), learner=learner, checkpoint=tmp_path / "cut", checkpoint_steps=3, watch=watch, **keys)
    monkeypatch.undo()
    resumed = doxa.fit(net, (x, y), learner=learner, checkpoint=tmp_path / "cut", resume=True, **keys)
    assert resumed.record.history == whole.record.history
    assert (tmp_path / "whole/belief.doxa").read_bytes() == (tmp_path / "cut/belief.doxa").read_bytes()


@dataclass(frozen=True)
class NotingEngine:
    """An engine whose exchange notes what it is asked to have evaluated."""

    generations: list[int] = field(default_factory=list, compare=False)
    parts: int = 2
    leads: bool = True

    @contextmanager
    def start_workers(self, copy: Any) -> Iterator[Any]:
        def exchange(generation: int, evaluate: Any, blocks: Sequence[slice]) -> list[Tensor | None]:
            self.generations.append(generation)
            return [evaluate(block) for block in blocks]

        yield exchange


def test_a_searched_ensemble_has_its_workers() -> None:
    engine = NotingEngine()
    learner = learners.ensemble(search.learner(search.weight_space(), size=6, engine=engine), 2)
    doxa.fit(doxa.nets.mlp(4, (3,), 2), rows(), learner=learner, **KEYS)
    # Three epochs of three steps, a generation of each of both nets a step.
    assert engine.generations == list(range(18))


def test_one_that_works_in_other_processes_learns_what_it_learns_alone(tmp_path: Path) -> None:
    def learned(engine: Any) -> Tensor:
        learner = learners.ensemble(search.learner(search.weight_space(), size=6, engine=engine), 2)
        net = doxa.nets.mlp(4, (3,), 2)
        torch.manual_seed(1)
        for p in net.parameters():
            nn.init.normal_(p)
        belief = doxa.fit(net, rows(), learner=learner, **{**KEYS, "epochs": 1})
        return torch.stack([part.mean for part in belief.posterior.members])

    alone, crowd = (learned(engine) for engine in (search.engines.in_process(parts=2), search.engines.pool(2, parts=2)))
    assert torch.equal(alone, crowd)


def test_refreshed_statistics_are_those_of_modules_that_learn() -> None:
    """A BatchNorm that its owner holds in evaluation mode is not touched, though its weights learn."""
    net = with_backbone(frozen=False)
    net[0].eval()
    belief = doxa.fit(net, rows(), learner=learners.point(), **KEYS)
    again = belief.refreshed(rows()[0])
    assert torch.equal(again.buffers[0]["0.1.running_mean"], net[0][1].running_mean)
    net.train()
    assert not torch.equal(belief.refreshed(rows()[0]).buffers[0]["0.1.running_mean"], net[0][1].running_mean)
