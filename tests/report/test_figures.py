"""Each figure: drawn where there is something to draw, and saying in words what it shows."""

from __future__ import annotations

import re

import pytest

from doxa.report.figures import TABLE, figures
from doxa.report.palette import SERIES
from doxa.report.runs import group_runs


def runs(*results):
    return group_runs(results)[0].runs


@pytest.mark.parametrize("section", TABLE)
def test_a_figure_needs_its_section_alone(section, make_result):
    without_other_sections = dict.fromkeys(set(TABLE) - {section})
    (figure,) = figures(runs(make_result(**without_other_sections)), "key")
    assert figure.title == TABLE[section].TITLE
    assert all(panel.caption.endswith(".") for panel in figure.panels)


@pytest.mark.parametrize("section", TABLE)
def test_a_run_without_the_section_is_left_out(section, make_result):
    bare = make_result("bare", **dict.fromkeys(TABLE))
    panels = TABLE[section].panels(runs(make_result("having"), bare), "key")
    text = " ".join(str(panel) for panel in panels)
    assert "bare" not in text
    assert not TABLE[section].panels(runs(bare), "key")


def test_every_file_of_the_room_is_in_the_same_order():
    for module in TABLE.values():
        assert module.TITLE.strip()
        assert module.LEAD.strip()
        assert callable(module.panels)


def test_panels_never_hold_two_runs_of_one_style(make_result):
    many = runs(*[make_result(f"run {k}") for k in range(2 * len(SERIES) + 1)])
    for section in ("reliability", "attack", "pruning", "intervals", "signal_to_noise"):
        panels = TABLE[section].panels(many, section)
        assert len(panels) == 3
        assert sum(len(panel.legend) for panel in panels) == len(many)
        assert all(len(panel.legend) <= len(SERIES) for panel in panels)


def test_a_name_keeps_its_style_on_other_data(make_result):
    on_other_data = make_result("belief")
    on_other_data["data"] = {"name": "other"}
    first, second = group_runs([make_result("plain"), make_result("belief"), on_other_data])
    assert first.runs[1].style == second.runs[0].style


def test_the_numbers_of_the_pruning_curve(make_result):
    (panel,) = TABLE["pruning"].panels(runs(make_result("one"), make_result("two")), "key")
    heads, rows = panel.numbers
    assert heads == ["pruned, %", "one", "two"]
    assert [row[0] for row in rows] == ["0", "50", "95"]
    assert rows[1][1].startswith("3.0")
    assert rows[2][1] == "–"


def test_nll_and_kl_are_drawn_apart(make_result):
    panels = TABLE["history"].panels(runs(make_result()), "key")
    assert [panel.title for panel in panels] == ["training", "validation", "KL"]
    plain = make_result(history=[{"nll": 1.0, "kl": 0.0}])
    assert [panel.title for panel in TABLE["history"].panels(runs(plain), "key")] == ["training"]


def test_the_band_says_how_far_it_opens(make_result):
    (panel,) = TABLE["band"].panels(runs(make_result()), "key")
    assert "0.2 wide" in panel.caption
    assert "(25 times)" in panel.caption  # (4 + 6) / 2 away, 0.2 amid


def test_the_reliability_diagram_weighs_by_rows(make_result):
    (panel,) = TABLE["reliability"].panels(runs(make_result()), "key")
    confidence, accuracy = re.findall(r"(\d+\.\d)", panel.caption)
    assert float(confidence) == pytest.approx(20 * 0.6 + 80 * 0.95, abs=0.05)
    assert float(accuracy) == pytest.approx(20 * 0.5 + 80 * 0.9, abs=0.05)


def test_the_true_label_is_shown_even_where_it_is_unlikely(make_result):
    row = {"image": [[0.0]], "label": 4, "probabilities": [0.5, 0.3, 0.1, 0.09, 0.01]}
    (panel,) = TABLE["unsure"].panels(runs(make_result(unsure=[row])), "key")
    assert 'class="true"' in panel.svg
    assert "0 of these 1 it gets right" in panel.caption
