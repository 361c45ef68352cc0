"""Small beliefs, built by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from doxa.posteriors.mean_field import MeanField, inverse_softplus
from doxa.predict.belief import Belief
from doxa.weights.layout import lay_out, untrained_tensors


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small lose time, not gain it, on a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def believe(net: nn.Module, likelihood: Any, scale: float = 0.05, gain: float = 1.0, prior: Any = None) -> Belief:
    """A mean-field belief around `gain` times the net's present weights."""
    layout, flat = lay_out(net, extra=likelihood.parameters(torch.zeros(1, 1)))
    scales = torch.full((layout.random,), scale)
    posterior = MeanField(flat * gain, inverse_softplus(scales))
    return Belief(net, likelihood, posterior, layout, (untrained_tensors(net),), prior=prior)


@pytest.fixture
def make_belief() -> Callable[..., Belief]:
    return believe


def mlp(inputs: int, outputs: int, hidden: int = 16) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


@pytest.fixture
def make_mlp() -> Callable[..., nn.Module]:
    return mlp
