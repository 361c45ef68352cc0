"""Units are a matter of taste: a quantity that is moved and stretched is learned just as well."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa import likelihoods
from doxa.runs import Plan, learn, load_training_data, predict_table

UNITS = [(300_000.0, 80_000.0), (-0.003, 0.0001)]  # centre and scale
# What a user would have to say in the units of the target, for a target of unit size.
WORDS = {
    "gaussian": "gaussian:{0.4}",
    "gaussian_learned": "gaussian_learned",
    "gaussian_learned:start": "gaussian_learned:start={0.4}",
    "gaussian_per_input": "gaussian_per_input",
    "gaussian_per_input:least": "gaussian_per_input:least=0.01",
    "gaussian_per_input:scale": "gaussian_per_input:0.001,{2.0}",
}


def noisy(centre: float, scale: float, rows: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, rows)
    return {"x": x, "y": centre + scale * (np.sin(x) + (0.05 + 0.3 * np.abs(x)) * rng.normal(size=rows))}


def in_units(template: str, scale: float) -> str:
    before, brace, rest = template.partition("{")
    number, _, after = rest.partition("}")
    return f"{before}{float(number) * scale!r}{after}" if brace else before


def scores(plan: Plan, centre: float, scale: float, folder: Path) -> dict[str, float]:
    run = learn(load_training_data(noisy(centre, scale), "y"), plan, folder, progress=False)
    values = {name: score["value"] for name, score in run.result()["scores"].items()}
    delivered = predict_table(run, {"x": [-1.5, 0.0, 1.5]}, samples=20)
    values |= {f"mean {k}": (v - centre) / scale for k, v in enumerate(delivered["mean"])}
    values |= {f"std {k}": v / scale for k, v in enumerate(delivered["std"])}
    values["nll"] -= math.log(scale)
    return values | {name: values[name] / scale for name in ("rmse", "crps", "aleatoric", "epistemic", "width_90")}


def test_every_likelihood_of_a_quantity_has_words_here() -> None:
    real = {name for name in likelihoods.TABLE if name.startswith("gaussian")}
    assert real == {template.partition(":")[0] for template in WORDS}


@pytest.mark.parametrize("template", [*WORDS.values(), None])
def test_scores_follow_the_units_of_the_target(template: str | None, tmp_path: Path) -> None:
    def plan(scale: float) -> Plan:
        if template is None:
            return Plan(net="mlp:8", epochs=15, kl_weight="0.1", members=2, draws=20)
        likelihood = in_units(template, scale)
        return Plan(net="mlp:8", learner="variational", likelihood=likelihood, epochs=40, lr="0.01", draws=20)

    plain = scores(plan(1.0), 0.0, 1.0, tmp_path / "plain")
    for centre, scale in UNITS:
        moved = scores(plan(scale), centre, scale, tmp_path / f"{scale:g}")
        for name in ("nll", "rmse", "crps", "aleatoric", "epistemic", "width_90"):
            assert moved[name] == pytest.approx(plain[name], abs=0.03, rel=0.03), name
        for name in ("coverage_50", "coverage_90", *(k for k in plain if k.startswith(("mean", "std")))):
            assert moved[name] == pytest.approx(plain[name], abs=0.06), name
