"""Where noise meets an operation: a function mode that knows the leaves by identity.

A rule must be applied where a weight is used, in whatever way a net is written. Modules do not tell: a weight may be
handed to F.linear by any code, and attention hides its maps in one function. Names do not reach a function. A subclass
of Tensor that carries its noise does reach it, but not through vmap and torch.compile together. But the leaf that the
net is called with arrives at the operation as the same Python object, and `is` asks for it at no cost, alone, in a
fleet and in a compiled program: there the leaves are the program's arguments, and sites are made of them inside it.
What does something to a weight first (x @ w.T, weight norm) hands on another object; the probing pass has seen that,
and such a weight has a shared draw.
"""

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
    """One linear map or convolution: its first leaves, by which it is known, and its second ones.

    `row_axes` are the axes of its input that grow with the rows: what is drawn for each row is shared by all others.
    """

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


def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """What Tensor.unflatten gives: the compiler cannot look into that under a mode, and attention calls it."""
    dim = dim % x.dim()
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


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
            with self:  # a mode is off while it answers, and the maps inside must be seen
                return OPEN_ATTENTION(*args, **kwargs)
        if func is torch.Tensor.unflatten:
            return unflatten(*args, **kwargs)
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
        """Refuse a second use, whose noise would differ although the weight is one: nets may branch on their data."""
        if torch.compiler.is_compiling():
            return
        if site.name in self.visited:
            raise BadInput(
                f"the net used {site.name} twice in one pass, but once when it was probed; its noise would differ "
                "between the two uses: use noise.shared for this net"
            )
        self.visited.append(site.name)
