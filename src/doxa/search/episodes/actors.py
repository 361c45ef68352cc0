"""Many policies as one program: a net's outputs with the weights of every perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from doxa.errors import BadInput
from doxa.layout import Layout, call, constants, lay_out

SHARE = 0.75  # of a batch: when fewer policies still play, the others leave it


class Body:
    """A net that acts, and how its weights lie."""

    def __init__(self, net: nn.Module, shape: tuple[int, ...], outputs: int) -> None:
        self.net = net
        self.layout: Layout
        self.start: Tensor
        self.layout, self.start = lay_out(net)
        self.buffers = constants(net)
        self.outputs = outputs
        self.together = True
        self._try(shape)

    def run(self, weights: dict[str, Tensor], x: Tensor) -> Tensor:
        """Outputs [E, K] of observations [E, *observation]."""
        return call(self.net, weights, self.buffers, x)

    def each(self, weights: dict[str, Tensor], x: Tensor) -> Tensor:
        """Outputs [n, E, K] of n nets, each with observations [n, E, *observation] of its own."""
        if self.together:
            return torch.vmap(self.run)(weights, x)
        return torch.stack([self.run({k: w[n] for k, w in weights.items()}, x[n]) for n in range(len(x))])

    def _try(self, shape: tuple[int, ...]) -> None:
        x = self.start.new_zeros(2, *shape)
        try:
            found = self.run(self.layout.weights(self.start), x)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise BadInput(
                f"the net cannot take observations of shape {shape}, of which it was given two: {error}"
            ) from error
        if found.shape != (2, self.outputs):
            raise BadInput(
                f"the net turned two observations into outputs of shape {tuple(found.shape)}; the environment's "
                f"actions need (2, {self.outputs})"
            )
        try:
            self.each(self.layout.weights(self.start[None]), x[None])
        except RuntimeError:  # some of torch's layers cannot run with many weights at once
            self.together = False


class Actors:
    """N policies, each with E episodes to play. Who has played them all leaves the batch."""

    def __init__(self, body: Body, points: Tensor, each: int) -> None:
        self.body, self.points, self.episodes = body, points, each
        self.nets = np.arange(len(points))
        self.weights = body.layout.weights(points)

    def keep(self, rows: NDArray[Any]) -> None:
        """Hear which of all N E episodes go on."""
        nets = np.unique(rows // self.episodes)
        if len(nets) <= SHARE * len(self.nets):
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
        found = self.body.each(self.weights, given.unflatten(0, (len(self.nets), self.episodes))).flatten(0, 1)
        return (found if self.full else found[self.index]).cpu()
