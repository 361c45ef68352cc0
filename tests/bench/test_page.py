"""The page of benchmarks shows every question that has been measured."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from doxa_bench import runner
from doxa_bench.questions import TABLE
from doxa_bench.settings import BenchSettings

ROOT = Path(__file__).parents[2]
NEW = ("memory", "prediction_cost", "gradient_variance", "time_to_accuracy")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    return importlib.import_module("figures")


def test_the_page_asks_every_question() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    own_page = {name for name, question in TABLE.items() if question.everywhere}
    text += (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    assert {*re.findall(r'answer\("(\w+)"\)', text)} == {*TABLE} - own_page
    text += (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    text += (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    for name in own_page:
        assert f'"{name}_cpu"' in text


@pytest.mark.usefixtures("small")
def test_a_new_answer_appears_on_the_page(figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in figures.BENCH.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in NEW:
        *_, result = runner.measure_question(name, BenchSettings(rounds=1))
        runner.write_result(tmp_path, name, result)
    monkeypatch.setattr(figures, "BENCH", tmp_path)
    text = figures.fill_in((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"))
    for name in NEW:
        assert f"`results/bench/{name}.json`" in text
    assert "20‑10‑10" in text
    assert "not installed: " in text or "torchbnn" in text
    assert figures.answer("mnist_ten_epochs", 0).startswith("| KL weight | validation NLL |")


@pytest.mark.usefixtures("small")
def test_answers_about_searches_appear_on_their_pages(
    figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in figures.BENCH.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    written = []
    for name in ("search_cost", "search_faults", "search_scaling"):
        *_, result = runner.measure_question(name, BenchSettings(rounds=2))
        written.append(runner.write_result(tmp_path, name, result).stem)
    monkeypatch.setattr(figures, "BENCH", tmp_path)
    costs, scales = (
        figures.fill_in((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
        for page in ("benchmarks", "scaling")
    )
    for name, text in zip(written, (costs, costs, scales), strict=True):
        assert f"`results/bench/{name}.json`" in text
    assert "| 10,000 † | 1,000 M † | 20,000 |" in scales
    assert "† extrapolated: measured were up to" in scales
