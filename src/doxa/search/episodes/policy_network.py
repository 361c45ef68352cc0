"""Many policies as one program: a net's outputs with the weights of every perturbation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map

from doxa.errors import BadInput
from doxa.weights.layout import Layout, lay_out, untrained_tensors

COMPACTION_SHARE = 0.75  # of a batch: when fewer policies still play, the others leave it


@contextmanager
def ignore_vmap_warnings() -> Iterator[None]:
    """Nothing is said of layers, such as recurrent cells, that torch runs in turn for many weights."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*performance drop")
        yield


class PolicyNetwork:
    """A net that acts, and how its weights lie.

    One that remembers takes observations [E, *observation] and a state, None as an episode begins, and gives outputs
    [E, K] and a state: tensors with a row for each observation, in tuples, lists or dicts if there are several.
    """

    def __init__(self, net: nn.Module, observation_shape: tuple[int, ...], output_count: int) -> None:
        self.net = net
        self.layout: Layout
        self.initial_weights: Tensor
        self.layout, self.initial_weights = lay_out(net)
        self.buffers = untrained_tensors(net)
        self.output_count = output_count
        self.recurrent, self.vectorized = False, True
        self._probe(observation_shape)

    def forward(self, weights: Mapping[str, Tensor], x: Tensor, *state: Any) -> Any:
        """Outputs [E, K] of observations [E, *observation]; from a net that remembers, and its state."""
        return functional_call(self.net, {**weights, **self.buffers}, (x, *state))

    def forward_each(self, weights: Mapping[str, Tensor], x: Tensor, *state: Any) -> Any:
        """The same of n nets [n, E, ...], each with observations and a state of its own."""
        if self.vectorized:
            return torch.vmap(self.forward)(weights, x, *state)
        results = [self.forward(*tree_map(lambda t, n=n: t[n], (weights, x, *state))) for n in range(len(x))]
        return tree_map(lambda *parts: torch.stack(parts), *results)

    def _probe(self, observation_shape: tuple[int, ...]) -> None:
        x, weights = self.initial_weights.new_zeros(2, *observation_shape), self.layout.weights(self.initial_weights)
        try:
            result = self.forward(weights, x)
            self.recurrent = isinstance(result, tuple) and len(result) == 2
            if self.recurrent:
                self._require_state_rows(
                    result[1], self.forward(weights, self.initial_weights.new_zeros(3, *observation_shape))[1]
                )
                result = self.forward(weights, x, result[1])
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, BadInput):
                raise
            hint = "; a net that remembers takes observations and state=None" if isinstance(error, TypeError) else ""
            raise BadInput(
                f"the net cannot take observations of shape {observation_shape}, of which it was given two: "
                f"{error}{hint}"
            ) from error
        output = result[0] if self.recurrent else result
        if not isinstance(output, Tensor):
            raise BadInput(
                f"the net returned a {type(output).__name__}; a policy's net gives a tensor of outputs, or "
                "(outputs, state) if it remembers"
            )
        if output.shape != (2, self.output_count):
            raise BadInput(
                f"the net turned two observations into outputs of shape {tuple(output.shape)}; the environment's "
                f"actions need (2, {self.output_count})"
            )
        try:
            with ignore_vmap_warnings():
                self.forward_each(self.layout.weights(self.initial_weights[None]), x[None])
        except RuntimeError:  # some of torch's layers cannot run with many weights at once
            self.vectorized = False

    def _require_state_rows(self, state_of_two: Any, state_of_three: Any) -> None:
        """Refuse a state that has no row for each observation: those of episodes that are over could not leave it."""
        for a, b in zip(tree_leaves(state_of_two), tree_leaves(state_of_three), strict=True):
            rows = tuple(t.shape[:1] if isinstance(t, Tensor) else type(t).__name__ for t in (a, b))
            if rows != ((2,), (3,)):
                shapes = [tuple(t.shape) if isinstance(t, Tensor) else type(t).__name__ for t in (a, b)]
                raise BadInput(
                    "what a net remembers must be tensors whose first axis are the observations; for two and for three "
                    f"of them it gave {shapes[0]} and {shapes[1]}: move the axis, as in state.transpose(0, 1)"
                )


class PolicyBatch:
    """N policies, each with E episodes to play. Who has played them all leaves the batch."""

    def __init__(self, network: PolicyNetwork, points: Tensor, episodes: int) -> None:
        self.network, self.points, self.episodes = network, points, episodes
        self.active_policies = np.arange(len(points))
        self.weights = network.layout.weights(points)
        self.state: tuple[Any, ...] = ()  # of every episode of those in the batch [n, E, ...], once one has begun

    def continue_with(self, rows: NDArray[Any]) -> None:
        """Hear which of all N E episodes go on."""
        active = np.unique(rows // self.episodes)
        if len(active) <= COMPACTION_SHARE * len(self.active_policies):
            staying = torch.from_numpy(np.searchsorted(self.active_policies, active)).to(self.points.device)
            self.state = tree_map(lambda t: t[staying], self.state)
            self.active_policies = active
            self.weights = self.network.layout.weights(self.points[torch.from_numpy(active).to(self.points.device)])
        position = np.searchsorted(self.active_policies, rows // self.episodes)
        self.active_rows = torch.from_numpy(position * self.episodes + rows % self.episodes).to(self.points.device)
        self.all_active = len(rows) == len(self.active_policies) * self.episodes

    def forward(self, x: NDArray[Any]) -> Tensor:
        """Outputs [rows, K] of the observations [rows, *observation] of those that go on."""
        inputs = torch.from_numpy(x).to(self.points)
        if not self.all_active:
            padded = inputs.new_zeros(len(self.active_policies) * self.episodes, *inputs.shape[1:])
            padded[self.active_rows] = inputs
            inputs = padded
        result = self.network.forward_each(
            self.weights, inputs.unflatten(0, (len(self.active_policies), self.episodes)), *self.state
        )
        if self.network.recurrent:
            result, self.state = result[0], result[1:]
        outputs: Tensor = result.flatten(0, 1)
        return (outputs if self.all_active else outputs[self.active_rows]).cpu()
