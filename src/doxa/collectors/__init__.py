"""COLLECTOR: what is kept of the way that parameters go. To add one: a file here and a line in TABLE."""

from collections.abc import Callable
from typing import Any

from doxa.collectors.average import Average as average
from doxa.collectors.chain import Chain as samples
from doxa.collectors.last import Last as last
from doxa.collectors.moving_average import MovingAverage as moving_average

TABLE: dict[str, Callable[..., Any]] = {
    "last": last,
    "average": average,
    "moving_average": moving_average,
    "samples": samples,
}

__all__ = ["TABLE", "average", "last", "moving_average", "samples"]
