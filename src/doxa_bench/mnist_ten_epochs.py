"""How good is a belief about MNIST after ten epochs on a CPU?

784-400-400-10, local noise, prior N(0, 1), batch 128, Adam with a cosine rate, 50 draws, three seeds: at KL weight 1,
and at the weight with the lowest mean validation NLL (10,000 rows of the training set, never used for learning). The
test set is read once for each reported row.

    DOXA_DATA=... python -m doxa_bench.mnist_ten_epochs [--seeds 3] [--out results/bench/mnist_ten_epochs.json]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import doxa
from doxa.data import mnist
from doxa.results import stamp

WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01)
EPOCHS, BATCH, RATE, SCALE, DRAWS = 10, 128, 1e-3, 0.01, 50
VALIDATION = 10_000


def learn(weight: float, seed: int, train: Any, device: str) -> doxa.Belief:
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
    )


def row(belief: doxa.Belief, test: Any) -> dict[str, float]:
    found = doxa.judge(belief, test, samples=DRAWS)
    return {
        "error": 100 * found["error"],
        "nll": found["nll"],
        "ece": 100 * found["ece"],
        "brier": found["brier"],
        "kl": belief.record.history[-1]["kl"],
        "median_scale": float(belief.posterior.scale.median()),
    }


def summary(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        k: {
            "mean": statistics.mean(r[k] for r in rows),
            "se": statistics.stdev(r[k] for r in rows) / math.sqrt(len(rows)) if len(rows) > 1 else 0.0,
        }
        for k in rows[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    start = time.perf_counter()
    digits = mnist()
    x, x_test = (torch.as_tensor(part).flatten(1) for part in digits.images())
    y, y_test = torch.as_tensor(digits.y_train), torch.as_tensor(digits.y_test)
    train, validation = (x[VALIDATION:], y[VALIDATION:]), (x[:VALIDATION], y[:VALIDATION])
    beliefs: dict[float, list[doxa.Belief]] = {}
    chosen_by: dict[float, float] = {}
    for weight in WEIGHTS:
        beliefs[weight] = [learn(weight, seed, train, args.device) for seed in range(args.seeds)]
        chosen_by[weight] = statistics.mean(doxa.judge(b, validation, samples=DRAWS)["nll"] for b in beliefs[weight])
        print(
            f"KL weight {weight:<5g} validation NLL {chosen_by[weight]:.4f}  {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    best = min(chosen_by, key=lambda w: chosen_by[w])
    found: dict[str, dict[str, Any]] = {}
    for name, weight in (("KL weight 1", 1.0), (f"chosen on validation NLL: KL weight {best:g}", best)):
        rows = [row(b, (x_test, y_test)) for b in beliefs[weight]]
        found[name] = {"weight": weight, "seeds": rows, "summary": summary(rows)}
        words = "  ".join(f"{k} {v['mean']:.4g} ± {v['se']:.2g}" for k, v in found[name]["summary"].items())
        print(f"{name}: {words}", flush=True)
    if args.out:
        settings = {
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
        }
        result = {**stamp(settings, range(args.seeds), start), "validation_nll": chosen_by, "rows": found}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
