"""Linear maps of nets that run together, so that autograd makes the gradients as the weights lie."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from doxa.noise.interception import unflatten
from doxa.weights.probe import arguments


class FleetLinear(TorchFunctionMode):
    """Answers F.linear of few rows and many inputs with the same map, transposed: y = (W xᵀ + c)ᵀ.

    Of x Wᵀ with a W for each net torch makes the gradient by Wᵀ, [K, in, out], and copies it into the order of W, which
    reads against the grain of memory. Of W xᵀ the gradient by W is g xᵀ, [K, out, in], and stays where it was made.
    What is transposed instead are outputs, [K, rows, out], which are smaller where there are fewer rows than inputs.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.unflatten:
            return unflatten(*args, **kwargs)
        # What is transposed is not contiguous, as these want it.
        if func is torch.Tensor.view and not kwargs and not isinstance(args[1], torch.dtype):
            return args[0].reshape(*args[1:])
        if func is torch.Tensor.view_as:
            return args[0].reshape(args[1].shape)
        if func is torch.view_as_complex:
            return func(args[0].contiguous())
        if func is F.linear:
            x, weight, bias, _, _ = arguments(args, kwargs)
            if x.dim() == weight.dim() == 2 and len(x) < weight.shape[1]:
                return transposed_linear(x, weight, bias)
        return func(*args, **kwargs)


def transposed_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(W xᵀ + c)ᵀ [B, out], in the types that autocast gives x Wᵀ + c."""
    product = weight @ x.t() if bias is None else torch.addmm(bias[:, None], weight, x.t())
    return product.t()
