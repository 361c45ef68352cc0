"""Results on disk: what a belief was worth, and where every number came from."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.results.check import Result, first_problem
from doxa.results.combine import combine
from doxa.results.files import read_result, result_bytes, to_plain_json, write_result, write_text_atomic
from doxa.results.stamp import stamp

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(
        __name__,
        {
            "plain": "to_plain_json",
            "trouble": "first_problem",
            "write_whole": "write_text_atomic",
        },
    )

__all__ = [
    "Result",
    "combine",
    "first_problem",
    "read_result",
    "result_bytes",
    "stamp",
    "to_plain_json",
    "write_result",
    "write_text_atomic",
]
