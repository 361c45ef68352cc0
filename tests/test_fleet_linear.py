"""Linear maps of nets that run together: the map itself, and gradients that lie as the weights do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from doxa.gradients.fleet_linear import FleetLinear

NETS, ROWS, INPUTS, OUTPUTS = 3, 5, 11, 7


class Copies(TorchDispatchMode):
    """Counts the tensors of a size that are copied."""

    def __init__(self, numel: int) -> None:
        super().__init__()
        self.numel, self.count = numel, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += func in (torch.ops.aten.clone.default, torch.ops.aten.copy_.default) and (
            result.numel() == self.numel
        )
        return result


def leaves_of(rows: int, has_bias: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows [K, B, in], and the weights and biases of nets as stretches of long vectors."""
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(NETS, OUTPUTS * INPUTS + OUTPUTS + 4, generator=generator, dtype=torch.float64)
    weight = flat[:, 2 : 2 + OUTPUTS * INPUTS].view(NETS, OUTPUTS, INPUTS).detach().requires_grad_()
    bias = flat[:, -OUTPUTS - 1 : -1].detach().requires_grad_() if has_bias else None
    return torch.randn(NETS, rows, INPUTS, generator=generator, dtype=torch.float64), weight, bias


def backward(
    function: Callable[..., Tensor], rows: int, has_bias: bool, mode: bool
) -> tuple[Tensor, list[Tensor], int]:
    """Outputs, gradients by rows, weight and bias, and how many copies of all weights were made."""
    x, weight, bias = leaves_of(rows, has_bias)
    x.requires_grad_()
    inputs = [t for t in (x, weight, bias) if t is not None]

    def nets() -> Tensor:
        if not mode:
            return torch.vmap(function)(*inputs)
        with FleetLinear():
            return torch.vmap(function)(*inputs)

    with Copies(NETS * OUTPUTS * INPUTS) as copies:
        output = nets()
        output.square().sum().backward()
    return output.detach(), [t.grad for t in inputs if t.grad is not None], copies.count


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows", [ROWS, INPUTS, 2 * INPUTS])
def test_it_is_the_same_map_with_the_same_gradients(rows: int, has_bias: bool) -> None:
    plain_output, plain_gradients, _ = backward(F.linear, rows, has_bias, mode=False)
    output, gradients, _ = backward(F.linear, rows, has_bias, mode=True)
    torch.testing.assert_close(output, plain_output, rtol=1e-13, atol=1e-13)
    assert len(gradients) == 2 + has_bias
    for gradient, plain_gradient in zip(gradients, plain_gradients, strict=True):
        torch.testing.assert_close(gradient, plain_gradient, rtol=1e-12, atol=1e-12)


def test_gradients_of_few_rows_are_not_copied() -> None:
    assert backward(F.linear, ROWS, True, mode=False)[2] == 1
    assert backward(F.linear, ROWS, True, mode=True)[2] == 0


def test_maps_of_many_rows_are_left_alone() -> None:
    """Their outputs are larger than their weights, and would be what is copied."""
    assert torch.equal(backward(F.linear, INPUTS, True, True)[0], backward(F.linear, INPUTS, True, False)[0])
    assert backward(F.linear, INPUTS, True, True)[0].stride() == (INPUTS * OUTPUTS, OUTPUTS, 1)


def test_tokens_are_left_alone() -> None:
    x, weight = torch.randn(2, 3, INPUTS), torch.randn(OUTPUTS, INPUTS)
    with FleetLinear():
        output = F.linear(x, weight)
    assert torch.equal(output, F.linear(x, weight))


def test_types_under_autocast_are_those_of_a_linear_map() -> None:
    x, weight, bias = torch.randn(ROWS, INPUTS), torch.randn(OUTPUTS, INPUTS), torch.randn(OUTPUTS)
    for given in (bias, None):
        with torch.autocast("cpu", torch.bfloat16):
            plain = F.linear(x, weight, given)
            with FleetLinear():
                output = F.linear(x, weight, given)
        assert output.dtype == plain.dtype == torch.bfloat16
        torch.testing.assert_close(output, plain, rtol=2e-2, atol=2e-2)


def test_views_of_what_is_transposed_are_those_of_what_is_not() -> None:
    """Views that join rows and units, or want pairs side by side, cannot be had of a transposed tensor."""
    x, weight = torch.randn(NETS, 4, INPUTS), torch.randn(NETS, 6, INPUTS)

    def joined(x: Tensor, weight: Tensor) -> Tensor:
        output = F.linear(x, weight)
        as_complex = torch.view_as_complex(output.view(4, 3, 2)).real.sum()
        return output.view(-1, 3).cos() + output.view((8, 3)) + output.view_as(torch.empty(8, 3)) + as_complex

    with FleetLinear():
        output = torch.vmap(joined)(x, weight)
    torch.testing.assert_close(output, torch.vmap(joined)(x, weight))
    with FleetLinear():
        assert x.view(torch.int32).dtype == torch.int32


def test_unflatten_is_torch_s() -> None:
    x = torch.arange(24.0).view(2, 12)
    with FleetLinear():
        assert torch.equal(x.unflatten(-1, (3, 4)), torch.arange(24.0).view(2, 3, 4))
        assert torch.equal(x.unflatten(dim=1, sizes=(4, -1)), torch.arange(24.0).view(2, 4, 3))
