"""The log-density of flat weights: asked of families that have one, refused in words by those that have none."""

from __future__ import annotations

from torch import Tensor

from doxa.contracts import Posterior
from doxa.errors import BadInput


def log_density(q: Posterior, w: Tensor) -> Tensor:
    """log q(w) of flat weights [..., P], where q tells it: a posterior of one's own need not."""
    log_prob = getattr(q, "log_prob", None)
    if log_prob is None:
        raise BadInput(f"a {type(q).__name__} does not tell its density; give it a log_prob(w) of weights [..., P]")
    density: Tensor = log_prob(w)
    return density


def no_density(where: str) -> BadInput:
    """What a family says that has point masses in the place of a density."""
    return BadInput(f"{where}: there is no density, and no KL to a prior; mean_field has both, and mixtures of it")


def require_flat(w: Tensor, size: int) -> None:
    """Refuse what is no real vector of as many weights as a posterior has."""
    if not isinstance(w, Tensor):
        raise BadInput(f"w is a {type(w).__name__}; expected real numbers [..., {size}] as a tensor")
    if w.dim() == 0 or w.shape[-1] != size or not w.dtype.is_floating_point:
        raise BadInput(f"w holds {w.dtype} of shape {list(w.shape)}; expected real numbers [..., {size}]")
