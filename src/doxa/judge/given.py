"""What a belief is judged on."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from doxa.belief import Belief
from doxa.contracts import Inputs
from doxa.errors import BadInput
from doxa.rows import as_inputs, as_tensor, count, require_finite


def given(belief: Belief, data: Any) -> tuple[Inputs, Tensor]:
    """(x, y) as tensors on the belief's device, checked against each other."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise BadInput(f"data must be a pair (x, y) of arrays or tensors; got {type(data).__name__}")
    x = as_inputs(data[0], like=belief.posterior.mean)
    y = as_tensor(data[1], "y")
    if y.dim() == 0 or len(y) != count(x):
        raise BadInput(f"x has {count(x)} rows but y has shape {tuple(y.shape)}; give one target for each row")
    require_finite("y", y)
    return x, y.to(belief.posterior.mean.device)
