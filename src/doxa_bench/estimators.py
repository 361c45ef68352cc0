"""Are the estimators' defaults good? Untouched, on data they were not made for.

Regression: five of the standard UCI sets, the first five of their published splits, beside the log-likelihoods that
Hernández-Lobato & Adams (2015) published for probabilistic backpropagation. Classification: three sets, five-fold
cross-validation three times over, beside scikit-learn's MLPClassifier on the same scaled inputs; the calibration error
is that of all rows together, since a fold of 70 rows would show one of 5 % by chance alone.

    DOXA_DATA=… python -m doxa_bench.estimators [--workers 2] [--out results/bench/estimators.json]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from doxa import data
from doxa.estimators import BayesianClassifier, BayesianRegressor
from doxa.judge import ece
from doxa.results import stamp

PBP = {"bostonHousing": -2.57, "concrete": -3.16, "kin8nm": 0.90, "power-plant": -2.84, "wine-quality-red": -0.97}
SPLITS = range(5)
FOLDS = range(15)  # of three shuffles


def ionosphere() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    found = data.ionosphere()
    return found.x, found.y


CLASSIFICATION: dict[str, Callable[[], Any]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "ionosphere": ionosphere,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
}


def regression(name: str, split: int) -> dict[str, Any]:
    (x, y), (x_test, y_test) = data.uci_regression(name).split(split)
    start = time.perf_counter()
    model = BayesianRegressor(random_state=split).fit(x, y)
    seconds = time.perf_counter() - start
    lower, upper = model.predict_interval(x_test, 0.9)
    return {
        "set": name,
        "log_likelihood": float(model.log_density(x_test, y_test).mean()),
        "rmse": float(np.sqrt(np.mean((model.predict(x_test) - y_test) ** 2))),
        "coverage_90": float(np.mean((lower <= y_test) & (y_test <= upper))),
        "kl_weight": model.kl_weight_,
        "seconds": seconds,
    }


def classification(name: str, split: int) -> dict[str, Any]:
    x, y = CLASSIFICATION[name]()
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=split // 5).split(x, y))[split % 5]
    start = time.perf_counter()
    model = BayesianClassifier(random_state=split).fit(x[train], y[train])
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival = make_pipeline(StandardScaler(), MLPClassifier(random_state=split)).fit(x[train], y[train])
    labels = torch.as_tensor(np.searchsorted(model.classes_, y[test]))
    found: dict[str, Any] = {"set": name, "seconds": seconds, "kl_weight": model.kl_weight_, "labels": labels.tolist()}
    for prefix, p in (("", model.predict_proba(x[test])), ("mlp_", rival.predict_proba(x[test]))):
        probabilities = torch.as_tensor(p)
        chosen = probabilities.clamp_min(1e-12)[torch.arange(len(labels)), labels]
        found[f"{prefix}nll"] = -float(chosen.log().mean())
        found[f"{prefix}error"] = float((probabilities.argmax(1) != labels).double().mean())
        found[f"{prefix}probabilities"] = p.tolist()
    found["nll_below_mlp"] = found["mlp_nll"] - found["nll"]
    return found


def one(job: tuple[str, str, int]) -> dict[str, Any]:
    torch.set_num_threads(1)
    kind, name, split = job
    return {"regression": regression, "classification": classification}[kind](name, split)


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean over splits of every number, and its standard error."""
    found = {}
    for key, value in rows[0].items():
        if isinstance(value, float):
            values = np.array([row[key] for row in rows])
            found[key] = {"mean": float(values.mean()), "se": float(values.std(ddof=1) / np.sqrt(len(values)))}
    if "labels" in rows[0]:
        labels = torch.tensor([label for row in rows for label in row["labels"]])
        for prefix in ("", "mlp_"):
            pooled = torch.tensor([p for row in rows for p in row[f"{prefix}probabilities"]])
            found[f"{prefix}ece"] = {"mean": float(ece(pooled, labels)), "se": 0.0}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    start = time.perf_counter()
    jobs = [("regression", n, s) for n in PBP for s in SPLITS]
    jobs += [("classification", n, s) for n in CLASSIFICATION for s in FOLDS]
    with ProcessPoolExecutor(args.workers) as pool:
        rows = list(pool.map(one, jobs))
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["set"]].append(row)
    results = {name: summary(found) for name, found in groups.items()}
    for name, found in results.items():
        words = [f"{k} {v['mean']:.4g} ± {v['se']:.2g}" for k, v in found.items()]
        print(f"{name:18s} " + "  ".join(words) + (f"  (PBP {PBP[name]})" if name in PBP else ""))
    if args.out:
        settings = {"splits": list(SPLITS), "folds": list(FOLDS), "workers": args.workers, "threads": 1, "pbp": PBP}
        short = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in rows]
        content = {**stamp(settings, list(FOLDS), start), "sets": results, "rows": short}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
