"""Numbers as readers want them."""

from __future__ import annotations

import pytest

from doxa.report.numbers import format_percent, format_with_error

CASES = [
    (0.07812, 0.00801, "0.078 ± 0.008"),
    (0.07812, 0.00123, "0.0781 ± 0.0012"),
    (2.412, 0.334, "2.41 ± 0.33"),
    (79.1, 6.3, "79 ± 6"),
    (-1.609, 0.0061, "−1.609 ± 0.006"),
    (12345.0, 250.0, "12,345 ± 250"),
    (0.5, None, "0.5000"),
    (0.5, 0.0, "0.5000 ± 0"),
    (97.25, None, "97.25"),
    (0.0, None, "0.0"),
    (None, None, "–"),
    (1.5e-7, None, "1.5e−07"),
]


@pytest.mark.parametrize(("value", "error", "expected"), CASES)
def test_as_many_digits_as_the_error_leaves_meaning(value, error, expected):
    assert format_with_error(value, error).replace("\N{NO-BREAK SPACE}", " ") == expected


def test_a_share_is_in_percent():
    assert format_percent(0.976).replace("\N{NO-BREAK SPACE}", " ") == "97.6 %"
    assert format_percent(None) == "–"
