"""The loss that attacks raise: that of the averaged prediction, and its gradient at the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.data.rows import as_inputs, as_tensor
from doxa.errors import BadInput
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import PredictionRequest, buffers_of, sweep
from doxa.random.keys import Key, isolated_rng
from doxa.weights.layout import call, module_mode

ROWS = 512  # swept at a time with a gradient


@dataclass(frozen=True)
class AveragedLoss:
    """J(x) = −log (1/S) Σₛ p(y | x, wₛ), a row at a time, on draws that are the same at every call.

    The average is inside the logarithm: it is the belief's own prediction that is attacked, not a mean of its draws'
    losses. The draws are not those of `Belief.predict`, so an attack does not know the randomness it is judged on.
    """

    belief: Belief
    y: Tensor
    samples: int
    key: Key

    def __call__(self, x: Tensor) -> Tensor:
        """The loss of each row [B]."""
        return -self._draws(x).log_predictive(self.y)

    def gradient(self, x: Tensor) -> Tensor:
        """∇ₓJ = −Σₛ rₛ ∇ₓ log p(y | x, wₛ),  rₛ = p(y | x, wₛ) / Σₜ p(y | x, wₜ), shaped as x.

        Drawn twice, first for the shares r and then for the gradients, so that one draw's graph is held at a time.
        """
        draw_share = self._draw_shares(x)
        gradient = torch.zeros_like(x)
        belief = self.belief
        with module_mode(belief.net, training=False), isolated_rng(x.device), torch.enable_grad():
            for s, draw in enumerate(belief.posterior.draws(self.samples, self.key)):
                weights, parameters = belief.layout.weights(draw.weights), belief.layout.parameters(draw.weights)
                buffers = buffers_of(draw, belief.buffers)
                for start in range(0, len(x), ROWS):
                    rows = slice(start, start + ROWS)
                    inputs = x[rows].detach().requires_grad_()
                    # In single precision 1 − p(y) is nothing where a net is all but certain, and half of its gradient.
                    output = call(belief.net, weights, buffers, inputs).double()
                    y = belief.likelihood.check(output, self.y[rows])
                    loss = -(draw_share[s, rows] * belief.likelihood.log_prob(output, y, parameters)).sum()
                    gradient[rows] += torch.autograd.grad(loss, inputs)[0]
        return gradient

    def _draw_shares(self, x: Tensor) -> Tensor:
        """r [S, B]: each draw's part in the averaged prediction, by its weight where draws do not count alike."""
        draws = self._draws(x)
        log_p = draws.log_prob(self.y)
        return (log_p if draws.weights is None else log_p + draws.weights.log()[:, None]).softmax(0)

    def _draws(self, x: Tensor) -> Draws:
        b = self.belief
        request = PredictionRequest(b.posterior, b.buffers, x, self.key)
        return sweep(b.net, b.layout, b.likelihood, [request], self.samples, ROWS)[0]


def averaged_loss(
    belief: Belief, x: Any, y: Any, samples: int, seed: int, low: float, high: float
) -> tuple[AveragedLoss, Tensor]:
    """The loss to raise and the inputs to raise it from, checked: one real tensor inside [low, high]."""
    inputs = as_inputs(x, like=belief.posterior.mean)
    if not isinstance(inputs, Tensor) or not inputs.dtype.is_floating_point:
        raise BadInput(
            "an attack changes one tensor of real numbers; x must be such a tensor, not several or whole numbers"
        )
    if not low < high:
        raise BadInput(f"low must lie below high; got low={low}, high={high}")
    if float(inputs.min()) < low or float(inputs.max()) > high:
        raise BadInput(
            f"x runs from {float(inputs.min()):g} to {float(inputs.max()):g}, outside the valid range "
            f"[{low:g}, {high:g}]; give the range of your inputs as low= and high="
        )
    if samples < 1:
        raise BadInput(f"samples must be at least 1, got {samples}")
    targets = as_tensor(y, "y").to(inputs.device)
    if targets.dim() == 0 or len(targets) != len(inputs):
        raise BadInput(f"x has {len(inputs)} rows but y has shape {tuple(targets.shape)}; give one target for each row")
    return AveragedLoss(belief, targets, samples, (seed, "attack")), inputs
