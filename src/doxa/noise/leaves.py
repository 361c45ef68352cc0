"""The tensors a net runs on while its weights are beliefs, and the way back from their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from doxa.layout import Layout
from doxa.noise.interception import Interception, Site
from doxa.probe import Uses
from doxa.randomness import Key, Normals

# Long vectors are worked through in pieces: small enough to need little memory, large enough for all threads to pay.
BLOCK = 1 << 19


@dataclass(frozen=True)
class Noise:
    """A noise is three small functions: second leaf, rule at an operation, pull-back to the scale.

    Without a rule the net runs plainly on drawn weights.
    """

    name: str
    second: Callable[[Tensor, Tensor | None], Tensor] | None = None
    pull_back: Callable[[Tensor, Tensor, Tensor | None], Tensor] | None = None
    rule: Callable[..., Tensor] | None = None
    draws_weights: bool = True  # whether the second leaf needs ε

    def reaches(self, uses: Uses, name: str) -> bool:
        """Whether the rule applies to this weight; otherwise it gets a shared draw."""
        return self.rule is not None and name in uses.single


def leaves_of(layout: Layout, flat: Tensor, gradient: Tensor) -> dict[str, Tensor]:
    """Leaf views of a flat vector, by name, whose gradients accumulate into views of a flat gradient."""
    gradients = layout.views(gradient)
    leaves = {}
    for name, view in layout.views(flat).items():
        leaf = view.detach().requires_grad_()
        leaf.grad = gradients[name]
        leaves[name] = leaf
    return leaves


class Leaves:
    """First leaves [P], second leaves and ε [R], with flat gradients; filled by `draw`, emptied by `pull`."""

    def __init__(
        self,
        layout: Layout,
        uses: Uses,
        noise: Noise,
        mean: Tensor,
        gradient: Tensor,
        epsilon: Tensor | None = None,
    ) -> None:
        self.layout, self.noise, self.gradient = layout, noise, gradient
        self.ruled = _spans(layout, uses, noise, ruled=True)
        self.drawn = _spans(layout, uses, noise, ruled=False)
        random = layout.random
        self.flat = torch.empty_like(mean) if self.drawn else mean
        self.first = leaves_of(layout, self.flat, gradient)
        self.epsilon = None
        if self.drawn or noise.draws_weights:
            self.epsilon = mean.new_zeros(random) if epsilon is None else epsilon
        self.second = mean.new_zeros(random) if self.ruled else None
        self.second_gradient = mean.new_zeros(random) if self.ruled else None
        self.sites = self._sites(uses)

    def _sites(self, uses: Uses) -> list[Site]:
        if self.second is None or self.second_gradient is None:
            return []
        random = Layout(self.layout.random_slots)
        seconds = leaves_of(random, self.second, self.second_gradient)
        sites = []
        for names in uses.operations().values():
            use = uses.single[next(iter(names.values()))]
            weight, bias = names.get("weight"), names.get("bias")
            sites.append(
                Site(
                    name=weight or bias or "",
                    weight=self.first[weight] if weight else None,
                    bias=self.first[bias] if bias else None,
                    weight_noise=seconds[weight] if weight else None,
                    bias_noise=seconds[bias] if bias else None,
                    channel_axis=use.channel_axis,
                    row_axes=use.row_axes,
                )
            )
        return sites

    @torch.no_grad()
    def draw(self, mean: Tensor, scale: Tensor, key: Key, sign: float = 1.0) -> None:
        """Fill the leaves with a draw from N(mean, scale²); `sign` −1 gives the antithetic one."""
        normals = Normals(key, mean)
        for span in self.spans():
            epsilon = None
            if self.epsilon is not None and (self.noise.draws_weights or not self.is_ruled(span)):
                epsilon = normals.fill(self.epsilon[span])
                if sign < 0:
                    epsilon.neg_()
            if self.is_ruled(span):
                assert self.second is not None
                assert self.noise.second is not None
                self.second[span] = self.noise.second(scale[span], epsilon)
                if self.drawn:
                    self.flat[span] = mean[span]
            else:
                assert epsilon is not None
                torch.addcmul(mean[span], scale[span], epsilon, out=self.flat[span])
        if self.drawn:
            tail = slice(self.layout.random, None)
            self.flat[tail] = mean[tail]
        if self.second_gradient is not None:
            self.second_gradient.zero_()
        self.gradient.zero_()

    def pull(self, span: slice, scale: Tensor, into: Tensor, add: bool) -> None:
        """Write the gradient with respect to the scale of one of `spans` into a flat vector, or add it there."""
        if self.is_ruled(span):
            assert self.second_gradient is not None
            assert self.noise.pull_back is not None
            epsilon = None if self.epsilon is None else self.epsilon[span]
            found = self.noise.pull_back(self.second_gradient[span], scale[span], epsilon)
            into[span] = into[span] + found if add else found
        elif add:
            assert self.epsilon is not None
            into[span].addcmul_(self.gradient[span], self.epsilon[span])
        else:
            assert self.epsilon is not None
            torch.mul(self.gradient[span], self.epsilon[span], out=into[span])

    def spans(self) -> Iterator[slice]:
        """Blocks that cover the random weights, each either ruled or drawn."""
        yield from blocks(self.drawn, self.flat.device)
        yield from blocks(self.ruled, self.flat.device)

    @contextmanager
    def at_work(self, sign: float = 1.0) -> Iterator[None]:
        """Run the net inside this; `sign` −1 turns the noise round."""
        if not self.sites:
            yield
            return
        assert self.noise.rule is not None
        with Interception(self.sites, partial(self.noise.rule, sign=sign)):
            yield

    def is_ruled(self, span: slice) -> bool:
        return any(r.start <= span.start < r.stop for r in self.ruled)


def noise_of(layout: Layout, uses: Uses, noise: Noise) -> dict[str, str]:
    """The noise each trained weight gets, and why where it is not the one asked for."""
    found = {}
    for slot in layout.slots:
        if not slot.random:
            found[slot.name] = "point"
        elif noise.rule is None or noise.reaches(uses, slot.name):
            found[slot.name] = noise.name
        else:
            found[slot.name] = f"shared ({uses.other[slot.name]})"
    return found


def _spans(layout: Layout, uses: Uses, noise: Noise, ruled: bool) -> list[slice]:
    """Stretches of the random weights that the rule reaches, or does not, neighbours joined."""
    spans: list[slice] = []
    for slot in layout.random_slots:
        if noise.reaches(uses, slot.name) is not ruled:
            continue
        if spans and spans[-1].stop == slot.start:
            spans[-1] = slice(spans[-1].start, slot.stop)
        else:
            spans.append(slot.span)
    return spans


def blocks(spans: list[slice], device: torch.device) -> Iterator[slice]:
    """The spans, cut on the CPU into pieces of at most BLOCK."""
    for span in spans:
        size = BLOCK if device.type == "cpu" else max(span.stop - span.start, 1)
        for start in range(span.start, span.stop, size):
            yield slice(start, min(start + size, span.stop))
