"""Weights that all rows of a batch share tie their losses together; weights of its own for every row do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.perturbations.population import make_population
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.functions.estimates import MeasuredVariance, column_variances

DRAW_COUNTS, BATCH_SIZES, ROWS = (1, 4, 16, 64), (1, 4, 16), 16
SCALE, TOLERANCE = 0.5, 0.05
BLOCK_SIZE = 1 << 14  # weights of nets at a time
FRESH_WEIGHTS_LAW = Claim(
    "C-VO-8",
    "Weights of its own for every row take the covariance of rows out of the objective's variance",
    f"variance of the objective within {100 * TOLERANCE:g} % of Var/N|B| with weights for each row, and of "
    f"Var/N|B| + (|B| − 1)/N|B| Cov with shared ones, for every N and |B|; and not of the printed form "
    "Var/N|B| + (N − 1)/N (|B| − 1)/|B| Cov",
)


@dataclass(frozen=True)
class LossModel:
    """Losses of some rows [n, b] for weights [n, P], around a mean."""

    losses: Callable[[Tensor, slice], Tensor]
    mean: Tensor

    @property
    def distribution(self) -> SearchDistribution:
        return SearchDistribution(self.mean, self.mean.new_tensor([SCALE]), (len(self.mean),))


def linear_model() -> LossModel:
    """Four inputs, one output and squared errors."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 4, dtype=torch.float64, generator=generator)
    y = x.sum(1) + 0.3 * torch.randn(ROWS, dtype=torch.float64, generator=generator)
    return LossModel(lambda w, rows: (w @ x[rows].T - y[rows]).square(), torch.full((4,), 0.8, dtype=torch.float64))


def net_model() -> LossModel:
    """Two inputs, four tanh units and three classes by which third of the circle a row lies in; cross-entropy."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(ROWS, 2, dtype=torch.float64, generator=generator)
    turns = torch.atan2(x[:, 1], x[:, 0]) / (2 * torch.pi) + 0.5
    y = (3 * turns).long().clamp_max(2)
    sizes = (8, 4, 12, 3)

    def losses(w: Tensor, rows: slice) -> Tensor:
        hidden_weight, hidden_bias, output_weight, output_bias = w.split(sizes, 1)
        hidden = torch.tanh(x[rows] @ hidden_weight.view(-1, 4, 2).mT + hidden_bias[:, None])
        out = hidden @ output_weight.view(-1, 3, 4).mT + output_bias[:, None]
        return out.logsumexp(2) - out.gather(2, y[rows].expand(len(w), -1)[..., None])[..., 0]

    return LossModel(losses, torch.randn(sum(sizes), dtype=torch.float64, generator=generator))


MODELS = {"linear": linear_model, "net": net_model}


def draw_losses(model: LossModel, count: int, seed: int, rows: slice = slice(None)) -> Tensor:
    """Losses of some rows for so many weights, from the noise of the search [many, b]."""
    draws, blocks = make_population(2, False, (seed, "minibatch")), []
    weight_count = len(model.mean)
    for generation, low in enumerate(range(0, count, BLOCK_SIZE)):
        block_count = min(BLOCK_SIZE, count - low)
        epsilon = draws.noise(generation, slice(0, 1), model.mean.new_empty(block_count * weight_count)).view(
            block_count, weight_count
        )
        blocks.append(model.losses(draws.points(model.distribution, epsilon), rows))
    return torch.cat(blocks)


def run(options: ReplicationOptions) -> Numbers:
    weight_count = int(options.by_size(1 << 14, 1 << 20))
    rows = [row for name, build_model in MODELS.items() for row in measure_variances(name, build_model(), weight_count)]
    fresh_error = max(abs(row["fresh"] / row["fresh_law"] - 1) for row in rows)
    shared_error = max(abs(row["shared"] / row["shared_law"] - 1) for row in rows)
    printed_error = max(abs(row["shared"] / row["printed_law"] - 1) for row in rows)
    return {
        "settings": {"scale": SCALE, "draws": DRAW_COUNTS, "batches": BATCH_SIZES, "weights": weight_count},
        "seeds": [0],
        "rows": rows,
        "verdicts": [
            FRESH_WEIGHTS_LAW.judge(
                fresh_error <= TOLERANCE and shared_error <= TOLERANCE < printed_error,
                {
                    "weights for each row, furthest from their law": fresh_error,
                    "shared ones from the corrected law": shared_error,
                    "from the printed one": printed_error,
                },
                max(row["error"] for row in rows),
                [0],
                f"a linear map and a small net, σ = {SCALE:g}, {weight_count:,} weights in all; Var and Cov from "
                "others; the "
                "error is that of a variance, as a share of it",
            )
        ],
    }


def measure_variances(name: str, model: LossModel, weight_count: int) -> list[dict[str, Any]]:
    """Variances of (1/N|B|) Σ f_b(w) with shared weights and with weights for each row, and what the laws say."""
    covariance_matrix = torch.cov(draw_losses(model, weight_count, 0).T)
    shared = draw_losses(model, weight_count, 1)
    fresh = torch.cat([draw_losses(model, weight_count, 2 + row, slice(row, row + 1)) for row in range(ROWS)], 1)
    variance_rows = []
    for batch in BATCH_SIZES:
        batch_covariance = covariance_matrix[:batch, :batch]
        variance = float(batch_covariance.diag().mean())
        covariance = (
            float((batch_covariance.sum() - batch_covariance.diag().sum()) / (batch * (batch - 1)))
            if batch > 1
            else 0.0
        )
        for draws in DRAW_COUNTS:
            shared_variance, fresh_variance = (objective_variance(values, draws, batch) for values in (shared, fresh))
            independent_term, covariance_term = variance / (draws * batch), (batch - 1) / batch * covariance
            variance_rows.append(
                {
                    "model": name,
                    "draws": draws,
                    "batch": batch,
                    "shared": shared_variance.value,
                    "shared_law": independent_term + covariance_term / draws,
                    "printed_law": independent_term + (draws - 1) / draws * covariance_term,
                    "fresh": fresh_variance.value,
                    "fresh_law": independent_term,
                    "error": max(
                        shared_variance.error / shared_variance.value, fresh_variance.error / fresh_variance.value
                    ),
                }
            )
    return variance_rows


def objective_variance(values: Tensor, draws: int, batch: int) -> MeasuredVariance:
    """How the mean over so many draws and rows of losses [many, B] varies."""
    (measured,) = column_variances(values[:, :batch].mean(1).view(-1, draws).mean(1, keepdim=True))
    return measured


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = result["numbers"]["rows"]
    batch = max(row["batch"] for row in rows)
    elements: list[PageElement] = []
    for name in MODELS:
        model_rows = [row for row in rows if row["model"] == name and row["batch"] == batch]
        draws = [row["draws"] for row in model_rows]
        lines = [
            ChartLine("shared weights", draws, [row["shared"] for row in model_rows]),
            ChartLine("weights for each row", draws, [row["fresh"] for row in model_rows]),
            ChartLine("as printed for shared ones", draws, [row["printed_law"] for row in model_rows], dashed=True),
        ]
        last = model_rows[-1]
        caption = (
            f"With {draws[-1]} draws shared weights have {last['shared'] / last['fresh']:.3g} times the variance; the "
            f"printed form says {last['printed_law'] / last['fresh']:.3g}, for it does not fall with N."
        )
        title = {"linear": "A linear map", "net": "A small net"}[name]
        elements.append(Chart(f"{title}, {batch} rows", caption, "N", "variance of U", lines, log_x=True, log_y=True))
    cells = [
        [
            row["model"],
            str(row["batch"]),
            str(row["draws"]),
            *(
                f"{row[measured_key] / row[law_key]:.3f}"
                for measured_key, law_key in (
                    ("shared", "shared_law"),
                    ("shared", "printed_law"),
                    ("fresh", "fresh_law"),
                )
            ),
        ]
        for row in rows
    ]
    headers = (
        "model",
        "rows",
        "N",
        "shared, over the corrected law",
        "over the printed one",
        "for each row, over its law",
    )
    return [*elements, ResultTable("Measured variance over what the laws say", headers, cells)]


ARTEFACT = Artefact(
    name="variational-optimisation/minibatch-variance",
    order=10,
    group="functions",
    title="The variance of the objective over a batch, with weights shared and with weights for each row",
    requirements=("VO-26", "VO-27", "VO-28"),
    run=run,
    claims=(FRESH_WEIGHTS_LAW,),
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
    durations=("a second", "a minute"),
    show=show,
)
