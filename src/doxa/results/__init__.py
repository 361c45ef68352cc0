"""Results on disk: what a belief was worth, and where every number came from."""

from doxa.results.check import Result, trouble
from doxa.results.combine import combine
from doxa.results.files import plain, read_result, write_result, write_whole
from doxa.results.stamp import stamp

__all__ = ["Result", "combine", "plain", "read_result", "stamp", "trouble", "write_result", "write_whole"]
