"""How well Markov chains have mixed: R-hat, and how many independent draws theirs are worth.

Values are [chains, draws, ...], everything behind the first two axes a quantity of its own. Weights of a net mix badly
and need not mix at all: hidden units may trade places without any change to the function. So these are asked of
functions of the weights, such as predictions at some x. Vehtari et al. (2021), Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from doxa.errors import BadInput

FEWEST_DRAWS = 4  # of a chain: two for each half
NUMBERS_AT_ONCE = 1 << 22

# Values of split chains [quantities, chains, draws] in float64 -> a number for each [quantities].
Statistic = Callable[[Tensor], Tensor]


def r_hat(values: Tensor) -> Tensor:
    """How much wider all chains are together than each by itself: 1 where they agree, above 1.01 where they do not
    [...].

    R̂ = √(((n − 1)/n W + B/n) / W),  W the variance within chains, B/n that of their means

    of halves of chains, of ranks made normal, the larger one of that of values and of their distances from the median:
    what has heavy tails, or the same middle and another spread, is seen too. NaN where nothing varies. Vehtari et al.
    (2021).
    """
    return _of_each(
        values, lambda v: torch.maximum(_split_r_hat(_normal_ranks(v)), _split_r_hat(_normal_ranks(_fold(v))))
    )


def ess_bulk(values: Tensor) -> Tensor:
    """How many independent draws would tell the middle of the distribution as well, of ranks made normal [...].

    S / (1 + 2 Σₜ ρₜ),  ρₜ the autocorrelation at lag t over all chains

    summed while pairs of neighbouring lags are positive, and never growing (Geyer, 1992). NaN where nothing varies.
    Vehtari et al. (2021).
    """
    return _of_each(values, lambda v: _effective_size(_normal_ranks(v)))


def ess_tail(values: Tensor) -> Tensor:
    """The same of the tails: the fewer of the draws that tell the 5 % and the 95 % quantile [...]. Vehtari et al.
    (2021)."""

    def tails(v: Tensor) -> Tensor:
        flat = v.flatten(1)
        low, high = (flat.quantile(q, dim=1)[:, None, None] for q in (0.05, 0.95))
        return torch.minimum(_effective_size((v <= low).double()), _effective_size((v <= high).double()))

    return _of_each(values, tails)


def ess_mean(values: Tensor) -> Tensor:
    """How many independent draws would tell the mean as well, of the values as they are [...]; for its standard error.

    error = sd / √ESS. Gelman et al. (2013), Bayesian data analysis, section 11.5.
    """
    return _of_each(values, _effective_size)


def _of_each(values: Tensor, statistic: Statistic) -> Tensor:
    """A statistic of every quantity's split chains, some quantities at a time."""
    if values.dim() < 2 or not values.dtype.is_floating_point:
        raise BadInput(
            f"values must be real numbers [chains, draws, ...]; got {values.dtype} of shape {tuple(values.shape)}"
        )
    chains, draws = values.shape[:2]
    if chains < 1 or draws < FEWEST_DRAWS:
        raise BadInput(f"chains of {FEWEST_DRAWS} draws and more can be compared; got {chains} chains of {draws}")
    columns = values.detach().reshape(chains, draws, -1)
    size = max(1, NUMBERS_AT_ONCE // (chains * draws))
    parts = []
    for part in columns.split(size, 2):
        halves = part.permute(2, 0, 1).double()
        half = draws // 2  # of an odd number the middle one is left out
        split = torch.cat([halves[:, :, :half], halves[:, :, draws - half :]], 1)
        usable = split.isfinite().flatten(1).all(1)
        result = statistic(torch.where(usable[:, None, None], split, 0))
        parts.append(torch.where(usable, result, math.nan))
    return torch.cat(parts).reshape(values.shape[2:])


def _normal_ranks(values: Tensor) -> Tensor:
    """z = Φ⁻¹((rank − 3/8) / (S + 1/4)), ties sharing their mean rank. Blom (1958)."""
    flat = values.flatten(1).contiguous()
    ordered = flat.sort(1).values
    below, upto = (torch.searchsorted(ordered, flat, right=right) for right in (False, True))
    rank = (below + upto + 1).double() / 2
    z: Tensor = torch.special.ndtri((rank - 0.375) / (flat.shape[1] + 0.25))
    return z.view_as(values)


def _fold(values: Tensor) -> Tensor:
    """Distances from the median, that of an even number between its middle two."""
    return (values - values.flatten(1).quantile(0.5, dim=1)[:, None, None]).abs()


def _split_r_hat(values: Tensor) -> Tensor:
    """R̂ of chains as they are, the square root of the ratio of variances."""
    draws = values.shape[2]
    within, between = values.var(2).mean(1), values.mean(2).var(1)  # B/n
    return ((draws - 1) / draws + between / within).sqrt()


def _effective_size(values: Tensor) -> Tensor:
    """S over the integrated autocorrelation time, by Geyer's initial monotone sequence."""
    _, chains, draws = values.shape
    covariance = _autocovariance(values).mean(1)  # [quantities, lags], the mean over chains
    within = covariance[:, 0] * draws / (draws - 1)
    total = covariance[:, 0] + values.mean(2).var(1)
    correlation = 1 - (within[:, None] - covariance) / total[:, None]
    correlation[:, 0] = 1
    lags = 2 * max(1, (draws - 3) // 2)  # the last of them are told by hardly any pair of states
    pairs = correlation[:, :lags].unflatten(1, (-1, 2)).sum(2)
    positive = (pairs > 0).cumprod(1)
    time = 2 * (pairs.cummin(1).values * positive).sum(1) - 1
    # The first lag of the pair at which it stops still counts, where it is positive.
    stop = (2 * positive.sum(1)).clamp_max(draws - 1)
    time = time + correlation.gather(1, stop[:, None])[:, 0].clamp_min(0)
    size = chains * draws
    return size / time.clamp_min(1 / math.log10(size))  # antithetic chains are worth more than they have, within bounds


def _autocovariance(values: Tensor) -> Tensor:
    """(1/n) Σₛ (vₛ − v̄)(vₛ₊ₜ − v̄) at every lag t, by Fourier transforms."""
    draws = values.shape[-1]
    centred = values - values.mean(-1, keepdim=True)
    length = 1 << (2 * draws - 1).bit_length()
    spectrum = torch.fft.rfft(centred, n=length)
    product: Tensor = torch.fft.irfft(spectrum * spectrum.conj(), n=length)[..., :draws] / draws
    return product
