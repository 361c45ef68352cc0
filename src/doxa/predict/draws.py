"""What draws of the weights say of rows of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Likelihood
from doxa.errors import BadInput
from doxa.likelihoods import over_draws


@dataclass(frozen=True)
class Draws:
    """What S draws of the weights say of B rows: one coherent function a draw.

    `outputs` are the net's raw outputs [S, B, ·]; `parameters` the likelihood's own, [S, 1, ·]; `weights` [S] say how
    much each draw counts, None that all count alike. Every average is over the weighted draws.
    """

    outputs: Tensor
    likelihood: Likelihood
    parameters: Mapping[str, Tensor]
    weights: Tensor | None = None

    def __len__(self) -> int:
        return self.outputs.shape[0]

    @property
    def means(self) -> Tensor:
        """E[y | x, wₛ] for each draw [S, B, ·]: class probabilities, or locations."""
        return self.likelihood.mean(self.outputs, self.parameters)

    @property
    def mean(self) -> Tensor:
        """The posterior predictive mean [B, ·]: probabilities are averaged, never logits."""
        return over_draws.mean(self.means, self.weights)

    @property
    def aleatoric(self) -> Tensor:
        """The part of the standard deviation that no amount of data would remove: √E[Var(y | w)]."""
        variances = self.likelihood.variance(self.outputs, self.parameters)
        return over_draws.mean(variances, self.weights).sqrt()

    @property
    def epistemic(self) -> Tensor:
        """The part that comes from not knowing the weights: √Var(E[y | w])."""
        return over_draws.std(self.means, self.weights)

    @property
    def std(self) -> Tensor:
        """Standard deviation [B, ·]: of y, noise included, for regression; of the probabilities for classification."""
        if self.likelihood.discrete:
            return self.epistemic
        return (self.aleatoric.square() + self.epistemic.square()).sqrt()

    def quantile(self, q: float) -> Tensor:
        """The q-quantile [B, ·]: of y, noise included, for regression; of each probability for classification."""
        # Of a real target the 0 and 1 quantiles are infinite.
        if not (0 < q < 1 or (q in (0, 1) and self.likelihood.discrete)):
            raise BadInput(f"q must lie between 0 and 1, got {q}; 0.9 asks for the 90 % quantile")
        return self.likelihood.quantile(self.outputs, q, self.parameters, **self._weight_arguments)

    def entropy(self) -> Tensor:
        """H[y | x] in nats [B]: how unsure the averaged prediction is.

        With several labels a row it is the sum over labels of their entropies, an upper bound on their joint one; for
        several real targets it is the joint one, by quadrature.
        """
        return self.entropies()[0]

    def mutual_information(self) -> Tensor:
        """I[y; w | x] in nats [B]: how much of that is disagreement between draws (Houlsby et al., 2011).

        With several labels a row it is the sum of what each label alone would tell of the weights.
        """
        mixed, parts = self.entropies()
        return (mixed - parts).clamp_min(0)

    def entropies(self) -> tuple[Tensor, Tensor]:
        """The entropy of the averaged prediction and the mean entropy of the draws', each [B]."""
        return self.likelihood.entropy(self.outputs, self.parameters, **self._weight_arguments)

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y | x, wₛ) of each draw and row [S, B]."""
        return self.likelihood.log_prob(self.outputs, self.likelihood.check(self.outputs[0], y), self.parameters)

    def log_predictive(self, y: Tensor) -> Tensor:
        """log p(y | x) of each row [B]: densities are averaged, then logged.

        log p(y | x) = log Σₛ weightsₛ p(y | x, wₛ)
        """
        return over_draws.log_mean_exp(self.log_prob(y), self.weights)

    @property
    def _weight_arguments(self) -> dict[str, Tensor]:
        """What a likelihood is told of the weights: nothing where there is nothing to tell."""
        return {} if self.weights is None else {"weights": self.weights}
