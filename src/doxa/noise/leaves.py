"""The tensors a net runs on while its weights are beliefs, and the way back from their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from doxa.flat import draw, fill_scale
from doxa.layout import Layout
from doxa.noise.interception import Interception, Site
from doxa.probe import Uses
from doxa.randomness import Key, fill_normal

# On a CPU, long vectors are worked through in pieces: small enough to need little memory, large enough to pay threads.
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


def leaves_of(layout: Layout, values: Tensor, gradient: Tensor) -> dict[str, Tensor]:
    """Leaf views of a flat vector of values, by name, whose gradients accumulate into views of a flat gradient."""
    gradients = layout.views(gradient)
    leaves = {}
    for name, view in layout.views(values).items():
        leaf = view.detach().requires_grad_()
        leaf.grad = gradients[name]
        leaves[name] = leaf
    return leaves


@dataclass(frozen=True)
class Piece:
    """A stretch of the random weights, with its views of every flat vector that a step works on."""

    span: slice
    ruled: bool
    mean: Tensor
    scale: Tensor
    rho: Tensor | None
    flat: Tensor
    gradient: Tensor
    epsilon: Tensor | None
    second: Tensor | None
    second_gradient: Tensor | None


class Leaves:
    """First leaves [P], second leaves and ε [R], with flat gradients; filled by `draw`, emptied by `pull`.

    All are made once, around the `mean` [P] and `scale` [R] that the training changes in place. With a `rho` [R] the
    scale is softplus(rho), brought up to date by the draw itself.
    """

    def __init__(
        self,
        layout: Layout,
        uses: Uses,
        noise: Noise,
        mean: Tensor,
        scale: Tensor,
        gradient: Tensor,
        epsilon: Tensor | None = None,
        rho: Tensor | None = None,
    ) -> None:
        self.layout, self.noise, self.mean, self.gradient = layout, noise, mean, gradient
        self.ruled = _spans(layout, uses, noise, ruled=True)
        self.drawn = _spans(layout, uses, noise, ruled=False)
        self.flat = torch.empty_like(mean) if self.drawn else mean
        self.first = leaves_of(layout, self.flat, gradient)
        self.epsilon = None
        if self.drawn or noise.draws_weights:
            self.epsilon = torch.zeros_like(scale) if epsilon is None else epsilon
        self.second = torch.zeros_like(scale) if self.ruled else None
        self.second_gradient = torch.zeros_like(scale) if self.ruled else None
        self.sites = self._sites(uses)

        def piece(span: slice, ruled: bool) -> Piece:
            needs_epsilon = self.epsilon is not None and (noise.draws_weights or not ruled)
            return Piece(
                span,
                ruled,
                mean[span],
                scale[span],
                None if rho is None else rho[span],
                self.flat[span],
                gradient[span],
                self.epsilon[span] if self.epsilon is not None and needs_epsilon else None,
                self.second[span] if self.second is not None else None,
                self.second_gradient[span] if self.second_gradient is not None else None,
            )

        self.pieces = [piece(s, False) for s in blocks(self.drawn, mean.device)]
        self.pieces += [piece(s, True) for s in blocks(self.ruled, mean.device)]

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
    def draw(self, key: Key, sign: float = 1.0, renew: bool = True) -> None:
        """Fill the leaves with a draw from N(mean, scale²); `sign` −1 gives the antithetic one.

        Without `renew` the scale is taken as it is, though there be a rho.
        """
        for piece in self.pieces:
            rho = piece.rho if renew else None
            if not piece.ruled:
                assert piece.epsilon is not None
                draw(piece.flat, piece.mean, piece.scale, piece.epsilon, rho, key, piece.span.start, sign)
                continue
            assert piece.second is not None
            assert self.noise.second is not None
            if rho is not None:
                fill_scale(piece.scale, rho)
            if piece.epsilon is not None:
                fill_normal(piece.epsilon, key, piece.span.start, sign)
            piece.second.copy_(self.noise.second(piece.scale, piece.epsilon))
            if self.drawn:
                piece.flat.copy_(piece.mean)
        if self.drawn:
            tail = slice(self.layout.random, None)
            self.flat[tail] = self.mean[tail]
        if self.second_gradient is not None:
            self.second_gradient.zero_()
        self.gradient.zero_()

    def pull(self, piece: Piece, into: Tensor, add: bool) -> None:
        """Write the gradient with respect to a piece's scale into a vector of its length, or add it there."""
        if piece.ruled:
            assert piece.second_gradient is not None
            assert self.noise.pull_back is not None
            found = self.noise.pull_back(piece.second_gradient, piece.scale, piece.epsilon)
            if add:
                into.add_(found)
            else:
                into.copy_(found)
        elif add:
            assert piece.epsilon is not None
            into.addcmul_(piece.gradient, piece.epsilon)
        else:
            assert piece.epsilon is not None
            torch.mul(piece.gradient, piece.epsilon, out=into)

    @contextmanager
    def at_work(self, sign: float = 1.0) -> Iterator[None]:
        """Run the net inside this; `sign` −1 turns the noise round."""
        if not self.sites:
            yield
            return
        assert self.noise.rule is not None
        with Interception(self.sites, partial(self.noise.rule, sign=sign)):
            yield


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
