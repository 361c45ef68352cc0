"""Work of every kind on nets of a few weights, each as one call that begins or goes on in a folder."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa import bandits, learners, likelihoods, noise, priors, search
from doxa.search import engines

SEED, ROWS, EPOCHS, BATCH, EVERY = 3, 48, 3, 12, 3


def net() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))


def rows(seed: int = SEED) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, 3, generator=source)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()


def _variational(kind: Any) -> Any:
    return learners.variational(priors.gaussian(1.0), kind)


LEARNERS: dict[str, Callable[[], Any]] = {
    "shared": lambda: _variational(noise.shared),
    "local": lambda: _variational(noise.local),
    "flipout": lambda: _variational(noise.flipout),
    "point": lambda: learners.point(priors.gaussian(1.0)),
    "dropout": lambda: learners.dropout(0.3),
    "ensemble": lambda: learners.ensemble(learners.point(), 2),
    "swa": lambda: learners.swa(start_at=0.3, every=2),
    "ema": lambda: learners.ema(decay=0.9),
    "langevin": lambda: learners.langevin(priors.gaussian(1.0), burn_in=0.3, thinning=2),
    "langevin on disk": lambda: learners.langevin(priors.gaussian(1.0), burn_in=0.3, thinning=2, on_disk=True),
}
NO_PATIENCE = ("langevin", "langevin on disk")


def learn(folder: str, learner: str) -> str:
    """`doxa.fit` with a checkpoint every few steps; what it learned as a digest."""
    options: dict[str, Any] = (
        {} if learner in NO_PATIENCE else {"validation": rows(5), "patience": 2, "validation_samples": 2}
    )
    belief = doxa.fit(
        net(),
        rows(),
        learner=LEARNERS[learner](),
        likelihood=likelihoods.categorical(),
        epochs=EPOCHS,
        batch_size=BATCH,
        lr=0.05,
        seed=SEED,
        checkpoint=folder,
        checkpoint_steps=EVERY,
        resume=True,
        progress=False,
        **({} if learner in NO_PATIENCE else options),
    )
    return digest(belief.predict(rows(7)[0], 3).outputs, json.dumps(belief.record.history, sort_keys=True))


def learn_fleet(folder: str) -> str:
    """A fleet in two parts, of two beliefs and two points."""
    beliefs = doxa.fleet(
        net(),
        rows(),
        learners=[_variational(noise.shared)] * 2 + [learners.point()] * 2,
        seeds=[1, 2, 1, 2],
        likelihood=likelihoods.categorical(),
        epochs=EPOCHS,
        batch_size=BATCH,
        checkpoint=folder,
        checkpoint_steps=EVERY,
        resume=True,
        progress=False,
    )
    return digest(*(belief.predict(rows(7)[0], 3).outputs for belief in beliefs))


def square(w: Tensor) -> Tensor:
    return (w - 1).square().sum()


def find(folder: str, pool: bool) -> str:
    """A search for the lowest point of a square, by this process or by two workers."""
    return find_with(folder, square, engines.pool(2) if pool else None)


def find_with(folder: str, objective: Callable[[Tensor], Any], engine: Any) -> str:
    """The same, of a square of one's own, by whom one likes."""
    found = search.minimise(
        objective,
        [0.0, 0.5, 3.0],
        generations=8,
        size=8,
        seed=SEED,
        engine=engine,
        checkpoint=folder,
        checkpoint_every=2,
        resume=True,
        progress=False,
    )
    return digest(found.path, found.best, json.dumps(found.trajectory, sort_keys=True))


def play(folder: str) -> str:
    """Two agents of two kinds at a small bandit."""
    torch.manual_seed(SEED)
    source = torch.Generator().manual_seed(SEED)
    contexts, pays = torch.randn(20, 2, generator=source), torch.rand(20, 2, generator=source)
    outcomes = bandits.play(
        doxa.nets.mlp(2 + 2, (4,), 1),
        bandits.Bandit("small", contexts, pays, lambda drawn, u: pays[drawn] + u.to(pays), ("left", "right")),
        [
            bandits.agent(_variational(noise.shared), bandits.thompson(), seed=SEED),
            bandits.agent(learners.point(), bandits.greedy(0.1), seed=SEED),
        ],
        likelihood=likelihoods.gaussian(1.0),
        steps=12,
        updates=2,
        batch_size=4,
        memory=8,
        checkpoint=folder,
        checkpoint_every=3,
        resume=True,
        progress=False,
    )
    return digest(*(outcome.regret for outcome in outcomes))


def fit_command(folder: str, table: str, options: list[str]) -> list[str]:
    """The words of `doxa fit` that begin a run in a folder, or go on with the one that is there."""
    run = Path(folder) / "run"
    resume = ["--resume"] if run.exists() and any(run.iterdir()) else []
    return ["fit", table, "--target", "y", "--out", str(run), "--quiet", *options, *resume]


def fit_table(folder: str, table: str, options: list[str]) -> dict[str, int]:
    """`doxa fit` as the console would, in this process; its exit code."""
    main = importlib.import_module("doxa_cli.app").main  # the console knows the benchmarks, not the other way round
    return {"exit": main(fit_command(folder, table, options))}


def write_table(path: Path) -> None:
    """A small table of numbers and words with a quantity to learn."""
    source = torch.Generator().manual_seed(SEED)
    lines = [
        f"{a:.3f},{'uvw'[int(3 * b)]},{a + b:.3f}" for a, b in torch.rand(60, 2, generator=source).double().tolist()
    ]
    path.write_text("\n".join(["a,b,y", *lines]) + "\n", encoding="utf-8")


def digest(*values: Tensor | str) -> str:
    """One for tensors and texts."""
    state = hashlib.sha256()
    for value in values:
        state.update(value.encode() if isinstance(value, str) else value.detach().contiguous().numpy().tobytes())
    return state.hexdigest()
