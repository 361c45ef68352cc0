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
from doxa.weights.layout import Layout, constants, lay_out

SHARE = 0.75  # of a batch: when fewer policies still play, the others leave it


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is said of layers, such as recurrent cells, that torch runs in turn for many weights."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*performance drop")
        yield


class Body:
    """A net that acts, and how its weights lie.

    One that remembers takes observations [E, *observation] and a state, None as an episode begins, and gives outputs
    [E, K] and a state: tensors with a row for each observation, in tuples, lists or dicts if there are several.
    """

    def __init__(self, net: nn.Module, shape: tuple[int, ...], outputs: int) -> None:
        self.net = net
        self.layout: Layout
        self.start: Tensor
        self.layout, self.start = lay_out(net)
        self.buffers = constants(net)
        self.outputs = outputs
        self.remembers, self.together = False, True
        self._try(shape)

    def run(self, weights: Mapping[str, Tensor], x: Tensor, *state: Any) -> Any:
        """Outputs [E, K] of observations [E, *observation]; from a net that remembers, and its state."""
        return functional_call(self.net, {**weights, **self.buffers}, (x, *state))

    def each(self, weights: Mapping[str, Tensor], x: Tensor, *state: Any) -> Any:
        """The same of n nets [n, E, ...], each with observations and a state of its own."""
        if self.together:
            return torch.vmap(self.run)(weights, x, *state)
        found = [self.run(*tree_map(lambda t, n=n: t[n], (weights, x, *state))) for n in range(len(x))]
        return tree_map(lambda *parts: torch.stack(parts), *found)

    def _try(self, shape: tuple[int, ...]) -> None:
        x, weights = self.start.new_zeros(2, *shape), self.layout.weights(self.start)
        try:
            found = self.run(weights, x)
            self.remembers = isinstance(found, tuple) and len(found) == 2
            if self.remembers:
                self._require_rows(found[1], self.run(weights, self.start.new_zeros(3, *shape))[1])
                found = self.run(weights, x, found[1])
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, BadInput):
                raise
            hint = "; a net that remembers takes observations and state=None" if isinstance(error, TypeError) else ""
            raise BadInput(
                f"the net cannot take observations of shape {shape}, of which it was given two: {error}{hint}"
            ) from error
        output = found[0] if self.remembers else found
        if not isinstance(output, Tensor):
            raise BadInput(
                f"the net returned a {type(output).__name__}; a policy's net gives a tensor of outputs, or "
                "(outputs, state) if it remembers"
            )
        if output.shape != (2, self.outputs):
            raise BadInput(
                f"the net turned two observations into outputs of shape {tuple(output.shape)}; the environment's "
                f"actions need (2, {self.outputs})"
            )
        try:
            with quiet():
                self.each(self.layout.weights(self.start[None]), x[None])
        except RuntimeError:  # some of torch's layers cannot run with many weights at once
            self.together = False

    def _require_rows(self, two: Any, three: Any) -> None:
        """Refuse a state that has no row for each observation: those of episodes that are over could not leave it."""
        for a, b in zip(tree_leaves(two), tree_leaves(three), strict=True):
            rows = tuple(t.shape[:1] if isinstance(t, Tensor) else type(t).__name__ for t in (a, b))
            if rows != ((2,), (3,)):
                shapes = [tuple(t.shape) if isinstance(t, Tensor) else type(t).__name__ for t in (a, b)]
                raise BadInput(
                    "what a net remembers must be tensors whose first axis are the observations; for two and for three "
                    f"of them it gave {shapes[0]} and {shapes[1]}: move the axis, as in state.transpose(0, 1)"
                )


class Actors:
    """N policies, each with E episodes to play. Who has played them all leaves the batch."""

    def __init__(self, body: Body, points: Tensor, each: int) -> None:
        self.body, self.points, self.episodes = body, points, each
        self.nets = np.arange(len(points))
        self.weights = body.layout.weights(points)
        self.state: tuple[Any, ...] = ()  # of every episode of those in the batch [n, E, ...], once one has begun

    def keep(self, rows: NDArray[Any]) -> None:
        """Hear which of all N E episodes go on."""
        nets = np.unique(rows // self.episodes)
        if len(nets) <= SHARE * len(self.nets):
            stay = torch.from_numpy(np.searchsorted(self.nets, nets)).to(self.points.device)
            self.state = tree_map(lambda t: t[stay], self.state)
            self.nets = nets
            self.weights = self.body.layout.weights(self.points[torch.from_numpy(nets).to(self.points.device)])
        place = np.searchsorted(self.nets, rows // self.episodes)
        self.index = torch.from_numpy(place * self.episodes + rows % self.episodes).to(self.points.device)
        self.full = len(rows) == len(self.nets) * self.episodes

    def outputs(self, x: NDArray[Any]) -> Tensor:
        """Outputs [rows, K] of the observations [rows, *observation] of those that go on."""
        given = torch.from_numpy(x).to(self.points)
        if not self.full:
            wide = given.new_zeros(len(self.nets) * self.episodes, *given.shape[1:])
            wide[self.index] = given
            given = wide
        came = self.body.each(self.weights, given.unflatten(0, (len(self.nets), self.episodes)), *self.state)
        if self.body.remembers:
            came, self.state = came[0], came[1:]
        found: Tensor = came.flatten(0, 1)
        return (found if self.full else found[self.index]).cpu()
