"""Are the estimators' defaults good? Untouched, on data they were not made for.

Regression: five of the standard UCI sets, the first five of their published splits, beside the log-likelihoods that
Hernández-Lobato & Adams (2015) published for probabilistic backpropagation. Classification: three sets, five-fold
cross-validation three times over, beside scikit-learn's MLPClassifier on the same scaled inputs; the calibration error
is that of all rows together, since a fold of 70 rows would show one of 5 % by chance alone.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
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
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, with_error

PBP = {"bostonHousing": -2.57, "concrete": -3.16, "kin8nm": 0.90, "power-plant": -2.84, "wine-quality-red": -0.97}
SPLITS = range(5)
FOLDS = range(15)  # of three shuffles
WORKERS = 2
QUICK = 2  # splits or folds of each set, for a look


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    splits, folds = (list(indices)[: QUICK if settings.quick else None] for indices in (SPLITS, FOLDS))
    jobs = [("regression", name, split) for name in PBP for split in splits if settings.wants(name)]
    jobs += [("classification", name, fold) for name in CLASSIFICATION for fold in folds if settings.wants(name)]
    result: dict[str, Any] = {
        "settings": {"splits": splits, "folds": folds, "workers": WORKERS, "threads": 1, "pbp": PBP},
        "seeds": folds,
        "sets": {},
        "rows": [],
    }
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    expected = Counter(name for _, name, _ in jobs)
    with ProcessPoolExecutor(WORKERS) as pool:
        for row in pool.map(run_job, jobs):
            name = row["set"]
            groups[name].append(row)
            result["rows"].append({key: value for key, value in row.items() if not isinstance(value, list)})
            settings.progress(f"{name}: {len(groups[name])} of {expected[name]}")
            if len(groups[name]) == expected[name]:
                result["sets"][name] = summarize(groups[name])
                settings.say(f"{name}: " + ", ".join(f"{k} {v['mean']:.4g}" for k, v in result["sets"][name].items()))
                yield result


def ionosphere() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    dataset = data.ionosphere()
    return dataset.x, dataset.y


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
    row: dict[str, Any] = {"set": name, "seconds": seconds, "kl_weight": model.kl_weight_, "labels": labels.tolist()}
    for prefix, p in (("", model.predict_proba(x[test])), ("mlp_", rival.predict_proba(x[test]))):
        probabilities = torch.as_tensor(p)
        true_class_probabilities = probabilities.clamp_min(1e-12)[torch.arange(len(labels)), labels]
        row[f"{prefix}nll"] = -float(true_class_probabilities.log().mean())
        row[f"{prefix}error"] = float((probabilities.argmax(1) != labels).double().mean())
        row[f"{prefix}probabilities"] = p.tolist()
    row["nll_below_mlp"] = row["mlp_nll"] - row["nll"]
    return row


def run_job(job: tuple[str, str, int]) -> dict[str, Any]:
    torch.set_num_threads(1)
    kind, name, split = job
    return {"regression": regression, "classification": classification}[kind](name, split)


def summarize(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean over splits of every number, and its standard error."""
    summary = {}
    for key, value in rows[0].items():
        if isinstance(value, float):
            values = np.array([row[key] for row in rows])
            summary[key] = {"mean": float(values.mean()), "se": float(values.std(ddof=1) / np.sqrt(len(values)))}
    if "labels" in rows[0]:
        labels = torch.tensor([label for row in rows for label in row["labels"]])
        for prefix in ("", "mlp_"):
            pooled = torch.tensor([p for row in rows for p in row[f"{prefix}probabilities"]])
            summary[f"{prefix}ece"] = {"mean": float(ece(pooled, labels)), "se": 0.0}
    return summary


def show(result: dict[str, Any]) -> list[BenchTable]:
    published, sets = result["settings"]["pbp"], result["sets"]
    scores: tuple[str | None, ...] = ("log_likelihood", None, "rmse", "coverage_90", "seconds")
    rows = [
        (name, *(with_error(sets[name][s]) if s else f"{published[name]:g}" for s in scores))
        for name in published
        if name in sets
    ]
    headers = ("data", "log-likelihood", "PBP, published", "RMSE", "90 % coverage", "fit, s")
    regression = BenchTable("Regression, beside probabilistic backpropagation", headers, rows)
    scores = ("nll", "mlp_nll", "error", "mlp_error", "ece", "mlp_ece")
    rows = [(name, *(with_error(sets[name][s]) for s in scores if s)) for name in sets if name not in published]
    columns = ("data", "NLL", "MLPClassifier's", "error", "MLPClassifier's", "ECE", "MLPClassifier's")
    return [regression, BenchTable("Classification, beside scikit-learn's MLPClassifier", columns, rows)]
