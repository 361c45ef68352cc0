"""What the page says first: it follows from the numbers, whoever they favour."""

from __future__ import annotations

from doxa.report.opening import opening
from doxa.report.runs import group_runs


def opening_text(*results) -> str:
    return " ".join(map(str, opening(group_runs(results)[0])))


def test_a_clear_lead_is_called_one(make_result):
    text = opening_text(make_result("belief", nll=0.5), make_result("plain", nll=0.2))
    assert text.startswith("<b><bdi>plain</bdi></b> has the best NLL over 5 seeds, 0.200")
    assert "0.500" in text


def test_a_lead_within_two_standard_errors_is_none(make_result):
    text = opening_text(make_result("one", nll=0.50), make_result("two", nll=0.52), make_result("three", nll=0.9))
    assert "cannot be told apart" in text
    assert "three</bdi></b> is worse" in text
    assert "has the best NLL" not in text


def test_it_says_who_wins_what_and_where_nobody_does(make_result):
    strong = make_result("strong")
    strong["scores"]["auroc_entropy"]["value"] = 0.99
    text = opening_text(make_result("weak"), strong)
    assert "strong</bdi></b> is clearly best in spotting unfamiliar inputs" in text
    assert "In error none is clearly best" in text


def test_one_seed_claims_nothing_clearly(make_result):
    results = [make_result("one", nll=0.1, error=None), make_result("two", nll=0.2, error=None)]
    for result in results:
        for score in result["scores"].values():
            score.update(over="draws", count=50)
    text = opening_text(*results)
    assert "clearly" not in text
    assert "may be chance" in text


def test_a_run_alone_is_described(make_result):
    text = opening_text(make_result("belief"))
    assert "on 360 rows" in text
    assert "2.35" in text  # percent
    assert "best" not in text


def test_nothing_in_common(make_result):
    first, second = make_result("one"), make_result("two")
    first["scores"], second["scores"] = {"a": {"value": 1.0}}, {"b": {"value": 2.0}}
    assert "no score in common" in opening_text(first, second)


def test_names_are_escaped(make_result):
    assert "<i>" not in opening_text(make_result("<i>one"), make_result("<i>two"))
