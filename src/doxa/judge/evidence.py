"""Everything that a report shows of one belief, as plain JSON, computed once."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.contracts import Inputs
from doxa.data.rows import as_pair, count, tensors
from doxa.judge.metrics.calibration import reliability
from doxa.judge.metrics.labels import reading
from doxa.judge.metrics.regression import coverage
from doxa.judge.pruning import FRACTIONS, pruning_curve, relevance_histogram
from doxa.judge.recalibration import ends, interval
from doxa.judge.robustness import robustness
from doxa.judge.verdict import judge
from doxa.kernels import over_draws
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import like
from doxa.results import Result, stamp

PRUNED = 0.95  # the share of weights whose loss is told as a score: Blundell et al. (2015), table 2
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # of the attack's radius
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the central intervals
BAND = 0.9  # the level of the band over one input
GRID, POINTS = 200, 300  # of the band, and of the training rows drawn with it
BINS = 30  # of the entropies
UNSURE = 6  # inputs shown
DIGEST = 16  # characters that tell rows apart
DIGITS = 5  # that a drawn number needs; scores keep all of theirs


def evidence(
    belief: Belief,
    data: Any,
    *,
    name: str,
    samples: int = 50,
    seed: int = 0,
    out_of_distribution: Any = None,
    attack_radius: float | None = None,
    levels: Tensor | None = None,
    about: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    train: Any = None,
    truth: Any = None,
    refresh: Any = None,
    low: float = 0.0,
    high: float = 1.0,
    started: float | None = None,
) -> Result:
    """A result to write, compare and report: every score of `judge` on data (x [B, ·], y [B, ·]), and what to draw.

    Classification has a reliability table and, for images, the inputs it is least sure of; regression the coverage of
    its intervals and, with one input and one target, its band over `truth` (x, y) or the data. Both have a pruning
    curve, the skill at 95 % pruned as a score of its own, and the history of the fit. `attack_radius` adds the
    accuracy under FGSM up to it, inputs held inside [low, high]; `out_of_distribution` inputs add entropies; `levels`
    (`Chosen.levels`) move the intervals as they move those that are delivered. `about` the data says its name, classes,
    source and licence, and may say a `digest` of the rows, where one that does not depend on the belief's inputs is
    known; `train` (x, y) is drawn with the band; `started`, a reading of time.perf_counter, dates the seconds.
    """
    started = time.perf_counter() if started is None else started
    x, y = as_pair(data, like(belief.posterior), "data")
    judged = judge(belief, (x, y), samples, seed, out_of_distribution, levels=levels).as_dict()
    draws = belief.predict(x, samples, seed)
    y = belief.likelihood.check(draws.outputs[0], y)
    unseen = None if out_of_distribution is None else belief.predict(out_of_distribution, samples, seed)
    scores = {k: {**s, "over": "draws", "count": judged["samples"]} for k, s in judged["scores"].items()}
    result: Result = {
        "name": name,
        "data": _about(about or {}, belief, draws, x, y),
        "settings": dict(settings) if settings is not None else _settings(belief),
        "history": [{k: row[k] for k in ("nll", "kl", "validation_nll") if k in row} for row in belief.record.history],
        "scores": scores,
        "findings": judged["findings"],
    }
    if belief.likelihood.discrete:
        result |= _classification(draws, y, x, low, high)
    else:
        result |= _regression(belief, draws, y, x, samples, seed, train, truth, levels)
    result["entropy"] = _entropies(draws, y, unseen)
    if any(len(slot.shape) > 1 for slot in belief.layout.random_slots):
        curve = pruning_curve(belief, (x, y), (*FRACTIONS,), refresh=refresh, samples=samples, seed=seed)
        skill = "error" if belief.likelihood.discrete else "rmse"
        result["pruning"] = {"share": curve["fraction"], skill: curve[skill]}
        at = curve["fraction"].index(PRUNED)
        scores[f"{skill}_pruned_{100 * PRUNED:g}"] = _exact(curve[skill][at], judged["samples"])
    if _has_signal_to_noise(belief):
        edges, counts = relevance_histogram(belief)
        result["signal_to_noise"] = {"edges": edges, "count": np.sum(list(counts.values()), axis=0).tolist()}
    if attack_radius is not None:
        radii = [attack_radius * strength for strength in STRENGTHS]
        attacked = robustness(belief, (x, y), radii, samples=samples, seed=seed, low=low, high=high)
        if "accuracy" in attacked:
            clean = 1 - scores["error"]["value"]
            result["attack"] = {"radius": [0.0, *radii], "accuracy": [clean, *attacked["accuracy"]]}
            scores["accuracy_attacked"] = _exact(attacked["accuracy"][-1], judged["samples"])
    seeds = [belief.record.settings.get("seed", seed)]
    result["stamp"] = {k: v for k, v in stamp({}, seeds, started).items() if k != "settings"}
    return result


def _about(about: Mapping[str, Any], belief: Belief, draws: Draws, x: Inputs, y: Tensor) -> dict[str, Any]:
    said = {"name": "data", "digest": _digest(x, y, belief.likelihood.discrete), **about, "rows": count(x)}
    if not belief.likelihood.discrete:
        return {**said, "task": "regression"}
    classes = about.get("classes")
    if classes is None or isinstance(classes, int):
        axis = getattr(belief.likelihood, "class_axis", None)
        classes = range(draws.outputs.shape[axis] if axis is not None else 2)
    return {**said, "task": "classification", "classes": [str(c) for c in classes]}


def _digest(x: Inputs, y: Tensor, discrete: bool) -> str:
    """What tells rows from others: a quantity's targets, whatever columns a belief makes its inputs of; labels, which
    many rows share, only with their inputs."""
    parts = [y, *(part for _, part in tensors(x))] if discrete else [y]
    found = hashlib.sha256()
    for part in parts:
        exact = part.float() if part.dtype.is_floating_point else part.long()
        found.update(repr(tuple(part.shape)).encode())
        found.update(exact.contiguous().cpu().numpy().data)
    return found.hexdigest()[:DIGEST]


def _settings(belief: Belief) -> dict[str, Any]:
    """The settings of the fit in words, less what a reader has no use for."""
    kept = {k: v for k, v in belief.record.settings.items() if k not in ("data", "versions", "seed", "size", "steps")}
    said = {k: _words(v) for k, v in kept.items() if v is not None}
    return {**said, "random weights": belief.layout.random}


def _words(value: Any) -> Any:
    """A described object as a call: {"is": "Gaussian", "scale": 1.0} as gaussian(scale=1)."""
    if isinstance(value, Mapping) and "is" in value:
        given = {k: v for k, v in value.items() if k != "is" and v not in (None, [], {})}
        if value["is"] == "Noise":
            return str(given["name"])
        inside = ", ".join(f"{k}={_words(v)}" for k, v in given.items())
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(value["is"])).lower()
        return f"{name}({inside})"
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return f"({', '.join(str(_words(v)) for v in value)})"
    return value


def _exact(value: float, samples: int) -> dict[str, Any]:
    """A score whose Monte-Carlo error was not computed."""
    return {"value": value if math.isfinite(value) else None, "error": None, "over": "draws", "count": samples}


def _classification(draws: Draws, y: Tensor, x: Any, low: float, high: float) -> Result:
    read, labels = reading(draws.likelihood, draws.means, y)
    p = over_draws.mean(read(draws.means), draws.weights)  # [B, T, C]
    table = reliability(p.flatten(0, 1), labels.flatten())
    confidence, accuracy = (
        [v if math.isfinite(v) else None for v in column.tolist()] for column in (table.confidence, table.accuracy)
    )
    count = table.count.tolist()
    result: Result = {"reliability": {"confidence": confidence, "accuracy": accuracy, "count": count}}
    images = _images(x, low, high)
    if images is not None and p.shape[1] == 1:
        order = draws.entropy().argsort(descending=True)[:UNSURE].tolist()
        result["unsure"] = [
            {
                "image": [_rounded(line) for line in images[i].tolist()],
                "label": int(labels[i, 0]),
                "probabilities": _numbers(p[i, 0]),
            }
            for i in order
        ]
    return result


def _images(x: Any, low: float, high: float) -> Tensor | None:
    """Inputs that are images as numbers from 0 to 1, [B, H, W] if grey, [B, H, W, 3] if coloured; else None."""
    if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
        return None
    shown = ((x - low) / (high - low)).clamp(0, 1)
    if x.dim() == 3:
        return shown
    if x.dim() == 4 and x.shape[1] in (1, 3):
        return shown[:, 0] if x.shape[1] == 1 else shown.movedim(1, -1)
    return None


def _regression(
    belief: Belief,
    draws: Draws,
    y: Tensor,
    x: Any,
    samples: int,
    seed: int,
    train: Any,
    truth: Any,
    levels: Tensor | None,
) -> Result:
    covered = [float(coverage(y, *interval(draws, level, levels))) for level in LEVELS]
    result: Result = {"intervals": {"level": list(LEVELS), "coverage": covered}}
    if isinstance(x, Tensor) and x[0].numel() == 1 and draws.means[0, 0].numel() == 1:
        result["band"] = _band(belief, x, samples, seed, train, truth, levels)
    return result


def _band(
    belief: Belief, x: Tensor, samples: int, seed: int, train: Any, truth: Any, levels: Tensor | None
) -> dict[str, list[Any]]:
    shown = {"truth": truth, "train": train}
    pairs = {k: _column_pair(belief, pair) for k, pair in shown.items() if pair is not None}
    spanned = torch.cat([x.flatten(), *(inputs for inputs, _ in pairs.values())])
    grid = torch.linspace(float(spanned.min()), float(spanned.max()), GRID, dtype=x.dtype, device=x.device)
    draws = belief.predict(grid.reshape(-1, *x.shape[1:]), samples, seed)
    mean, noise = draws.mean.flatten(), draws.aleatoric.flatten()
    lower, upper = interval(draws, BAND, levels)
    below, above = torch.special.ndtri(torch.tensor(ends(BAND, levels), dtype=torch.float64)).tolist()
    columns = {
        "x": grid,
        "mean": mean,
        "lower": lower,
        "upper": upper,
        "aleatoric_lower": mean + below * noise,
        "aleatoric_upper": mean + above * noise,
    }
    for name, (inputs, targets) in pairs.items():
        some = slice(None, None, -(-len(inputs) // POINTS))
        columns |= {f"{name}_x": inputs[some], f"{name}_y": targets[some]}
    return {name: _numbers(values) for name, values in columns.items()}


def _column_pair(belief: Belief, pair: Any) -> tuple[Tensor, Tensor]:
    x, y = as_pair(pair, like(belief.posterior), "the rows drawn with the band")
    assert isinstance(x, Tensor)
    return x.flatten(), y.flatten()


def _entropies(draws: Draws, y: Tensor, unseen: Draws | None) -> dict[str, Any]:
    """How many rows have which entropy, in nats; from 0 to the largest there can be for labels."""
    found = [part.entropy().double().cpu().numpy() for part in (draws, unseen) if part is not None]
    if draws.likelihood.discrete:
        read, labels = reading(draws.likelihood, draws.means, y)
        span = (0.0, labels.shape[1] * math.log(read(draws.means[:1]).shape[-1]))
    else:
        span = (min(float(f.min()) for f in found), max(float(f.max()) for f in found))
    edges = np.histogram_bin_edges([], BINS, span)
    counts = [np.histogram(np.clip(f, edges[0], edges[-1]), edges)[0].tolist() for f in found]
    return {"edges": edges.tolist(), **dict(zip(("inside", "outside"), counts, strict=False))}


def _has_signal_to_noise(belief: Belief) -> bool:
    """Whether pruning ranks by |mean| / scale, and not by size alone as for points, particles and dropout."""
    for member in getattr(belief.posterior, "members", (belief.posterior,)):
        scale = member.scale
        ratio = (member.mean[: len(scale)].abs() / scale).nan_to_num(nan=0.0, posinf=math.inf)
        if not bool((scale > 0).any()) or not torch.allclose(member.relevance, ratio):
            return False
    return True


def _numbers(values: Tensor) -> list[float | None]:
    return _rounded(values.flatten().tolist())


def _rounded(values: list[Any]) -> list[Any]:
    """Numbers, or lists of them, to the digits that a drawing needs; NaN and infinities as None."""
    return [
        _rounded(v) if isinstance(v, list) else float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values
    ]
