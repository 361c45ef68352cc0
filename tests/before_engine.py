"""What the loops did before they became one engine: runs by the public API alone, and how their files were written.

`tests/fixtures/before-engine` was written with the code of commit f6462e8, on one thread, and is not to be written
again with a later one. With that commit checked out in `before`, from the root of this repository:

    PYTHONPATH=before/src python tests/before_engine.py
"""

from __future__ import annotations

import functools
import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import doxa
from doxa import bandits, kl_weights, learners, likelihoods, noise, optimisers, posteriors, priors, rates, runs, search

COMMIT = "f6462e8"
FOLDER = Path(__file__).parent / "fixtures" / "before-engine"
BELIEFS, OUTCOMES, OUTPUTS = "belief*.doxa", "outcomes.safetensors", "said.safetensors"
TABLE, PREDICTIONS = "houses.csv", "told.json"
ROWS, COLUMNS, CLASSES = 26, 4, 3


def exact(*shape: int, seed: int) -> Tensor:
    """Numbers that are the same on every machine: sixteenths, without rounding."""
    return torch.randint(-16, 17, shape, generator=torch.Generator().manual_seed(seed)) / 16


X = exact(ROWS, COLUMNS, seed=1)
Y = (X @ exact(COLUMNS, CLASSES, seed=2)).argmax(1)
QUANTITY = X[:, :2] + X[:, 2:].square()
HELD_OUT = exact(10, COLUMNS, seed=3), Y[:10]


def set_exact_weights(net: nn.Module, seed: int = 0) -> nn.Module:
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(exact(*p.shape, seed=100 * seed + k))
    return net


def plain(outputs: int = CLASSES, inputs: int = COLUMNS) -> nn.Module:
    return set_exact_weights(nn.Sequential(nn.Linear(inputs, 7), nn.Tanh(), nn.Linear(7, outputs)))


def normed() -> nn.Module:
    """Without a bias before its norm: that one's gradient is rounding alone, and no two machines agree on it."""
    return set_exact_weights(
        nn.Sequential(nn.Linear(COLUMNS, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, CLASSES))
    )


def fit_one(net: nn.Module, data: Any, **more: Any) -> list[doxa.Belief]:
    return [doxa.fit(net, data, **more)]


@dataclass(frozen=True)
class Case:
    """A training to be broken off and gone on with."""

    arguments: dict[str, Any]
    net: Callable[[], nn.Module] = plain
    data: Callable[[], Any] = lambda: (X, Y)
    train: Callable[..., list[doxa.Belief]] = fit_one
    cut: float = 0.6  # of all calls of the net: there it is stopped
    fails: bool = False  # by an error, so that what was last saved stands

    def run(self, net: nn.Module | None = None, **more: Any) -> list[doxa.Belief]:
        common = {"likelihood": likelihoods.categorical(), "epochs": 4, "batch_size": 8, "lr": 0.01, "progress": False}
        net = self.net() if net is None else net
        return self.train(net, self.data(), **{**common, **self.arguments, **more})


GAUSSIAN = priors.gaussian(1.0)
MIXTURE = priors.scale_mixture(0.5, 1.0, 0.1)
START = posteriors.mean_field(scale=0.05)
PATIENT: dict[str, Any] = {"validation": HELD_OUT, "patience": 2, "epochs": 7}


def variational(prior: Any = GAUSSIAN, *rest: Any, **more: Any) -> Any:
    return learners.variational(prior, *rest, **{"posterior": START, **more})


FITS = {
    "point": Case({"learner": learners.point(), "optimiser": optimisers.sgd(momentum=0.9), "lr": 0.05, "seed": 3}),
    "map": Case({"learner": learners.point(priors.laplace(0.5)), "checkpoint_steps": 3}, fails=True),
    "local": Case({"learner": variational(GAUSSIAN, noise.local)}),
    "flipout": Case(
        {
            "learner": variational(
                GAUSSIAN, noise.flipout, samples=2, antithetic=True, kl_weight=kl_weights.geometric()
            ),
            "lr": rates.cosine(0.02),
        },
        fails=True,
    ),
    "patient": Case({"learner": variational(MIXTURE, samples=2), "lr": 0.3, **PATIENT}, cut=0.8),
    "per-layer": Case(
        {
            "learner": variational(
                priors.student_t(),
                posterior=posteriors.mean_field("layer", scale=0.1),
                kl_weight=kl_weights.annealed(2.0),
            ),
            "likelihood": likelihoods.gaussian_learned(0.5),
            "checkpoint_steps": 2,
        },
        net=lambda: plain(2),
        data=lambda: (X, QUANTITY),
        fails=True,
    ),
    "adamw": Case(
        {"learner": variational(), "optimiser": functools.partial(torch.optim.AdamW, lr=0.02, amsgrad=True), "lr": None}
    ),
    "torch-sgd": Case(
        {"learner": learners.point(GAUSSIAN), "optimiser": functools.partial(torch.optim.SGD, momentum=0.8)}
    ),
    "dropout": Case({"learner": learners.dropout(0.3, 0.1, GAUSSIAN)}),
    "ensemble": Case({"learner": learners.ensemble(learners.point(), 3)}, net=normed),
    "mixture": Case({"learner": learners.ensemble(variational(GAUSSIAN, noise.local), 2), **PATIENT}, net=normed),
    "loader": Case(
        {"learner": variational(GAUSSIAN, noise.local)},
        data=lambda: DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True),
    ),
    "search": Case({"learner": search.learner(size=8), "epochs": 3}),
    "search-scales": Case(
        {
            "learner": search.learner(search.weight_space(), size=8, per="layer", scale_rate=1.0),
            "optimiser": optimisers.sgd(),
            "checkpoint_steps": 2,
        },
        fails=True,
    ),
}

FLEETS = {
    "priors-and-rates": Case(
        {
            "learners": [variational(priors.gaussian(s)) for s in (0.5, 1.0, 2.0)],
            "seeds": [0, 1, 2],
            "lr": [0.01, 0.02, rates.step(0.02, every=2)],
        },
        train=doxa.fleet,
    ),
    "patient": Case(
        {"learners": variational(MIXTURE), "seeds": [4, 5, 6], "lr": [0.01, 0.1, 0.3], **PATIENT},
        train=doxa.fleet,
        cut=0.8,
    ),
    "two-kinds": Case(
        {"learners": [learners.point(), variational(GAUSSIAN, noise.local)], "seeds": [7, 7]},
        train=doxa.fleet,
        cut=0.8,
    ),
}


@dataclass(frozen=True)
class Game:
    """Agents at a bandit, to be broken off and gone on with."""

    agents: list[bandits.agent]
    arguments: dict[str, Any] = field(default_factory=dict)
    cut: float = 0.6

    def net(self) -> nn.Module:
        return plain(1, COLUMNS + CLASSES)

    def run(self, net: nn.Module | None = None, **more: Any) -> list[bandits.Outcome]:
        expected = X @ exact(COLUMNS, CLASSES, seed=2)
        bandit = bandits.Bandit("exact", X, expected, lambda rows, u: expected[rows] + (u[:, :1] < 0.5), tuple("abc"))
        rules = {"steps": 12, "updates": 2, "batch_size": 8, "memory": 20, "progress": False, **self.arguments}
        likelihood = likelihoods.gaussian(0.5)
        net = self.net() if net is None else net
        return bandits.play(net, bandit, self.agents, likelihood=likelihood, **rules, **more)


GAMES = {
    "thompson": Game([bandits.agent(variational(), bandits.thompson(), seed, 0.01) for seed in (0, 1)]),
    "greedy": Game(
        [bandits.agent(learners.point(), bandits.greedy(0.2), seed, 0.01) for seed in (0, 1)],
        {"optimiser": optimisers.sgd(momentum=0.9)},
    ),
}
EVERY: dict[str, Case | Game] = {
    **{f"fits/{name}": case for name, case in FITS.items()},
    **{f"fleets/{name}": case for name, case in FLEETS.items()},
    **{f"games/{name}": game for name, game in GAMES.items()},
}
PLANS = {
    "auto": runs.Plan(net="mlp:6", kl_weight="0.1", epochs=6, members=2),
    "variational": runs.Plan(net="mlp:6", learner="variational", epochs=3, posterior="mean_field:layer"),
}


def save_outcomes(results: list[Any], folder: Path) -> None:
    """Write the end of a game as a training writes its own: a belief an agent, and what each did."""
    if not isinstance(results[0], bandits.Outcome):
        return
    for k, outcome in enumerate(results):
        outcome.belief.save(folder / f"belief-{k}.doxa")
    save_file({f"taken.{k}": o.taken.contiguous() for k, o in enumerate(results)}, folder / OUTCOMES)


def houses(path: Path) -> None:
    """A small table of one's own, with words, numbers and a gap."""
    sizes, ages, offs = ((16 * exact(48, seed=k)).long().tolist() for k in (11, 12, 13))
    rows = [
        f"{90 + 4 * size},{'Ghent' if age % 3 else 'Rio'},{age + 20 if age else ''},{200 + 8 * size + age + off}"
        for size, age, off in zip(sizes, ages, offs, strict=True)
    ]
    path.write_text("\n".join(["size,town,age,price", *rows]) + "\n")


def facts() -> dict[str, Any]:
    """What the bits of a run depend on besides its settings and the code of Doxa."""
    (belief,) = Case({"learner": learners.point(), "epochs": 1}).run()
    versions = {k: v for k, v in belief.record.settings["versions"].items() if k != "doxa"}
    return {**versions, "cpu": torch.backends.cpu.get_cpu_capability(), "model": _model()}


def _model() -> str:
    """The processor's name and number, where the system tells: libraries choose their sums by them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    fields_by_name = dict(line.partition(":")[::2] for line in reversed(lines))
    fields_by_name = {name.strip(): value.strip() for name, value in fields_by_name.items()}
    return ", ".join(fields_by_name.get(name, "") for name in ("model name", "cpu family", "model"))


class Stopped(Exception):
    """What ends a training that fails."""


@contextmanager
def counting(net: nn.Module, call_number: int, action: Callable[[], None]) -> Iterator[list[int]]:
    """Count the calls of a net, and do something at one of them."""
    calls = [0]

    def hook(*_: Any) -> None:
        calls[0] += 1
        if calls[0] == call_number:
            action()

    handle = net.register_forward_hook(hook)
    try:
        yield calls
    finally:
        handle.remove()


def fail() -> None:
    raise Stopped


def break_off(case: Case | Game, folder: Path) -> str:
    """Stop a run part of the way, and leave what it has saved; what it says of it."""
    net = case.net()
    with counting(net, -1, fail) as calls:
        case.run(net)
    fails = getattr(case, "fails", False)
    then = fail if fails else functools.partial(signal.raise_signal, signal.SIGINT)
    try:
        with counting(net := case.net(), round(case.cut * calls[0]), then):
            case.run(net, checkpoint=folder)
    except doxa.Interrupted as error:
        return str(error).partition(";")[0]
    except Stopped:
        return "failed"
    raise AssertionError(f"{folder} was not broken off")


def write_case(name: str, case: Case | Game) -> None:
    cut, end = FOLDER / name / "cut", FOLDER / name / "end"
    outcome = break_off(case, cut)
    shutil.copytree(cut, end)
    save_outcomes(case.run(checkpoint=end, resume=True), end)
    for path in [*end.rglob("checkpoint.doxa"), *end.rglob("fleet.json")]:
        path.unlink()
    outputs_by_path = {
        p.relative_to(end).as_posix(): outputs_of(doxa.load(p, case.net())) for p in sorted(end.rglob(BELIEFS))
    }
    save_file(outputs_by_path, end / OUTPUTS)
    print(f"{name}: {outcome}; {len(outputs_by_path)} beliefs")


def outputs_of(belief: doxa.Belief) -> Tensor:
    """What a belief says of a few rows, in three draws [3, 5, ·]."""
    inputs = next(p for p in belief.net.parameters() if p.dim() == 2).shape[1]
    return belief.predict(exact(5, inputs, seed=4), 3).outputs.contiguous()


def write_run(name: str, plan: runs.Plan) -> None:
    """A finished run of `doxa fit`, and what it says of a few rows of its table."""
    folder = FOLDER / "runs" / name
    runs.learn(runs.gathered(str(FOLDER / TABLE), "price"), plan, folder, progress=False)
    shutil.rmtree(folder / "members", ignore_errors=True)  # what only a run that is not finished goes on with
    shutil.rmtree(folder / "training", ignore_errors=True)
    (folder / PREDICTIONS).write_text(json.dumps(predict_first_rows(folder)) + "\n")


def predict_first_rows(folder: Path) -> dict[str, list[Any]]:
    """What a run says of the first rows of its table, by column."""
    lines = (FOLDER / TABLE).read_text().splitlines()[:6]
    with tempfile.TemporaryDirectory() as folder_name:
        short_table = Path(folder_name) / TABLE
        short_table.write_text("\n".join(lines) + "\n")
        predictions = runs.predict_table(runs.open_run(folder), str(short_table), samples=5)
    return {name: column.tolist() for name, column in predictions.items()}


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name, case in EVERY.items():
        write_case(name, case)
    houses(FOLDER / TABLE)
    for name, plan in PLANS.items():
        write_run(name, plan)
    (FOLDER / "facts.json").write_text(json.dumps({"commit": COMMIT, **facts()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
