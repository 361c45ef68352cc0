"""Members of rooms by words."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from doxa import kl_weights, learners, noise, priors, rates
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


def test_an_argument_is_a_member_of_its_parameters_room() -> None:
    assert build_member("annealed:5,of=tempered(0.1)", kl_weights.TABLE, "KL weight") == kl_weights.annealed(
        5, of=kl_weights.tempered(0.1)
    )
    words = "point:laplace,kl_weight=annealed(5)"
    assert build_member(words, learners.TABLE, "learner") == learners.point(priors.laplace(), kl_weights.annealed(5))
    assert build_member("variational:laplace,noise=shared", learners.TABLE, "learner").noise is noise.shared
    with pytest.raises(BadInput, match="there is no noise 'dropout'; there is: flipout, local, shared"):
        build_member("variational:noise=dropout", learners.TABLE, "learner")


def test_a_parameter_that_takes_words_keeps_them() -> None:
    def by_default(mode: object = "plain") -> object:
        return mode

    def by_annotation(mode: str) -> str:
        return mode

    room = {"by_default": by_default, "by_annotation": by_annotation}
    assert build_member("by_default:by_annotation", room, "mode") == "by_annotation"
    assert build_member("by_annotation:mode=by_default", room, "mode") == "by_default"


def test_a_maker_that_does_not_tell_its_parameters_is_refused_in_words() -> None:
    with pytest.raises(BadInput, match="the prior mine is <class 'dict'>, which does not tell its parameters"):
        build_member("mine", {"mine": dict}, "prior")


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


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "raise SystemExit", "1 / 0", "import not_there", "def"])
def test_a_broken_plugin_is_warned_of_and_hides_nothing(
    source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "doxa_broken.py").write_text(source)
    (tmp_path / "doxa_whole.py").write_text("loaded = True")
    monkeypatch.syspath_prepend(tmp_path)
    points = [metadata.EntryPoint(name, f"doxa_{name}", "doxa.plugins") for name in ("broken", "whole")]
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: points)
    with (
        pytest.warns(UserWarning, match=r"the plugin broken \(doxa_broken\) cannot be loaded: ."),
        pytest.raises(BadInput, match="there is no prior 'gausian'; did you mean 'gaussian'"),
    ):
        build_member("gausian", priors.TABLE, "prior")
    assert sys.modules.pop("doxa_whole").loaded
