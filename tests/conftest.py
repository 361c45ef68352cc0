"""Tests run side by side, two processes on two cores: one thread each. Where data sets are not there, they skip."""

import gc
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from doxa.errors import BadInput

# A shell's background job starts with Ctrl-C ignored, and one under nohup with SIGHUP, and so would every program that
# the tests start and end by them.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

torch.set_num_threads(1)

_flush = os.fsync


def flush_what_is_no_file(descriptor: int) -> None:
    """Files are flushed against a loss of power, and no test has one: a disk takes milliseconds for each, in vain."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        _flush(descriptor)


os.fsync = flush_what_is_no_file


def pytest_collection_finish() -> None:
    """Torch and all the tests are there to stay: Python need not look through them for garbage again and again."""
    gc.collect()
    gc.freeze()


@contextmanager
def skipping() -> Iterator[None]:
    """Skip what fails for want of a data set, but only where no folder of data sets was named."""
    try:
        yield
    except BadInput as error:
        if "DOXA_DATA" in os.environ or " is missing; " not in str(error):
            raise
        pytest.skip(f"needs a data set: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with skipping():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with skipping():
        return (yield)
