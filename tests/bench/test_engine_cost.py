"""Two source trees compared: the numbers are what they are said to be, and what fails is told, not raised."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "engine_cost.py"


def compare_trees(old: Path, new: Path, out: Path) -> tuple[str, dict]:
    options = ["--cases", "small/point", "small/sgd", "--seconds", "0.1", "--starts", "2", "--out", str(out)]
    command = [sys.executable, str(SCRIPT), str(old), str(new), *options]
    output = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    return output, json.loads(out.read_text()) if out.exists() else {}


def test_a_tree_is_compared_with_another_and_a_case_that_fails_there_is_told(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    broken = tmp_path / "src" / "doxa" / "optimisers" / "__init__.py"
    broken.write_text(broken.read_text() + "\nsgd = lambda momentum: lambda parameters: 1 / 0\n")
    output, result = compare_trees(ROOT, tmp_path, tmp_path / "found.json")
    assert "ZeroDivisionError" in result["cases"]["small/sgd"]["error"]
    assert "ZeroDivisionError" in output
    case = result["cases"]["small/point"]
    starts = result["seconds"]["small/point"]
    assert [list(start) for start in starts] == [["old", "twin", "new"], ["twin", "new", "old"]]
    assert case["rounds"] == sum(len(start["twin"]) for start in starts) > 0
    assert result["settings"]["starts"] == case["starts"] == len(starts)
    for name in ("new/old, wall", "twin/old, cpu"):
        median, low, high = case[name]
        assert 0 < low <= median <= high
        assert result["mean"][name][0] == pytest.approx(median)
    assert min(case["memory"]["old"], case["memory"]["new"]) > 1 << 20


def test_a_folder_without_doxa_is_told(tmp_path: Path) -> None:
    output, result = compare_trees(ROOT, tmp_path, tmp_path / "found.json")
    assert "nothing was measured" in output
    assert not result


def test_means_are_geometric_and_intervals_hold_their_medians() -> None:
    parts = runpy.run_path(str(SCRIPT), run_name="engine_cost")
    geometric_mean = parts["geometric_mean"]
    assert geometric_mean([[[2.0] * 9], [[0.5] * 5]]) == pytest.approx([1.0] * 3)
    assert geometric_mean([[[4.0] * 3], [[1.0] * 3]])[0] == pytest.approx(2.0)
    median, low, high = geometric_mean([[[1.0, 1.1, 0.9, 1.05, 7.0, 0.95, 1.02]]])
    assert median == pytest.approx(1.02)
    assert 0.9 <= low < median < high <= 7.0 + 1e-9


def test_what_a_start_does_to_all_of_its_rounds_is_in_the_interval() -> None:
    geometric_mean = runpy.run_path(str(SCRIPT), run_name="engine_cost")["geometric_mean"]
    unlucky = [[1.0] * 20, [1.0] * 20, [1.1] * 20]
    assert geometric_mean([unlucky]) == pytest.approx([1.0, 1.0, 1.1])
