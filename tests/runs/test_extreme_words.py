"""Arguments that no member takes, of a size or of a kind, are refused when it is built, not where it is used."""

from __future__ import annotations

from typing import Any

import pytest

from doxa import likelihoods, noise, priors
from doxa.errors import BadInput
from doxa.runs.parsing import build_member, parse_literal


@pytest.mark.parametrize("size", ["1e-320", "1e-160", "1e160", "1e308", "inf", "nan", "0", "1" + 40 * "0"])
@pytest.mark.parametrize(
    "text", ["gaussian:", "laplace:", "student_t:scale=", "student_t:degrees=", "scale_mixture:wide="]
)
def test_the_size_of_a_prior_is_one_that_can_be_divided_by(text: str, size: str) -> None:
    with pytest.raises(BadInput):
        build_member(f"{text}{size}", priors.TABLE, "prior")


@pytest.mark.parametrize("centre", ["x", "()", "(1,2)", "none", "true", "nan", "inf", "1e308"])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "student_t", "scale_mixture"])
def test_the_centre_of_a_prior_is_a_number(name: str, centre: str) -> None:
    with pytest.raises(BadInput, match="centre must"):
        build_member(f"{name}:centre={centre}", priors.TABLE, "prior")


@pytest.mark.parametrize(
    "text", ["gaussian:scale=1e160", "gaussian:1e-320", "gaussian_learned:1e308", "categorical:class_axis=nan"]
)
def test_the_size_of_a_noise_and_an_axis(text: str) -> None:
    with pytest.raises(BadInput):
        build_member(text, likelihoods.TABLE, "likelihood")


def test_a_member_is_named_by_a_word() -> None:
    nothing: Any = None
    with pytest.raises(BadInput, match="the noise is named by a word; got None"):
        build_member(nothing, noise.TABLE, "noise")


def test_a_whole_number_that_torch_does_not_take_is_a_float() -> None:
    assert parse_literal(str(2**63 - 1)) == 2**63 - 1
    assert isinstance(parse_literal(str(2**63)), float)
    assert parse_literal("-" + 400 * "9") == -float("inf")
