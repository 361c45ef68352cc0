"""A result as text: small, read by eye, and JSON."""

from __future__ import annotations

import json
import math

import pytest

from doxa_replicate.compact import round_floats, to_compact_json

CURVE = [k / 7 for k in range(100)]
RESULT = {
    "named": math.pi,
    "empty": {},
    "numbers": {"curve": CURVE, "image": [CURVE, CURVE], "gap": [None, 1, 2.5, True, "β"]},
    "verdicts": [{"claim": "C-1", "seeds": [0, 1]}, {"claim": "C-2", "seeds": []}],
}


def test_the_text_is_the_same_json() -> None:
    assert json.loads(to_compact_json(RESULT)) == RESULT
    for value in ({}, [], [[]], [{}], None, 1.5, "ß"):
        assert json.loads(to_compact_json(value)) == value


def test_a_list_of_numbers_is_one_line_and_an_object_has_a_line_for_each_key() -> None:
    lines = to_compact_json(RESULT).splitlines()
    (curve,) = [line for line in lines if '"curve"' in line]
    assert json.loads("{" + curve.rstrip(",") + "}") == {"curve": CURVE}
    assert sum('"claim"' in line for line in lines) == 2
    assert len(lines) < 25


def test_numbers_of_a_curve_keep_six_digits_and_a_number_with_a_name_all() -> None:
    result = round_floats(RESULT)
    assert result["named"] == math.pi
    assert result["numbers"]["curve"][1] == 0.142857
    assert result["numbers"]["image"][1][1] == 0.142857
    assert result["numbers"]["gap"] == RESULT["numbers"]["gap"]
    assert result["numbers"]["gap"][3] is True
    assert round_floats([123456789.0, 1.23456789e-20]) == [123457000.0, 1.23457e-20]
    assert round_floats(result) == result


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        to_compact_json({"curve": [math.nan]})
