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
from doxa.data.rows import as_pair, named_tensors, row_count
from doxa.judge.metrics.calibration import reliability
from doxa.judge.metrics.labels import probability_function
from doxa.judge.metrics.regression import coverage
from doxa.judge.pruning import FRACTIONS, pruning_curve, relevance_histogram
from doxa.judge.recalibration import interval, interval_levels
from doxa.judge.robustness import robustness
from doxa.judge.verdict import judge
from doxa.likelihoods import over_draws
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import prototype_of
from doxa.results import Result, stamp

PRUNED_SHARE = 0.95  # the share of weights whose loss is told as a score: Blundell et al. (2015), table 2
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # of the attack's radius
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the central intervals
BAND = 0.9  # the level of the band over one input
GRID, POINTS = 200, 300  # of the band, and of the training rows drawn with it
ENTROPY_BINS = 30  # of the entropies
UNSURE_INPUTS = 6  # inputs shown
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
    (`ChosenBelief.levels`) move the intervals as they move those that are delivered. `about` the data says its name,
    classes, source and licence, and may say a `digest` of the rows, where one that does not depend on the belief's
    inputs is known; `train` (x, y) is drawn with the band; `started`, a reading of time.perf_counter, dates the
    seconds.
    """
    started = time.perf_counter() if started is None else started
    x, y = as_pair(data, prototype_of(belief.posterior), "data")
    judgement = judge(belief, (x, y), samples, seed, out_of_distribution, levels=levels).as_dict()
    draws = belief.predict(x, samples, seed)
    y = belief.likelihood.check(draws.outputs[0], y)
    ood_draws = None if out_of_distribution is None else belief.predict(out_of_distribution, samples, seed)
    scores = {k: {**s, "over": "draws", "count": judgement["samples"]} for k, s in judgement["scores"].items()}
    result: Result = {
        "name": name,
        "data": _describe_data(about or {}, belief, draws, x, y),
        "settings": dict(settings) if settings is not None else _fit_settings(belief),
        "history": [{k: row[k] for k in ("nll", "kl", "validation_nll") if k in row} for row in belief.record.history],
        "scores": scores,
        "findings": judgement["findings"],
    }
    if belief.likelihood.discrete:
        result |= _classification_sections(draws, y, x, low, high)
    else:
        result |= _regression_sections(belief, draws, y, x, samples, seed, train, truth, levels)
    result["entropy"] = _entropy_histogram(draws, y, ood_draws)
    if any(len(slot.shape) > 1 for slot in belief.layout.random_slots):
        curve = pruning_curve(belief, (x, y), (*FRACTIONS,), refresh=refresh, samples=samples, seed=seed)
        skill = "error" if belief.likelihood.discrete else "rmse"
        result["pruning"] = {"share": curve["fraction"], skill: curve[skill]}
        pruned_index = curve["fraction"].index(PRUNED_SHARE)
        scores[f"{skill}_pruned_{100 * PRUNED_SHARE:g}"] = _score_without_error(
            curve[skill][pruned_index], judgement["samples"]
        )
    if _has_signal_to_noise(belief):
        edges, counts = relevance_histogram(belief)
        result["signal_to_noise"] = {"edges": edges, "count": np.sum(list(counts.values()), axis=0).tolist()}
    if attack_radius is not None:
        radii = [attack_radius * strength for strength in STRENGTHS]
        skill_by_radius = robustness(belief, (x, y), radii, samples=samples, seed=seed, low=low, high=high)
        if "accuracy" in skill_by_radius:
            clean = 1 - scores["error"]["value"]
            result["attack"] = {"radius": [0.0, *radii], "accuracy": [clean, *skill_by_radius["accuracy"]]}
            scores["accuracy_attacked"] = _score_without_error(skill_by_radius["accuracy"][-1], judgement["samples"])
    seeds = [belief.record.settings.get("seed", seed)]
    result["stamp"] = {k: v for k, v in stamp({}, seeds, started).items() if k != "settings"}
    return result


def _describe_data(about: Mapping[str, Any], belief: Belief, draws: Draws, x: Inputs, y: Tensor) -> dict[str, Any]:
    description = {"name": "data", "digest": _digest(x, y, belief.likelihood.discrete), **about, "rows": row_count(x)}
    if not belief.likelihood.discrete:
        return {**description, "task": "regression"}
    classes = about.get("classes")
    if classes is None or isinstance(classes, int):
        axis = getattr(belief.likelihood, "class_axis", None)
        classes = range(draws.outputs.shape[axis] if axis is not None else 2)
    return {**description, "task": "classification", "classes": [str(c) for c in classes]}


def _digest(x: Inputs, y: Tensor, discrete: bool) -> str:
    """What tells rows from others: a quantity's targets, whatever columns a belief makes its inputs of; labels, which
    many rows share, only with their inputs."""
    parts = [y, *(part for _, part in named_tensors(x))] if discrete else [y]
    digest = hashlib.sha256()
    for part in parts:
        widened = part.float() if part.dtype.is_floating_point else part.long()
        digest.update(repr(tuple(part.shape)).encode())
        digest.update(widened.contiguous().cpu().numpy().data)
    return digest.hexdigest()[:DIGEST]


def _fit_settings(belief: Belief) -> dict[str, Any]:
    """The settings of the fit in words, less what a reader has no use for."""
    relevant = {
        k: v for k, v in belief.record.settings.items() if k not in ("data", "versions", "seed", "size", "steps")
    }
    settings = {k: _as_call(v) for k, v in relevant.items() if v is not None}
    return {**settings, "random weights": belief.layout.random}


def _as_call(value: Any) -> Any:
    """A described object as a call: {"is": "Gaussian", "scale": 1.0} as gaussian(scale=1)."""
    if isinstance(value, Mapping) and "is" in value:
        arguments = {k: v for k, v in value.items() if k != "is" and v not in (None, [], {})}
        if value["is"] == "Noise":
            return str(arguments["name"])
        arguments_text = ", ".join(f"{k}={_as_call(v)}" for k, v in arguments.items())
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(value["is"])).lower()
        return f"{name}({arguments_text})"
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return f"({', '.join(str(_as_call(v)) for v in value)})"
    return value


def _score_without_error(value: float, samples: int) -> dict[str, Any]:
    """A score whose Monte-Carlo error was not computed."""
    return {"value": value if math.isfinite(value) else None, "error": None, "over": "draws", "count": samples}


def _classification_sections(draws: Draws, y: Tensor, x: Any, low: float, high: float) -> Result:
    to_probabilities, labels = probability_function(draws.likelihood, draws.means, y)
    p = over_draws.mean(to_probabilities(draws.means), draws.weights)  # [B, T, C]
    reliability_table = reliability(p.flatten(0, 1), labels.flatten())
    confidence, accuracy = (
        [v if math.isfinite(v) else None for v in column.tolist()]
        for column in (reliability_table.confidence, reliability_table.accuracy)
    )
    count = reliability_table.count.tolist()
    result: Result = {"reliability": {"confidence": confidence, "accuracy": accuracy, "count": count}}
    images = _images(x, low, high)
    if images is not None and p.shape[1] == 1:
        order = draws.entropy().argsort(descending=True)[:UNSURE_INPUTS].tolist()
        result["unsure"] = [
            {
                "image": [_round_nested(line) for line in images[i].tolist()],
                "label": int(labels[i, 0]),
                "probabilities": _rounded_list(p[i, 0]),
            }
            for i in order
        ]
    return result


def _images(x: Any, low: float, high: float) -> Tensor | None:
    """Inputs that are images as numbers from 0 to 1, [B, H, W] if grey, [B, H, W, 3] if coloured; else None."""
    if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
        return None
    scaled = ((x - low) / (high - low)).clamp(0, 1)
    if x.dim() == 3:
        return scaled
    if x.dim() == 4 and x.shape[1] in (1, 3):
        return scaled[:, 0] if x.shape[1] == 1 else scaled.movedim(1, -1)
    return None


def _regression_sections(
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
    coverages = [float(coverage(y, *interval(draws, level, levels))) for level in LEVELS]
    result: Result = {"intervals": {"level": list(LEVELS), "coverage": coverages}}
    if isinstance(x, Tensor) and x[0].numel() == 1 and draws.means[0, 0].numel() == 1:
        result["band"] = _band(belief, x, samples, seed, train, truth, levels)
    return result


def _band(
    belief: Belief, x: Tensor, samples: int, seed: int, train: Any, truth: Any, levels: Tensor | None
) -> dict[str, list[Any]]:
    overlays = {"truth": truth, "train": train}
    pairs = {k: _column_pair(belief, pair) for k, pair in overlays.items() if pair is not None}
    all_x = torch.cat([x.flatten(), *(inputs for inputs, _ in pairs.values())])
    grid = torch.linspace(float(all_x.min()), float(all_x.max()), GRID, dtype=x.dtype, device=x.device)
    draws = belief.predict(grid.reshape(-1, *x.shape[1:]), samples, seed)
    mean, noise = draws.mean.flatten(), draws.aleatoric.flatten()
    lower, upper = interval(draws, BAND, levels)
    lower_z, upper_z = torch.special.ndtri(torch.tensor(interval_levels(BAND, levels), dtype=torch.float64)).tolist()
    columns = {
        "x": grid,
        "mean": mean,
        "lower": lower,
        "upper": upper,
        "aleatoric_lower": mean + lower_z * noise,
        "aleatoric_upper": mean + upper_z * noise,
    }
    for name, (inputs, targets) in pairs.items():
        every_nth = slice(None, None, -(-len(inputs) // POINTS))
        columns |= {f"{name}_x": inputs[every_nth], f"{name}_y": targets[every_nth]}
    return {name: _rounded_list(values) for name, values in columns.items()}


def _column_pair(belief: Belief, pair: Any) -> tuple[Tensor, Tensor]:
    x, y = as_pair(pair, prototype_of(belief.posterior), "the rows drawn with the band")
    assert isinstance(x, Tensor)
    return x.flatten(), y.flatten()


def _entropy_histogram(draws: Draws, y: Tensor, ood_draws: Draws | None) -> dict[str, Any]:
    """How many rows have which entropy, in nats; from 0 to the largest there can be for labels."""
    entropies = [part.entropy().double().cpu().numpy() for part in (draws, ood_draws) if part is not None]
    if draws.likelihood.discrete:
        to_probabilities, labels = probability_function(draws.likelihood, draws.means, y)
        limits = (0.0, labels.shape[1] * math.log(to_probabilities(draws.means[:1]).shape[-1]))
    else:
        limits = (min(float(values.min()) for values in entropies), max(float(values.max()) for values in entropies))
    edges = np.histogram_bin_edges([], ENTROPY_BINS, limits)
    counts = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist() for values in entropies]
    return {"edges": edges.tolist(), **dict(zip(("inside", "outside"), counts, strict=False))}


def _has_signal_to_noise(belief: Belief) -> bool:
    """Whether pruning ranks by |mean| / scale, and not by size alone as for points, particles and dropout."""
    for member in getattr(belief.posterior, "members", (belief.posterior,)):
        scale = member.scale
        ratio = (member.mean[: len(scale)].abs() / scale).nan_to_num(nan=0.0, posinf=math.inf)
        if not bool((scale > 0).any()) or not torch.allclose(member.relevance, ratio):
            return False
    return True


def _rounded_list(values: Tensor) -> list[float | None]:
    return _round_nested(values.flatten().tolist())


def _round_nested(values: list[Any]) -> list[Any]:
    """Numbers, or lists of them, to the digits that a drawing needs; NaN and infinities as None."""
    return [
        _round_nested(v) if isinstance(v, list) else float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None
        for v in values
    ]
