"""`doxa bench`: the questions, their answers on the terminal and in files, and what is left after Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doxa_bench import fleet_cost, runner
from doxa_bench.questions import TABLE
from doxa_bench.settings import BenchSettings

from .small import Command


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "THREADS", 1)
    monkeypatch.setattr(fleet_cost, "CASES", {"8-4-4-10, 2 nets": (8, 4, 2)})


def test_without_a_question_they_are_listed(doxa: Command) -> None:
    ended = doxa("bench")
    assert ended.code == 0
    assert all(name in ended.out for name in TABLE)
    assert {*json.loads(doxa("bench", "--json").out)} == {*TABLE}


def test_a_question_that_is_not_there(doxa: Command) -> None:
    ended = doxa("bench", "fleet_cots")
    assert ended.code == 1
    assert "there is no question 'fleet_cots'; did you mean 'fleet_cost'?" in ended.message
    ended = doxa("bench", "fleet_cost", "--device", "nowhere")
    assert ended.code == 1
    assert "--device nowhere cannot be used here" in ended.message


@pytest.mark.usefixtures("small")
def test_an_answer_is_shown_and_written_only_where_asked(doxa: Command) -> None:
    ended = doxa("bench", "fleet_cost", "--rounds", 1)
    assert ended.code == 0
    assert "8-4-4-10, 2 nets" in ended.out
    assert "--out FOLDER keeps the answers" in ended.err
    assert not list(Path().iterdir())
    ended = doxa("bench", "fleet_cost", "--rounds", 1, "--only", "local", "--out", "results", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    stored = json.loads(Path("results/fleet_cost.json").read_text())
    assert [*stored["fleets"]] == ["8-4-4-10, 2 nets, local"]
    assert stored["complete"]
    ended = doxa("bench", "fleet_cost", "--rounds", 1, "--json", "-q")
    assert {*json.loads(ended.out)} == {"fleet_cost"}


def test_control_c_keeps_and_shows_what_was_measured(doxa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = dict.fromkeys(("gain", "low", "high", "together_ms", "one_by_one_ms", "plain_ms", "ratio"), 2.0)

    def ask(settings: BenchSettings) -> Iterator[dict[str, Any]]:
        yield {"fleets": {"8-4-4-10, 2 nets, shared": figures}}
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "THREADS", 1)
    monkeypatch.setattr(fleet_cost, "measure", ask)
    ended = doxa("bench", "fleet_cost", "--out", "results")
    assert ended.code == 130
    assert ended.err.splitlines()[-1] == "doxa: interrupted"
    assert "8-4-4-10, 2 nets" in ended.out
    stored = json.loads(Path("results/fleet_cost.json").read_text())
    assert not stored["complete"]
    assert [*stored["fleets"]] == ["8-4-4-10, 2 nets, shared"]
