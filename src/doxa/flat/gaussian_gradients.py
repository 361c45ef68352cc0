"""From the gradients that a pass leaves behind to those by mean and rho, and the step along them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from doxa.flat.adam import BiasCorrections, Decays, Moments, adam, as_tensor
from doxa.flat.draws import NO_NOISE_ARGUMENTS, RHO_LIMIT, RegenerableNoise, fill_scale
from doxa.flat.prior import PriorGradientKind, PriorGradients, mixture_slope
from doxa.flat.rows import column_chunks, empty_rows, same_stride, triton_grid
from doxa.kernels import cuda, kernel, mark_written, pointer, stride


class ScalePullback(IntEnum):
    """How the gradient by the scale comes from the one that is given."""

    IDENTITY = 0
    TIMES_EPSILON = 1
    TIMES_TWICE_SCALE = 2


@dataclass(frozen=True)
class GaussianGradientInputs:
    """All that the gradients by mean and rho are made of, rows [K, n] of each.

    `gradient` is the one by the first leaf, `second_gradient` stands for the one by the scale, as `pullback` says;
    `kl_weights` [K] are those of the KL, whose own slopes are added. An ε that was not kept is made again out of its
    `regenerable_noise`.
    """

    mean: Tensor
    rho: Tensor
    gradient: Tensor
    second_gradient: Tensor
    epsilon: Tensor | None
    pullback: ScalePullback
    kl_weights: Tensor
    prior_gradients: PriorGradients
    draws: int = 1  # gradient, given and epsilon have a row for each draw of each net, [S · K, n]; their sum counts
    regenerable_noise: RegenerableNoise | None = None

    def columns(self, span: slice) -> GaussianGradientInputs:
        """Those of some columns."""
        epsilon = None if self.epsilon is None else self.epsilon[:, span]
        regenerable_noise = None if self.regenerable_noise is None else self.regenerable_noise.columns(span)
        mean, rho, gradient, second_gradient = (
            t[:, span] for t in (self.mean, self.rho, self.gradient, self.second_gradient)
        )
        prior_gradients = self.prior_gradients.columns(span)
        return GaussianGradientInputs(
            mean,
            rho,
            gradient,
            second_gradient,
            epsilon,
            self.pullback,
            self.kl_weights,
            prior_gradients,
            self.draws,
            regenerable_noise,
        )

    def with_epsilon(self) -> GaussianGradientInputs:
        """The same with the ε that was not kept."""
        needed = (
            self.pullback is ScalePullback.TIMES_EPSILON and self.epsilon is None and self.regenerable_noise is not None
        )
        if not needed:
            return self
        assert self.regenerable_noise is not None
        return replace(self, epsilon=self.regenerable_noise.regenerate(self.rho))

    def has_uniform_strides(self, mean_moments: Moments | None = None, rho_moments: Moments | None = None) -> bool:
        """Whether what a kernel walks through with one stride has one."""
        first = () if mean_moments is None else (mean_moments.mean, mean_moments.square)
        second = () if rho_moments is None else (rho_moments.mean, rho_moments.square)
        centres = self.prior_gradients.centres, self.prior_gradients.precisions
        return same_stride(self.mean, *first) and same_stride(self.rho, self.epsilon, *second) and same_stride(*centres)

    def fits_c_kernel(self) -> bool:
        """Whether the C kernels, which know one draw and steps by their numbers, can do it."""
        return self.draws == 1 and (
            self.regenerable_noise is None or not isinstance(self.regenerable_noise.stream.step, Tensor)
        )

    def vectors(self) -> tuple[Tensor | None, ...]:
        return (
            self.mean,
            self.rho,
            self.gradient,
            self.second_gradient,
            self.epsilon,
            self.prior_gradients.centres,
            self.prior_gradients.precisions,
        )

    def launch(self, on_gpu: Any, rest: tuple[Any, ...], step: bool) -> None:
        """Run the Triton kernel; what is not there is stood in for by what is."""
        p, placeholder = self.prior_gradients, self.mean
        coefficients = self.kl_weights if p.coefficients is None else p.coefficients
        prior = (
            coefficients,
            stride(p.precisions),
            *(placeholder if t is None else t for t in (p.centres, p.precisions)),
        )
        inputs = stride(self.gradient), self.gradient, stride(self.second_gradient), self.second_gradient
        places = stride(self.mean), stride(self.rho), placeholder if self.epsilon is None else self.epsilon
        flags = int(self.pullback), int(p.kind), p.centres is not None, step, self.draws, len(self.mean), cuda.WIDE
        size = self.mean.shape[1]
        on_gpu[triton_grid(self.mean)](
            size, self.kl_weights, *prior, *inputs, *places, self.mean, self.rho, *rest, *flags
        )

    def arguments(self) -> tuple[Any, ...]:
        """As the C kernels take them."""
        p = self.prior_gradients
        prior = pointer(p.coefficients), stride(p.precisions), pointer(p.centres), pointer(p.precisions)
        inputs = (
            stride(self.gradient),
            pointer(self.gradient),
            stride(self.second_gradient),
            pointer(self.second_gradient),
        )
        regenerable_noise = NO_NOISE_ARGUMENTS if self.regenerable_noise is None else self.regenerable_noise.arguments()
        places = (
            stride(self.mean),
            stride(self.rho),
            *regenerable_noise,
            pointer(self.epsilon),
            pointer(self.mean),
            pointer(self.rho),
        )
        return (*self.mean.shape, self.pullback, p.kind, pointer(self.kl_weights), *prior, *inputs, *places)


def gaussian_adam(
    inputs: GaussianGradientInputs,
    mean_moments: Moments,
    rho_moments: Moments,
    rates: Tensor,
    corrections: BiasCorrections,
    decays: Decays,
) -> None:
    """One step of Adam on mean and rho. Kingma & Ba (2015), Adam: a method for stochastic optimization."""
    states = mean_moments.mean, mean_moments.square, rho_moments.mean, rho_moments.square
    same_strides, vectors = inputs.has_uniform_strides(mean_moments, rho_moments), (*inputs.vectors(), *states)
    on_gpu = cuda.kernel("descend", *vectors) if same_strides else None
    if on_gpu is not None:
        rest = rates, as_tensor(corrections, inputs.mean), *decays, *states
        inputs.with_epsilon().launch(on_gpu, rest, step=True)
        return
    compiled = (
        kernel("doxa_descend", *vectors)
        if same_strides and inputs.fits_c_kernel() and isinstance(corrections, tuple)
        else None
    )
    if compiled is not None:
        compiled(*inputs.arguments(), pointer(rates), *decays, *corrections, *map(pointer, states))
        mark_written(inputs.mean, inputs.rho, *states)
        return
    for span in column_chunks(inputs.mean.shape[1], inputs.mean.device):
        columns = inputs.columns(span)
        by_mean, by_rho = mean_and_rho_gradients(columns)
        adam(columns.mean, by_mean, mean_moments.columns(span), rates, corrections, decays)
        adam(columns.rho, by_rho, rho_moments.columns(span), rates, corrections, decays)


def fill_gradients(inputs: GaussianGradientInputs, by_mean: Tensor, by_rho: Tensor) -> None:
    """The gradients by mean and rho, for optimisers of other kinds."""
    same_strides = (
        inputs.has_uniform_strides() and same_stride(inputs.mean, by_mean) and same_stride(inputs.rho, by_rho)
    )
    on_gpu = cuda.kernel("descend", *inputs.vectors(), by_mean, by_rho) if same_strides else None
    if on_gpu is not None:
        placeholder = inputs.kl_weights
        rest = placeholder, placeholder, 0.0, 0.0, 0.0, 0.0, 0.0, by_mean, by_mean, by_rho, by_rho
        inputs.with_epsilon().launch(on_gpu, rest, step=False)
        return
    compiled = (
        kernel("doxa_slopes", *inputs.vectors(), by_mean, by_rho) if same_strides and inputs.fits_c_kernel() else None
    )
    if compiled is not None:
        compiled(*inputs.arguments(), pointer(by_mean), pointer(by_rho))
        mark_written(by_mean, by_rho)
        return
    for span in column_chunks(inputs.mean.shape[1], inputs.mean.device):
        by_mean[:, span], by_rho[:, span] = mean_and_rho_gradients(inputs.columns(span))


def accumulate_gradients(
    gradient: Tensor,
    second_gradient: Tensor,
    epsilon: Tensor | None,
    rho: Tensor | None,
    scale: Tensor | None,
    pullback: ScalePullback,
    by_mean: Tensor,
    by_scale: Tensor,
    add: bool,
    regenerable_noise: RegenerableNoise | None = None,
) -> None:
    """Write one draw's gradients to those by mean and scale, or add them there; the scale is given or made of rho."""
    times_twice_scale = pullback is ScalePullback.TIMES_TWICE_SCALE
    vectors = gradient, second_gradient, epsilon, rho, by_mean, by_scale
    same_strides = (
        same_stride(by_mean, by_scale) and same_stride(epsilon, rho) and (rho is not None or not times_twice_scale)
    )
    step_is_number = regenerable_noise is None or not isinstance(regenerable_noise.stream.step, Tensor)
    compiled = kernel("doxa_collect", *vectors) if same_strides and step_is_number else None
    if compiled is not None:
        rows = stride(gradient), pointer(gradient), stride(second_gradient), pointer(second_gradient)
        numbers = NO_NOISE_ARGUMENTS if regenerable_noise is None else regenerable_noise.arguments()
        places = *numbers, stride(rho if times_twice_scale else epsilon), pointer(epsilon), pointer(rho)
        compiled(*gradient.shape, add, pullback, *rows, *places, stride(by_mean), pointer(by_mean), pointer(by_scale))
        mark_written(by_mean, by_scale)
        return
    if not add:
        by_mean.zero_()
        by_scale.zero_()
    for span in column_chunks(gradient.shape[1], gradient.device):
        if times_twice_scale and rho is not None:
            factor = fill_scale(empty_rows(rho[:, span]), rho[:, span])
        elif times_twice_scale:
            assert scale is not None
            factor = scale[:, span]
        elif epsilon is not None:
            factor = epsilon[:, span]
        else:
            assert regenerable_noise is not None
            factor = regenerable_noise.columns(span).regenerate(second_gradient[:, span])
        by_mean[:, span] += gradient[:, span]
        by_scale[:, span].addcmul_(second_gradient[:, span], factor, value=2 if times_twice_scale else 1)


def mean_and_rho_gradients(inputs: GaussianGradientInputs) -> tuple[Tensor, Tensor]:
    """The gradients by mean and rho, stated in torch."""
    inputs = inputs.with_epsilon()
    scale = fill_scale(empty_rows(inputs.rho), inputs.rho)
    weight, nets = inputs.kl_weights[:, None], len(inputs.mean)
    by_mean, by_scale = torch.zeros_like(scale), torch.zeros_like(scale)
    for d in range(inputs.draws):
        net_rows = slice(d * nets, (d + 1) * nets)
        gradient, second_gradient = inputs.gradient[net_rows], inputs.second_gradient[net_rows]
        epsilon = None if inputs.epsilon is None else inputs.epsilon[net_rows]
        if inputs.prior_gradients.kind is PriorGradientKind.MIXTURE:
            assert inputs.prior_gradients.coefficients is not None
            assert epsilon is not None
            coefficients = (inputs.prior_gradients.coefficients[:, i : i + 1] for i in range(4))
            slope = mixture_slope(torch.addcmul(inputs.mean, scale, epsilon), *coefficients)
            gradient = second_gradient = gradient - weight / inputs.draws * slope
        by_mean += gradient
        if inputs.pullback is ScalePullback.TIMES_EPSILON:
            assert epsilon is not None
            by_scale.addcmul_(second_gradient, epsilon)
        elif inputs.pullback is ScalePullback.TIMES_TWICE_SCALE:
            by_scale.addcmul_(second_gradient, scale, value=2)
        else:
            by_scale += second_gradient
    if inputs.prior_gradients.kind in (PriorGradientKind.LINEAR_PER_NET, PriorGradientKind.LINEAR_PER_WEIGHT):
        centre, precision = inputs.prior_gradients.centre_and_precision()
        weighted_precision = weight * precision
        by_mean.addcmul_(inputs.mean - centre, weighted_precision)
        by_scale.addcmul_(scale, weighted_precision)
    by_scale.addcdiv_(weight, scale, value=-1)
    return by_mean, by_scale.mul_(torch.clamp(inputs.rho, -RHO_LIMIT, RHO_LIMIT, out=scale).sigmoid_())
