"""Cost against work: the sweep measures what it says, loses nothing when it is stopped, and its curves can be read."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from doxa.results import stamp
from doxa_bench import scaling, step_parts
from doxa_bench.runner import measure_question, result_tables, write_result
from doxa_bench.scaling import POINTS, WorkloadPoint, measure_points
from doxa_bench.scaling_curves import SWEEPS, _clip_line, panels, spread_apart
from doxa_bench.settings import BenchSettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
SMALL = (WorkloadPoint(4), WorkloadPoint(4, nets=2), WorkloadPoint(4, samples=2), WorkloadPoint(4, noise="local"))


@pytest.fixture
def weightless(monkeypatch):
    """Memory is measured in a process of its own, which takes seconds: here it is a number by kind."""
    monkeypatch.setattr(scaling.Cpu, "memory", lambda self, point, kind: 1000 * (1 + (kind == "belief")))
    monkeypatch.setattr(scaling.Cpu, "share", 0.005)


def made_up() -> list[dict]:
    """Every point, with costs in proportion to the weights over those of a belief of nothing."""
    rows = []
    for p in POINTS:
        seconds, plain = 1e-4 + 1e-9 * p.weights * p.nets * p.samples, 5e-5 + 5e-10 * p.weights
        row = {"weights": p.weights, "seconds": seconds, "plain_seconds": plain, "ratio": seconds / p.nets / plain}
        row |= {"steps_per_second": p.nets / seconds, "plain_steps_per_second": 1 / plain, "low": 1.0, "high": 2.0}
        row |= {"parts": {"draw": seconds / 4, "descend": seconds / 4}, "page_faults": 0.0}
        rows.append(asdict(p) | row | {"bytes": 36 * p.weights * p.nets, "plain_bytes": 16 * p.weights})
    return rows


@pytest.mark.usefixtures("weightless")
def test_a_sweep_measures_every_point_in_numbers_that_fit_each_other():
    *_, content = measure_points(scaling.Cpu(), 3, SMALL)
    assert json.loads(json.dumps(content)) == content
    assert content["floor"] == {"plain": 1000, "belief": 2000}
    for point, row in zip(SMALL, content["points"], strict=True):
        assert asdict(point).items() <= row.items()
        assert row["steps_per_second"] == pytest.approx(point.nets / row["seconds"])
        assert row["low"] <= row["ratio"] <= row["high"]
        assert (row["bytes"], row["plain_bytes"]) == (2000, 1000)
        assert {"draw", "nets", "descend"} <= set(row["parts"])
        assert row["page_faults"] >= 0
        assert ("collect" in row["parts"]) == (point.samples > 1)
    assert len(result_tables("scaling", content)[0].rows) == len(SMALL)


def test_weights_are_those_of_the_net():
    for point in (WorkloadPoint(3), WorkloadPoint(10)):
        assert point.weights == sum(p.numel() for p in point.net().parameters())


@pytest.mark.usefixtures("weightless")
def test_each_device_has_a_file_that_holds_what_was_found_so_far(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "POINTS", SMALL[:2])
    real, points = scaling.time_point, []

    def until(machine, point, rounds):
        points.append(point)
        if len(points) == 2:
            raise KeyboardInterrupt
        return real(machine, point, rounds)

    monkeypatch.setattr(scaling, "time_point", until)

    def measure_until_interrupted():
        for result in measure_question("scaling", BenchSettings(rounds=3)):
            write_result(tmp_path, "scaling", result)

    with pytest.raises(KeyboardInterrupt):
        measure_until_interrupted()
    stored = json.loads((tmp_path / "scaling_cpu.json").read_text())
    assert [row["nets"] for row in stored["points"]] == [1]
    assert not stored["complete"]
    assert {"settings", "versions", "device", "commit"} <= set(stored)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of a process")
def test_memory_is_what_a_net_adds_to_a_process_of_its_own():
    vectors = scaling.Cpu().memory(WorkloadPoint(1000), "plain") / (4 * WorkloadPoint(1000).weights)
    assert 3.5 < vectors < 8  # weights, gradients, two moments; and what the batch passes through


def test_a_watch_is_taken_off_again():
    before = {part: getattr(owner, name) for part, (owner, name) in step_parts.TIMED_METHODS.items()}
    with pytest.raises(KeyError), step_parts.record_part_seconds():
        raise KeyError
    assert before == {part: getattr(owner, name) for part, (owner, name) in step_parts.TIMED_METHODS.items()}


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "products"),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "products"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64>", "products"),
        ("draw", "draw"),
        ("descend", "descend"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::relu>", "other"),
    ],
)
def test_kernels_are_told_by_their_names(kernel, part):
    assert step_parts.kernel_part(kernel) == part


def test_every_sweep_has_a_curve_of_speed_and_one_of_memory_with_their_names_on_them():
    drawn = panels(made_up(), "key")
    assert len(drawn) == 2 * len(SWEEPS)
    for place, svg in enumerate(drawn):
        root = ElementTree.fromstring(svg)
        texts = {"".join(t.itertext()) for t in root.iter("text")}
        sweep, measure = SWEEPS[place // 2], ("steps a second", "peak memory, MB")[place % 2]
        assert {sweep.name, measure, "plain", *sweep.curves} <= texts
        assert any(text.startswith("∝") or text == "no gain" for text in texts)
        assert root.attrib["aria-label"].lower().startswith(measure.lower())
        assert not re.search(r"#0000[ef]\d|script|http", svg)


def test_curves_are_drawn_of_what_is_there_yet():
    few = [row for row in made_up() if row["width"] == 400 and row["nets"] == row["samples"] == 1]
    assert all(ElementTree.fromstring(svg) is not None for svg in panels(few, "key"))


def test_a_proportion_ends_where_it_leaves_the_picture():
    assert _clip_line([1, 2, 4], [1, 2, 4], 0.5, 8.0) == ([1, 2, 4], [1, 2, 4])
    x, y = _clip_line([1, 2, 4], [10, 100, 1000], 5.0, 100 * 10**0.5)
    assert x == pytest.approx([1, 2, 2 * 2**0.5])
    assert y == pytest.approx([10, 100, 100 * 10**0.5])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_page_finds_every_number_it_names(device, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "hooks"))
    figures = importlib.import_module("figures")
    monkeypatch.setattr(figures, "BENCH", tmp_path)
    content = {"floor": {"plain": 1000, "belief": 2000}, "points": made_up()}
    settings = {"caches": {"L2": 2**21, "L3": 2**28}}
    (tmp_path / f"scaling_{device}.json").write_text(json.dumps({**stamp(settings, [0], 0.0), **content}))
    text = figures.fill_in((DOCS / "cost.md").read_text(encoding="utf-8"))
    assert text.count("<svg") == 2 * len(SWEEPS)
    assert f"`results/bench/scaling_{device}.json`" in text
    assert figures.scaled(device, "gain", 400, nets=64) in text
    sys.modules.pop("figures")


def test_the_same_numbers_are_the_same_bytes():
    assert panels(made_up(), "key") == panels(made_up(), "key")


def test_names_are_moved_apart_no_further_than_need_be():
    assert spread_apart([0.2, 0.5, 0.9], 0.1) == pytest.approx([0.2, 0.5, 0.9])
    assert spread_apart([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    crowded = spread_apart([0.0, 0.01, 0.02, 0.95, 1.2], 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(crowded))
    assert min(crowded) >= 0
    assert max(crowded) <= 1
