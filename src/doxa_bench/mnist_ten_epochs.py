"""How good is a belief about MNIST after ten epochs on a CPU?

784-400-400-10, local noise, prior N(0, 1), batch 128, Adam with a cosine rate, 50 draws, three seeds: at KL weight 1,
and at the weight with the lowest mean validation NLL (10,000 rows of the training set, never used for learning). The
test set is read once for each reported row. Rounds are seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import torch

import doxa
from doxa_bench.mnist_data import VALIDATION, mnist_splits
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, with_error

WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01)
EPOCHS, BATCH, RATE, SCALE, DRAWS = 10, 128, 1e-3, 0.01, 50
SEEDS = 3


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    seeds = settings.round_count(1 if settings.quick else SEEDS)
    train, validation, test = mnist_splits()
    result: dict[str, Any] = {
        "settings": {
            "net": "784-400-400-10",
            "noise": "local",
            "prior": "gaussian(1.0)",
            "epochs": EPOCHS,
            "batch": BATCH,
            "lr": f"cosine({RATE})",
            "start_scale": SCALE,
            "draws": DRAWS,
            "training_rows": len(train[0]),
            "validation_rows": VALIDATION,
            "weights_tried": list(WEIGHTS),
        },
        "seeds": range(seeds),
        "validation_nll": {},
        "rows": {},
    }
    beliefs: dict[float, list[doxa.Belief]] = {}
    validation_nll: dict[float, float] = result["validation_nll"]
    for weight in WEIGHTS:
        beliefs[weight] = []
        for seed in range(seeds):
            settings.progress(f"KL weight {weight:g}, seed {seed}")
            beliefs[weight].append(fit_belief(weight, seed, train, settings.device))
        validation_nll[weight] = statistics.mean(
            doxa.judge(b, validation, samples=DRAWS)["nll"] for b in beliefs[weight]
        )
        settings.say(f"KL weight {weight:g}: validation NLL {validation_nll[weight]:.4f}")
        yield result
    best = min(validation_nll, key=lambda w: validation_nll[w])
    for name, weight in (("KL weight 1", 1.0), (f"chosen on validation NLL: KL weight {best:g}", best)):
        rows = [score_belief(b, test) for b in beliefs[weight]]
        result["rows"][name] = {"weight": weight, "seeds": rows, "summary": summarize(rows)}
        yield result


def fit_belief(weight: float, seed: int, train: Any, device: str) -> doxa.Belief:
    torch.manual_seed(seed)
    learner = doxa.learners.variational(
        doxa.priors.gaussian(1.0),
        doxa.noise.local,
        posterior=doxa.posteriors.mean_field(scale=SCALE),
        kl_weight=doxa.kl_weights.tempered(weight),
    )
    return doxa.fit(
        doxa.nets.mlp(784, (400, 400), 10),
        train,
        learner=learner,
        likelihood=doxa.likelihoods.categorical(),
        epochs=EPOCHS,
        batch_size=BATCH,
        lr=doxa.rates.cosine(RATE),
        seed=seed,
        device=device,
        progress=False,
    )


def score_belief(belief: doxa.Belief, test: Any) -> dict[str, float]:
    scores = doxa.judge(belief, test, samples=DRAWS)
    return {
        "error": 100 * scores["error"],
        "nll": scores["nll"],
        "ece": 100 * scores["ece"],
        "brier": scores["brier"],
        "kl": belief.record.history[-1]["kl"],
        "median_scale": float(belief.posterior.scale.median()),
    }


def summarize(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        k: {
            "mean": statistics.mean(r[k] for r in rows),
            "se": statistics.stdev(r[k] for r in rows) / math.sqrt(len(rows)) if len(rows) > 1 else 0.0,
        }
        for k in rows[0]
    }


def show(result: dict[str, Any]) -> list[BenchTable]:
    validation_nll = result["validation_nll"]
    best = min(validation_nll, key=validation_nll.get, default=None)
    rows = [(f"{float(w):g}", f"{nll:.4f}{' (lowest)' if w == best else ''}") for w, nll in validation_nll.items()]
    chosen = BenchTable("The KL weight was chosen by the NLL of validation rows", ("KL weight", "validation NLL"), rows)
    columns = {"error": "error, %", "nll": "NLL", "ece": "ECE, %", "brier": "Brier"}
    score_rows: list[tuple[str, ...]] = []
    for weight_result in result["rows"].values():
        summary = weight_result["summary"]
        chosen_mark = " (chosen)" if best is not None and weight_result["weight"] == float(best) else ""
        scale = f"{summary['median_scale']['mean']:.3f}"
        score_rows.append(
            (f"{weight_result['weight']:g}{chosen_mark}", *(with_error(summary[column]) for column in columns), scale)
        )
    headers = ("KL weight", *columns.values(), "median scale")
    return [chosen, BenchTable("Test rows, ± standard error over seeds", headers, score_rows)]
