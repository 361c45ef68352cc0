"""The tensors a net runs on while its weights are beliefs, and the way back from their gradients.

A noise is three things, and nothing else tells one from another: the *leaves* that a net is handed in the place of its
parameters, the *rule* by which an operation meets them, and the *pull-back* from gradients by leaves to gradients by
mean m and scale s. They are three because they live in three places. Leaves are filled in passes over flat vectors,
before any operation is known; a rule is applied at an operation, where rows are, and knows no vectors; the pull-back is
a pass over flat vectors again, and knows no operation. Autograd is left with what lies between the leaves and the loss,
the net alone: the sampling, the softplus and the KL have slopes that can be written down, and autograd through the KL
alone would cost about as much as a step of the plain net. With L the loss, g its gradient by a leaf, and w ~ N(m, s²),

    shared    one leaf,   w = m + sε       ∂L/∂m = g      ∂L/∂s = g · ∂w/∂s = g ε       Blundell et al. (2015), 3 and 4
    local     two leaves, m and v = s²     ∂L/∂m = g_m    ∂L/∂s = g_v · dv/ds = 2s g_v
    flipout   two leaves, m and δ = sε     ∂L/∂m = g_m    ∂L/∂s = g_δ · ∂δ/∂s = ε g_δ

Every last factor is made of what is in memory already, ε or rho, so that the gradient by the scale needs no vector of
its own: the step multiplies on its way (`doxa.flat`). The first leaf is what the net gets under the parameter's name,
the second one what the rule wants beside it. A weight that no rule reaches, because it is tied, recurrent or an
embedding, has a shared draw for its first leaf and no second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from doxa.flat import ScalePullback, draw
from doxa.noise.interception import Site
from doxa.random.philox import Stream
from doxa.weights.layout import Layout, Slot
from doxa.weights.probe import Uses

# A leaf this long is worked through by itself; shorter ones are joined with their neighbours, for fewer passes. Joining
# copies, which short gradients do not feel and long ones do.
LONG = 1 << 16

Leaf = Mapping[str, Tensor]


@dataclass(frozen=True)
class Noise:
    """A noise is how the second leaf is filled, the rule at an operation, and the pull-back to the scale.

    Without a rule the net runs plainly on drawn weights. It holds no numbers, only what is computed: nets with equal
    noises can learn as one program.
    """

    name: str
    pullback: ScalePullback = ScalePullback.TIMES_EPSILON
    fill: Callable[[LeafSegment, Stream, float], None] | None = None
    rule: Callable[..., Tensor] | None = None
    draws_weights: bool = True  # whether the second leaf needs ε

    def applies_to(self, uses: Uses, name: str) -> bool:
        """Whether the rule applies to this weight; otherwise it gets a shared draw.

        Where the rule applies the first leaf is the mean. An operation that the rule does not know would go on with it
        as if the weight were certain, and no error would tell: hence only what a probing pass has seen used once, by an
        operation that has a rule, on an input that holds the rows (`doxa.weights.probe`).
        """
        return self.rule is not None and name in uses.single_use


class GradientBuffer:
    """The gradients of neighbouring leaves as rows [K, n].

    Of leaves that hold all nets together, or of one net, they are taken as autograd made them: to a leaf whose gradient
    is None it gives the very tensor that the backward pass has filled, where a buffer would be cleared, read and
    written once more. The leaves of several nets one by one have rows of one buffer for gradients: what autograd adds
    to each lies where a pass over all nets looks for it, and nothing is gathered. Sparse gradients, as embeddings make
    them, are spread out, for the moments beside them are dense.
    """

    def __init__(self, slots: Sequence[Slot], leaves: Sequence[dict[str, Tensor]], members: int, like: Tensor) -> None:
        self.members = members
        self.direct_leaves = [leaves[0][s.name] for s in slots] if len(leaves) == 1 else []
        self.buffer = like.new_zeros(members, 0 if self.direct_leaves else sum(prod(s.shape) for s in slots))
        if not self.direct_leaves:
            for slot in slots:
                span = slice(slot.start - slots[0].start, slot.stop - slots[0].start)
                for row, group in zip(self.buffer, leaves, strict=True):
                    group[slot.name].grad = row[span].view(slot.shape)  # autograd adds to what is there

    def clear(self) -> None:
        """Nothing has flowed back yet; what was adopted is let go, so that the next one is adopted too."""
        for leaf in self.direct_leaves:
            leaf.grad = None
        self.buffer.zero_()

    @property
    def rows(self) -> Tensor:
        if not self.direct_leaves:
            return self.buffer
        rows = [self._dense(leaf).reshape(self.members, -1) for leaf in self.direct_leaves]
        return rows[0] if len(rows) == 1 else torch.cat(rows, 1)

    @staticmethod
    def _dense(leaf: Tensor) -> Tensor:
        if leaf.grad is None:
            return torch.zeros_like(leaf)
        return leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad  # nn.Embedding(sparse=True) makes such


@dataclass(frozen=True)
class LeafSegment:
    """A stretch of the random weights, with its rows [K, n] of every matrix that a step works on.

    All its weights meet one noise, so that one kernel with one pull-back goes over it. Which stretches a vector is cut
    into changes no number: ε of a weight is found by its place in the whole vector, `span.start` and on.
    """

    span: slice
    has_rule: bool
    mean: Tensor
    scale: Tensor | None
    rho: Tensor | None
    flat: Tensor
    epsilon: Tensor | None
    second: Tensor | None
    first_gradient: GradientBuffer | None = None
    second_gradient: GradientBuffer | None = None

    def rows_of_draw(self, rows: slice) -> LeafSegment:
        """The same stretch of one of several draws."""
        sliced = (None if t is None else t[rows] for t in (self.flat, self.epsilon, self.second))
        flat, epsilon, second = sliced
        assert flat is not None
        return replace(self, flat=flat, epsilon=epsilon, second=second)

    def gradients(self) -> tuple[Tensor, Tensor]:
        """By the first leaf, and what stands for the one by the scale: that of the second leaf, where there is one."""
        assert self.first_gradient is not None
        first = self.first_gradient.rows
        return first, first if self.second_gradient is None else self.second_gradient.rows


class Leaves:
    """First leaves, second leaves and ε of K nets, filled by `draw`; their gradients by segments.

    All are made once, around the `mean` [K, P] and the `rho` or `scale` [K, R] that the training changes in place: what
    is recorded as a graph finds everything at the address where it was. Where every weight has a rule the first leaves
    are views of the mean itself, and a step copies nothing into them. `vectorized`, a leaf holds all nets' weights [K,
    ·]; otherwise each net has leaves of its own. With several `draws` side by side, leaves and ε have a row for each
    draw of each net, [S · K, ·]. Where the step makes ε again, which a counter-based generator can at any time and for
    any stretch, it need not be kept: a vector less, as long as the weights.
    """

    def __init__(
        self,
        layout: Layout,
        uses: Uses,
        noise: Noise,
        mean: Tensor,
        rho: Tensor | None = None,
        scale: Tensor | None = None,
        vectorized: bool = False,
        draws: int = 1,
        keep_epsilon: bool = True,
    ) -> None:
        self.layout, self.uses, self.noise, self.mean = layout, uses, noise, mean
        self.nets, self.draws = len(mean), draws
        members, random = draws * len(mean), layout.random
        slots = layout.random_slots
        has_rule = {s.name: noise.applies_to(uses, s.name) for s in slots}
        self.has_rule = any(has_rule.values())
        any_drawn = not all(has_rule.values())
        self.flat = mean.new_empty(members, layout.size) if any_drawn or draws > 1 else mean
        self.first = make_leaves(layout, self.flat, vectorized)
        needs_epsilon = keep_epsilon and (any_drawn or noise.draws_weights)
        epsilon = mean.new_zeros(members, random) if needs_epsilon else None
        self.second_flat = mean.new_zeros(members, random) if self.has_rule else None
        self.second = None if self.second_flat is None else make_leaves(Layout(slots), self.second_flat, vectorized)

        def make_segment(group: list[Slot], gathers: bool = True) -> LeafSegment:
            span, group_has_rule = slice(group[0].start, group[-1].stop), has_rule[group[0].name]
            columns = [None if t is None else t[:, span] for t in (scale, rho, epsilon, self.second_flat)]
            seconds = self.second if group_has_rule else None
            return LeafSegment(
                span,
                group_has_rule,
                mean[:, span],
                columns[0],
                columns[1],
                self.flat[:, span],
                columns[2] if noise.draws_weights or not group_has_rule else None,
                columns[3] if group_has_rule else None,
                GradientBuffer(group, self.first, members, mean) if gathers else None,
                GradientBuffer(group, seconds, members, mean) if gathers and seconds is not None else None,
            )

        # Of a fleet that runs together, or alone, long gradients are taken as they are: see GradientBuffer.
        adopt_gradients = vectorized or members == 1
        self.segments = [
            make_segment(group_of_slots)
            for group_of_slots in group_slots(slots, lambda s: has_rule[s.name], adopt_gradients)
        ]
        # Drawing needs no gradients: neighbours are drawn in one pass, however long.
        self.draw_segments = [
            make_segment(group_of_slots, gathers=False)
            for group_of_slots in group_slots(slots, lambda s: has_rule[s.name], adopt_gradients=False)
        ]
        point_slots = layout.slots[len(slots) :]
        self.point_gradient_buffers = [
            GradientBuffer(group_of_slots, self.first, members, mean)
            for group_of_slots in group_slots(point_slots, lambda s: True, adopt_gradients)
        ]
        self.point_span = slice(random, layout.size)

    @torch.no_grad()
    def draw(self, stream: Stream, sign: float = 1.0, number: int = 0) -> None:
        """Fill the leaves of a draw from N(mean, scale²); `sign` −1 gives the antithetic one.

        The draws of a step that run side by side are filled one after the other, `number` by number; the first of them
        begins a new pass, and clears what the last pass left.
        """
        net_rows = slice(number * self.nets, (number + 1) * self.nets)
        for segment in self.draw_segments:
            p = segment if self.draws == 1 else segment.rows_of_draw(net_rows)
            if p.has_rule:
                assert self.noise.fill is not None
                self.noise.fill(p, stream, sign)
                # Some other weight is drawn into the same vector, which cannot be the mean then.
                if self.flat is not self.mean:
                    p.flat.copy_(p.mean)
            else:
                draw(p.flat, p.mean, p.scale, p.epsilon, p.rho, stream, p.span.start, sign)
        if self.flat is not self.mean and self.point_gradient_buffers:
            self.flat[net_rows, self.point_span] = self.mean[:, self.point_span]
        if number == 0:
            buffers = (g for p in self.segments for g in (p.first_gradient, p.second_gradient) if g is not None)
            for buffer in (*buffers, *self.point_gradient_buffers):
                buffer.clear()

    def point_gradient(self) -> Tensor:
        """By the point estimates [K, P − R], of all draws together."""
        rows = torch.cat([g.rows for g in self.point_gradient_buffers], 1)
        return rows if self.draws == 1 else rows.view(self.draws, self.nets, -1).sum(0)


def make_leaves(layout: Layout, values: Tensor, vectorized: bool) -> list[dict[str, Tensor]]:
    """Leaf views of rows [K, P], by name: one set [K, ·] of all members together, or one set [·] for each.

    Detached, a view is where gradients stop, and yet shares its memory: whoever writes to the rows fills the leaves.
    """
    rows = [values] if vectorized else list(values)
    return [{name: view.detach().requires_grad_() for name, view in layout.views(row).items()} for row in rows]


def noise_sites(uses: Uses, first: Leaf, second: Leaf) -> list[Site]:
    """Where the rule applies: every operation with a random weight or bias of its own.

    Weight and bias of one operation make one site, because its output has one noise.
    """
    sites = []
    for names in uses.operations().values():
        use = uses.single_use[next(iter(names.values()))]
        weight, bias = names.get("weight"), names.get("bias")
        sites.append(
            Site(
                name=weight or bias or "",
                weight=first[weight] if weight else None,
                bias=first[bias] if bias else None,
                weight_noise=second[weight] if weight else None,
                bias_noise=second[bias] if bias else None,
                channel_axis=use.channel_axis,
                row_axes=use.row_axes,
            )
        )
    return sites


def noise_by_weight(layout: Layout, uses: Uses, noise: Noise) -> dict[str, str]:
    """The noise each trained weight gets, and why where it is not the one asked for; a belief tells it to its user."""
    noise_names = {}
    for slot in layout.slots:
        if not slot.random:
            noise_names[slot.name] = "point"
        elif noise.rule is None or noise.applies_to(uses, slot.name):
            noise_names[slot.name] = noise.name
        else:
            noise_names[slot.name] = f"shared ({uses.fallback_reasons[slot.name]})"
    return noise_names


def group_slots(
    slots: Sequence[Slot], group_key: Callable[[Slot], bool], adopt_gradients: bool
) -> Iterator[list[Slot]]:
    """Neighbours of one kind together; where gradients may be taken as they are, long ones by themselves."""
    group: list[Slot] = []
    for slot in slots:
        is_long = adopt_gradients and prod(slot.shape) >= LONG
        if group and (
            is_long or group_key(slot) is not group_key(group[0]) or (adopt_gradients and prod(group[0].shape) >= LONG)
        ):
            yield group
            group = []
        group.append(slot)
    if group:
        yield group
