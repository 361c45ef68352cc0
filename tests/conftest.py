"""Tests run side by side, two processes on two cores: one thread each. Where data sets are not there, they skip."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from doxa.errors import BadInput

# A shell's background job starts with Ctrl-C ignored, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)


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
