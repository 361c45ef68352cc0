"""Weights that all rows of a batch share tie their losses together; weights of its own for every row do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.search.distribution.gaussian import Gaussian
from doxa.search.perturbations.population import population
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.functions.estimates import Measured, varied

DRAWS, BATCHES, ROWS = (1, 4, 16, 64), (1, 4, 16), 16
SCALE, WITHIN = 0.5, 0.05
BLOCK = 1 << 14  # weights of nets at a time
APART = Claim(
    "C-VO-8",
    "Weights of its own for every row take the covariance of rows out of the objective's variance",
    f"variance of the objective within {100 * WITHIN:g} % of Var/N|B| with weights for each row, and of "
    f"Var/N|B| + (|B| − 1)/N|B| Cov with shared ones, for every N and |B|; and not of the printed form "
    "Var/N|B| + (N − 1)/N (|B| − 1)/|B| Cov",
)


@dataclass(frozen=True)
class Model:
    """Losses of some rows [n, b] for weights [n, P], around a mean."""

    losses: Callable[[Tensor, slice], Tensor]
    mean: Tensor

    @property
    def at(self) -> Gaussian:
        return Gaussian(self.mean, self.mean.new_tensor([SCALE]), (len(self.mean),))


def linear() -> Model:
    """Four inputs, one output and squared errors."""
    by = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 4, dtype=torch.float64, generator=by)
    y = x.sum(1) + 0.3 * torch.randn(ROWS, dtype=torch.float64, generator=by)
    return Model(lambda w, rows: (w @ x[rows].T - y[rows]).square(), torch.full((4,), 0.8, dtype=torch.float64))


def net() -> Model:
    """Two inputs, four tanh units and three classes by which third of the circle a row lies in; cross-entropy."""
    by = torch.Generator().manual_seed(2)
    x = torch.randn(ROWS, 2, dtype=torch.float64, generator=by)
    turn = torch.atan2(x[:, 1], x[:, 0]) / (2 * torch.pi) + 0.5
    y = (3 * turn).long().clamp_max(2)
    sizes = (8, 4, 12, 3)

    def losses(w: Tensor, rows: slice) -> Tensor:
        first, bias, second, other = w.split(sizes, 1)
        hidden = torch.tanh(x[rows] @ first.view(-1, 4, 2).mT + bias[:, None])
        out = hidden @ second.view(-1, 3, 4).mT + other[:, None]
        return out.logsumexp(2) - out.gather(2, y[rows].expand(len(w), -1)[..., None])[..., 0]

    return Model(losses, torch.randn(sum(sizes), dtype=torch.float64, generator=by))


MODELS = {"linear": linear, "net": net}


def losses(model: Model, many: int, seed: int, rows: slice = slice(None)) -> Tensor:
    """Losses of some rows for so many weights, from the noise of the search [many, b]."""
    one, found = population(2, False, (seed, "minibatch")), []
    p = len(model.mean)
    for generation, low in enumerate(range(0, many, BLOCK)):
        here = min(BLOCK, many - low)
        epsilon = one.noise(generation, slice(0, 1), model.mean.new_empty(here * p)).view(here, p)
        found.append(model.losses(one.points(model.at, epsilon), rows))
    return torch.cat(found)


def run(ask: Ask) -> Numbers:
    many = int(ask.of(1 << 14, 1 << 20))
    rows = [row for name, make in MODELS.items() for row in measured(name, make(), many)]
    fresh = max(abs(row["fresh"] / row["fresh_law"] - 1) for row in rows)
    shared = max(abs(row["shared"] / row["shared_law"] - 1) for row in rows)
    printed = max(abs(row["shared"] / row["printed_law"] - 1) for row in rows)
    return {
        "settings": {"scale": SCALE, "draws": DRAWS, "batches": BATCHES, "weights": many},
        "seeds": [0],
        "rows": rows,
        "verdicts": [
            APART.judged(
                fresh <= WITHIN and shared <= WITHIN < printed,
                {
                    "weights for each row, furthest from their law": fresh,
                    "shared ones from the corrected law": shared,
                    "from the printed one": printed,
                },
                max(row["error"] for row in rows),
                [0],
                f"a linear map and a small net, σ = {SCALE:g}, {many:,} weights in all; Var and Cov from others; the "
                "error is that of a variance, as a share of it",
            )
        ],
    }


def measured(name: str, model: Model, many: int) -> list[dict[str, Any]]:
    """Variances of (1/N|B|) Σ f_b(w) with shared weights and with weights for each row, and what the laws say."""
    known = torch.cov(losses(model, many, 0).T)
    shared = losses(model, many, 1)
    fresh = torch.cat([losses(model, many, 2 + row, slice(row, row + 1)) for row in range(ROWS)], 1)
    found = []
    for batch in BATCHES:
        inner = known[:batch, :batch]
        variance = float(inner.diag().mean())
        covariance = float((inner.sum() - inner.diag().sum()) / (batch * (batch - 1))) if batch > 1 else 0.0
        for draws in DRAWS:
            one, other = (objective(values, draws, batch) for values in (shared, fresh))
            single, share = variance / (draws * batch), (batch - 1) / batch * covariance
            found.append(
                {
                    "model": name,
                    "draws": draws,
                    "batch": batch,
                    "shared": one.value,
                    "shared_law": single + share / draws,
                    "printed_law": single + (draws - 1) / draws * share,
                    "fresh": other.value,
                    "fresh_law": single,
                    "error": max(one.error / one.value, other.error / other.value),
                }
            )
    return found


def objective(values: Tensor, draws: int, batch: int) -> Measured:
    """How the mean over so many draws and rows of losses [many, B] varies."""
    (found,) = varied(values[:, :batch].mean(1).view(-1, draws).mean(1, keepdim=True))
    return found


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    rows = found["numbers"]["rows"]
    batch = max(row["batch"] for row in rows)
    shown: list[Shown] = []
    for name in MODELS:
        own = [row for row in rows if row["model"] == name and row["batch"] == batch]
        draws = [row["draws"] for row in own]
        lines = [
            Line("shared weights", draws, [row["shared"] for row in own]),
            Line("weights for each row", draws, [row["fresh"] for row in own]),
            Line("as printed for shared ones", draws, [row["printed_law"] for row in own], dashed=True),
        ]
        last = own[-1]
        says = (
            f"With {draws[-1]} draws shared weights have {last['shared'] / last['fresh']:.3g} times the variance; the "
            f"printed form says {last['printed_law'] / last['fresh']:.3g}, for it does not fall with N."
        )
        title = {"linear": "A linear map", "net": "A small net"}[name]
        shown.append(Chart(f"{title}, {batch} rows", says, "N", "variance of U", lines, log_x=True, log_y=True))
    cells = [
        [
            row["model"],
            str(row["batch"]),
            str(row["draws"]),
            *(
                f"{row[one] / row[law]:.3f}"
                for one, law in (("shared", "shared_law"), ("shared", "printed_law"), ("fresh", "fresh_law"))
            ),
        ]
        for row in rows
    ]
    heads = (
        "model",
        "rows",
        "N",
        "shared, over the corrected law",
        "over the printed one",
        "for each row, over its law",
    )
    return [*shown, Table("Measured variance over what the laws say", heads, cells)]


ARTEFACT = Artefact(
    name="variational-optimisation/minibatch-variance",
    place=10,
    group="functions",
    title="The variance of the objective over a batch, with weights shared and with weights for each row",
    rows=("VO-26", "VO-27", "VO-28"),
    run=run,
    claims=(APART,),
    reference={
        "document": "shared weights: Var/N|B| + (N − 1)/N (|B| − 1)/|B| Cov, which does not vanish as N grows; weights "
        "for each row: Var/N|B|; nothing is measured"
    },
    left_open=(
        "the model: a linear map of four inputs with squared errors, and a net of four tanh units with three classes, "
        "on a fixed batch of 16 rows by chance",
        "what Var and Cov are of: the mean over rows, and over pairs of different rows, at the same weights",
        "the form of the second term: (|B| − 1)/N|B| Cov, for independent draws; the printed one is held against it",
    ),
    takes=("a second", "a minute"),
    show=show,
)
