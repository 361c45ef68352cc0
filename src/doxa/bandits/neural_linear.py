"""Neural linear: Bayesian linear regression on what a net has learned to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from doxa.bandits.agent_context import ActionSelector, AgentContext
from doxa.engine.contracts import State
from doxa.errors import BadInput, require_positive, require_whole
from doxa.random import streams
from doxa.random.philox import Stream, fill_normals
from doxa.weights.layout import call

ROWS = 1 << 21  # numbers of features that are worked out at a time


@dataclass(frozen=True)
class NeuralLinear:
    """Thompson sampling of the last layer alone: the net gives features φ, their weights have an exact posterior.

    Λ = ΦᵀΦ/σ² + I/s²,  μ = Λ⁻¹Φᵀr/σ²,  a = argmaxₐ φ(x, a)ᵀβ,  β ~ N(μ, Λ⁻¹)

    Φ are the inputs of the net's last linear map, and a one, for all that is remembered; σ² is the likelihood's
    variance, s the prior's `scale`. The posterior is worked out anew `every` so many steps.
    Riquelme, Tucker & Snoek (2018), Deep Bayesian bandits showdown.
    """

    scale: float = 1.0
    every: int = 1

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_whole("every", self.every)

    @property
    def kind(self) -> tuple[Any, ...]:
        return NeuralLinear, self.every

    def start(self, context: AgentContext, fleet: Sequence[NeuralLinear]) -> ActionSelector:
        if context.nets > 1:
            raise BadInput("neural_linear takes its features from one net; give it one learner, not an ensemble")
        return NeuralLinearSelector(context, [policy.scale for policy in fleet], self.every)


class NeuralLinearSelector:
    """Agents with the posterior of their last layer: its mean [M, F] and a factor R of its covariance [M, F, F]."""

    def __init__(self, context: AgentContext, scales: Sequence[float], every: int) -> None:
        self.context, self.every = context, every
        self.last = _last_linear(context.problem.net)
        like = context.inputs
        self._require_last_layer(like[:3])
        size = self.last.in_features + 1
        self.mean = like.new_zeros(context.agents, size)
        self.factor = like.new_zeros(context.agents, size, size)
        self.precision = torch.tensor(scales, dtype=torch.float64, device=like.device).pow(-2)
        self.age = torch.zeros(1, dtype=torch.int64)  # steps since it was worked out

    def features(self, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """A net's φ [n, F]: what goes into its last linear map, and a one."""
        last_inputs: list[Tensor] = []
        hook = self.last.register_forward_pre_hook(lambda module, inputs: last_inputs.append(inputs[0]))
        try:
            call(self.context.problem.net, weights, buffers, x)
        finally:
            hook.remove()
        return torch.cat([last_inputs[0], torch.ones_like(last_inputs[0][:, :1])], 1)

    def choose(self, x: Tensor, stream: Stream) -> Tensor:
        phi = self.context.forward(self.features, self.context.beliefs.mean, x)
        z = torch.empty_like(self.mean)
        fill_normals(z, stream.with_number(streams.BANDIT_DRAWS))
        weight_draws = self.mean + (self.factor @ z[:, :, None])[:, :, 0]
        return (phi @ weight_draws[:, :, None])[:, :, 0].argmax(1)

    @torch.no_grad()
    def refresh(self, count: Tensor) -> None:
        if int(self.age) % self.every == 0:
            self._refresh(count)
        self.age += 1

    def _refresh(self, count: Tensor) -> None:
        context, flat = self.context, self.context.beliefs.mean
        size = self.mean.shape[1]
        gram, cross = (torch.zeros(context.agents, size, n, dtype=torch.float64, device=flat.device) for n in (size, 1))
        filled = torch.arange(context.replay.size, device=flat.device) < count
        step = max(1, ROWS // (context.agents * size))
        for first in range(0, context.replay.size, step):
            block = slice(first, first + step)
            phi = context.forward(self.features, flat, context.inputs[context.replay.cells[:, block]]).double()
            phi = phi * filled[block, None]
            gram += phi.mT @ phi
            cross += phi.mT @ context.replay.rewards[:, block, None].double()
        variance = self._variance(flat)
        identity = torch.eye(size, dtype=torch.float64, device=flat.device)
        # An agent that has diverged must not stop the others: its factor may be no number.
        lower, _ = torch.linalg.cholesky_ex(gram / variance + self.precision[:, None, None] * identity)
        self.mean.copy_(torch.cholesky_solve(cross / variance, lower)[:, :, 0])
        # With Λ = LLᵀ, R = L⁻ᵀ has RRᵀ = Λ⁻¹.
        self.factor.copy_(torch.linalg.solve_triangular(lower.mT, identity.expand_as(gram), upper=True))

    def _variance(self, flat: Tensor) -> Tensor:
        """The likelihood's σ² for each agent [M, 1, 1]."""
        problem = self.context.problem
        outputs = flat.new_zeros(len(flat), 1, 1)
        parameters = {k: p.view(len(flat), 1, -1) for k, p in problem.layout.parameters(flat).items()}
        return problem.likelihood.variance(outputs, parameters).double().expand(len(flat), 1, 1)

    @torch.no_grad()
    def _require_last_layer(self, x: Tensor) -> None:
        """Refuse a net that does more after its last linear map."""
        context, first_mean = self.context, self.context.beliefs.mean[:1]
        weights = {k: w[0] for k, w in context.problem.layout.weights(first_mean).items()}
        buffers = {k: b[0] for k, b in context.buffers.items()}
        outputs = call(context.problem.net, weights, buffers, x)
        phi = self.features(weights, buffers, x)[:, :-1]
        name = next(n for n, m in context.problem.net.named_modules() if m is self.last)
        prefix = f"{name}." if name else ""
        tensors = weights | buffers
        linear = phi @ tensors[f"{prefix}weight"].T + tensors.get(f"{prefix}bias", 0)
        if not torch.allclose(linear, outputs, atol=1e-4, rtol=1e-4):
            raise BadInput(
                "neural_linear needs a net that ends with its last nn.Linear: this one does something to its output"
            )

    def state(self) -> State:
        return State(moving={"mean": self.mean, "factor": self.factor, "age": self.age})


def _last_linear(net: nn.Module) -> nn.Linear:
    linear_layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not linear_layers or linear_layers[-1].out_features != 1:
        raise BadInput("neural_linear needs a net whose last layer is an nn.Linear with one output, the reward")
    return linear_layers[-1]
