"""Where noise meets an operation: a function mode that knows the leaves by identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from doxa.errors import BadInput
from doxa.noise.source import NoiseSource
from doxa.weights.probe import ATTENTION, OPEN_ATTENTION, OPERATIONS, arguments

Apply = Callable[[Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Site:
    """One linear map or convolution: its first leaves, by which it is known, and its second ones."""

    name: str
    weight: Tensor | None
    bias: Tensor | None
    weight_noise: Tensor | None
    bias_noise: Tensor | None
    channel_axis: int
    row_axes: tuple[int, ...]

    def shape(self, x: Tensor, channel_axis: int) -> tuple[int, ...]:
        """One number for each row and channel of x; positions share it."""
        return tuple(n if i in self.row_axes or i == channel_axis else 1 for i, n in enumerate(x.shape))


# A rule turns the plain operation into the noisy one: (apply, x, weight, bias, site, source) -> output.
Rule = Callable[[Apply, Tensor, Tensor, Tensor | None, Site, NoiseSource], Tensor]


class Interception(TorchFunctionMode):
    """Applies a rule at every site, and leaves all else as it is."""

    def __init__(self, sites: Sequence[Site], rule: Rule, source: NoiseSource) -> None:
        super().__init__()
        self.sites = sites
        self.rule = rule
        self.source = source
        self.visited: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is ATTENTION:
            with self:
                return OPEN_ATTENTION(*args, **kwargs)
        if func is torch.Tensor.unflatten:
            # The compiler cannot look into Tensor.unflatten under a mode; attention calls it.
            x, axis, sizes = args
            axis = axis % x.dim()
            return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])
        if func in OPERATIONS:
            x, weight, bias, rest, named = arguments(args, kwargs)
            for site in self.sites:
                if site.weight is weight or (site.weight is None and site.bias is bias):
                    self._mark_visited(site)

                    def apply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
                        return func(x, weight, bias, *rest, **named)

                    return self.rule(apply, x, weight, bias, site, self.source)
        return func(*args, **kwargs)

    def _mark_visited(self, site: Site) -> None:
        if torch.compiler.is_compiling():
            return
        if site.name in self.visited:
            raise BadInput(
                f"the net used {site.name} twice in one pass, but once when it was probed; its noise would differ "
                "between the two uses: use noise.shared for this net"
            )
        self.visited.append(site.name)
