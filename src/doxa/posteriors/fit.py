"""What numbers must be to be a posterior of a layout's weights; BadInput says which are not, and how."""

from __future__ import annotations

from torch import Tensor

from doxa.errors import BadInput
from doxa.storage.rows import are_finite
from doxa.weights.layout import Layout


def require_numbers(name: str, values: Tensor, shape: tuple[int | None, ...], like: Tensor | None = None) -> None:
    """Refuse what has another shape (None for any length from 1 up), is not real, or has another precision."""
    fits = len(values.shape) == len(shape) and all(
        length == expected or (expected is None and length > 0)
        for length, expected in zip(values.shape, shape, strict=True)
    )
    if not fits:
        expected_shape = "[" + ", ".join("any" if n is None else str(n) for n in shape) + "]"
        raise BadInput(f"{name} has shape {list(values.shape)}; expected {expected_shape}")
    if not values.dtype.is_floating_point:
        raise BadInput(f"{name} holds {values.dtype}; expected real numbers")
    if like is not None and values.dtype != like.dtype:
        raise BadInput(f"{name} holds {values.dtype}, but other weights {like.dtype}; expected the same")


def require_finite(name: str, values: Tensor) -> None:
    """Refuse NaN and infinity."""
    if not are_finite(values):
        raise BadInput(f"{name} holds NaN or infinity; expected finite numbers")


def require_random(random: int, layout: Layout) -> None:
    """Refuse another number of random weights than the layout's."""
    if random != layout.random:
        raise BadInput(f"{random} weights are random; the net's layout has {layout.random}")
