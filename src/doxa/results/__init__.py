"""Results on disk: what a belief was worth, and where every number came from."""

from doxa.results.check import Result, first_problem
from doxa.results.combine import combine
from doxa.results.files import read_result, to_plain_json, write_result, write_text_atomic
from doxa.results.stamp import stamp

__all__ = [
    "Result",
    "combine",
    "first_problem",
    "read_result",
    "stamp",
    "to_plain_json",
    "write_result",
    "write_text_atomic",
]
