"""What is judged is what is delivered: the scores of intervals are those of the columns that predict writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa.runs import Plan, SavedRun, labelled_rows, learn, load_training_data, open_run, predict_table
from doxa_cli.app import main

PLAN = Plan(net="mlp:16", kl_weight="0.1", epochs=15, members=3, draws=30)


def heavy_tailed(rows: int, seed: int) -> dict[str, Any]:
    """Noise that no Gaussian describes, so that levels have something to move."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return {"x": x, "y": 2 * x + rng.standard_t(2.5, size=rows)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SavedRun:
    material = load_training_data(heavy_tailed(100, 1), "y", hold_out=0.2)
    return learn(material, PLAN, tmp_path_factory.mktemp("runs") / "r", progress=False)


def delivered_intervals(run: SavedRun, table: dict[str, Any], level: float) -> tuple[float, float]:
    """Coverage and width of what predict writes."""
    predictions = predict_table(run, {"x": table["x"]}, samples=30, level=level)
    covered = (predictions["lower"] <= table["y"]) & (table["y"] <= predictions["upper"])
    return float(covered.mean()), float((predictions["upper"] - predictions["lower"]).mean())


def test_a_run_s_own_scores_are_of_what_it_delivers(run: SavedRun) -> None:
    assert run.levels is not None
    columns = heavy_tailed(100, 1)
    aside = load_training_data(columns, "y", hold_out=0.2).test[1]
    held = np.isin(columns["y"].astype(np.float32), aside.numpy())
    table = {name: values[held] for name, values in columns.items()}
    result = run.result()
    for level in (0.5, 0.9, 0.95):
        covered, width = delivered_intervals(run, table, level)
        assert result["scores"][f"coverage_{100 * level:g}"]["value"] == pytest.approx(covered, abs=1e-6)
        place = result["intervals"]["level"].index(level)
        assert result["intervals"]["coverage"][place] == pytest.approx(covered, abs=1e-6)
        if level == 0.9:
            assert result["scores"]["width_90"]["value"] == pytest.approx(width, rel=1e-4)


def test_doxa_judge_scores_what_doxa_predict_delivers(
    run: SavedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = heavy_tailed(400, 2)
    path = tmp_path / "t.csv"
    np.savetxt(path, np.column_stack([table["x"], table["y"]]), delimiter=",", header="x,y", comments="")
    covered, width = delivered_intervals(run, table, 0.9)
    raw = open_run(run.folder).belief.predict(labelled_rows(run, table)[0], 30)
    unmoved = float((raw.quantile(0.95) - raw.quantile(0.05)).mean())
    assert width != pytest.approx(unmoved, rel=0.01), "the levels move something here"
    for more in ((), ("--out", str(tmp_path / "j.json"))):
        capsys.readouterr()
        assert main(["judge", str(run.folder), str(path), "--json", *more]) == 0
        scores = json.loads(capsys.readouterr().out)["scores"]
        assert scores["coverage_90"]["value"] == pytest.approx(covered, abs=0.003)
        assert scores["width_90"]["value"] == pytest.approx(width, rel=1e-3)
