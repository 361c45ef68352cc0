"""Members of rooms by words."""

from __future__ import annotations

import sys
from importlib import metadata
from types import ModuleType

import pytest

from doxa import kl_weights, noise, priors, rates
from doxa.errors import BadInput
from doxa.runs.parsing import build_member, parse_arguments, parse_literal


def test_words_make_the_member_they_name() -> None:
    assert build_member("gaussian", priors.TABLE, "prior") == priors.gaussian()
    assert build_member("gaussian:0.5", priors.TABLE, "prior") == priors.gaussian(0.5)
    assert build_member("scale_mixture:0.25,narrow=0.01", priors.TABLE, "prior") == priors.scale_mixture(
        0.25, narrow=0.01
    )
    assert build_member(" local ", noise.TABLE, "noise") is noise.local
    assert build_member("cosine:0.01", rates.TABLE, "rate") == rates.cosine(0.01)
    assert build_member("geometric", kl_weights.TABLE, "KL weight") == kl_weights.geometric()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gausian", "did you mean 'gaussian'"),
        ("gaussian:1,2,3,4", "does not fit"),
        ("gaussian:width=3", "it takes: scale, centre"),
        ("gaussian:scale=1,2", "name it too"),
        ("gaussian:scale=1,scale=2", "scale is given twice"),
        ("gaussian:-1", "positive"),
        ("", "there is no prior ''"),
    ],
)
def test_words_that_name_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build_member(text, priors.TABLE, "prior")
    with pytest.raises(BadInput, match="takes no arguments"):
        build_member("local:1", noise.TABLE, "noise")


def test_a_literal_is_a_number_a_truth_or_a_word() -> None:
    values = [parse_literal(w) for w in ("3", "3.5", "1e-3", "true", "None", "weight", " 2 ")]
    assert values == [3, 3.5, 1e-3, True, None, "weight", 2]
    assert [type(f) for f in values[:2]] == [int, float]
    assert parse_arguments("1, b=2,c=x") == ([1], {"b": 2, "c": "x"})
    assert parse_arguments("") == ([], {})


def test_a_name_that_the_room_lacks_may_be_a_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = {"narrow": priors.gaussian}
    asked: list[str] = []

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        asked.append(group)
        rooms["heavy"] = priors.student_t  # as the plugin's module does when it is imported
        return [metadata.EntryPoint("heavy", "heavy_tails", group)]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    monkeypatch.setitem(sys.modules, "heavy_tails", ModuleType("heavy_tails"))
    assert build_member("narrow:0.5", rooms, "prior") == priors.gaussian(0.5)
    assert not asked
    assert build_member("heavy:3", rooms, "prior") == priors.student_t(3)
    assert asked == ["doxa.plugins"]
    with pytest.raises(BadInput, match="there is no prior 'heavi'; did you mean 'heavy'"):
        build_member("heavi", rooms, "prior")
