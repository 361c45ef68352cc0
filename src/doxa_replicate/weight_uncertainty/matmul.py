"""How precisely matrices are multiplied while nets are trained, and while they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from doxa.engine.epochs import Watch
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions


def training_matmul(options: ReplicationOptions) -> str:
    """How precisely products are worked out in training: on a GPU with factors of ten bits, which takes a third less.

    All else is in single precision, and so are predictions; the authors' version of torch did the same where it could.
    """
    return "high" if (options.device or "").startswith("cuda") else "highest"


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Products of matrices in single precision are worked out so meanwhile, and as before afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def precise_watch(watch: Watch | None) -> Watch | None:
    """A watch that predicts in full precision."""
    return None if watch is None else partial(_watch_precisely, watch)


def _watch_precisely(watch: Watch, beliefs: list[Belief]) -> Sequence[Mapping[str, float]]:
    with matmul_precision("highest"):
        return watch(beliefs)
