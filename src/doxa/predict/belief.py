"""Belief: a net, a likelihood and a posterior over the net's weights."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Draw, Likelihood, Posterior, Prior, Record
from doxa.data.rows import as_inputs, explain_input_errors
from doxa.errors import BadInput, require_whole
from doxa.posteriors.delta import Delta
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.samples import Samples
from doxa.predict.draws import Draws
from doxa.predict.members import encode, map_tensors
from doxa.predict.saved_parts import chains_of, decode_parts, require_loadable
from doxa.predict.sweep import ROWS, OutputBuffer, PredictionRequest, buffers_of, prototype_of, sweep
from doxa.random.keys import Key
from doxa.storage.sealed import read, write
from doxa.weights.batch_norm import has_batch_norm, refresh_batch_norm, statistics_names
from doxa.weights.layout import Layout
from doxa.weights.saved_layout import encode_layout, require_same_net

BELIEF = "doxa.belief"

Buffers = tuple[dict[str, Tensor], ...]


@dataclass(frozen=True)
class Belief:
    """A net whose weights are beliefs.

    p(y | x) = ∫ p(y | net(x, w)) q(w) dw ≈ (1/S) Σₛ p(y | net(x, wₛ)),  wₛ ~ q

    `buffers` has those of each of the posterior's components, by reference: components may share one set. `noise` names
    the noise each weight was really learned with.
    """

    net: nn.Module
    likelihood: Likelihood
    posterior: Posterior
    layout: Layout
    buffers: Buffers
    prior: Prior | None = None
    noise: dict[str, str] = field(default_factory=dict)
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        if len(self.buffers) != self.posterior.components:
            raise BadInput(
                f"the posterior speaks of {self.posterior.components} sets of buffers, but {len(self.buffers)} were "
                "given; give one for each component, the same one again where they share it"
            )

    def predict(
        self, x: Any, samples: int = 50, seed: int = 0, rows: int = ROWS, autocast: torch.dtype | None = None
    ) -> Draws:
        """`samples` draws of the weights, each one function for all rows of x; `rows` go through the net at a time."""
        samples, rows = require_whole("samples", samples), require_whole("rows", rows)
        return self._sweep(self.posterior, x, samples, (seed, "predict"), rows, autocast)

    def predict_at_mean(self, x: Any, rows: int = ROWS) -> Draws:
        """The prediction of the mean weights alone: one draw, no spread."""
        self._require_one_member()
        point = Delta(self.posterior.mean, self.layout.random)
        return self._sweep(point, x, 1, (0, "mean"), rows, None)

    def _sweep(
        self, posterior: Posterior, x: Any, samples: int, key: Key, rows: int, autocast: torch.dtype | None
    ) -> Draws:
        inputs = as_inputs(x, like=prototype_of(self.posterior))
        with explain_input_errors(inputs, autocast):
            question = PredictionRequest(posterior, self.buffers, inputs, key)
            return sweep(self.net, self.layout, self.likelihood, [question], samples, rows, autocast)[0]

    def signal_to_noise(self) -> dict[str, Tensor]:
        """|mean| / scale of every random weight, by name: infinite where it is certain, 0 where it is certainly zero.

        Pruning ranks by `posterior.relevance`, which for points is |mean|.
        """
        scale = self.posterior.scale
        ratio = self.posterior.mean[: len(scale)].abs() / scale
        return Layout(self.layout.random_slots).views(ratio.nan_to_num(nan=0.0, posinf=torch.inf))

    def prune(self, fraction: float, per_layer: bool = False, biases: bool = False, refresh: Any = None) -> Belief:
        """The same belief with its least relevant `fraction` of random weights certainly zero, mean and scale.

        Ranked over the whole net or within each tensor; biases (tensors of one axis) are kept unless asked for. Rows of
        training inputs given as `refresh` renew BatchNorm's statistics.
        """
        keep = self.kept(fraction, per_layer, biases)
        pruned = replace(self, posterior=self.posterior.pruned(keep))
        if refresh is not None:
            return pruned.refreshed(refresh)
        if has_batch_norm(self.net):
            warnings.warn(
                "BatchNorm's statistics belong to the weights before pruning; give training inputs as refresh=x",
                stacklevel=2,
            )
        return pruned

    def kept(self, fraction: float, per_layer: bool = False, biases: bool = False) -> Tensor:
        """Which random weights [R] a pruning of `fraction` keeps."""
        if not 0 <= fraction <= 1:
            raise BadInput(f"fraction must lie between 0 and 1, got {fraction}")
        relevance = self.posterior.relevance
        keep = torch.ones_like(relevance, dtype=torch.bool)
        slots = [s for s in self.layout.random_slots if biases or len(s.shape) > 1]
        if not slots:
            raise BadInput(
                "the net has no random weight of two or more axes to prune; pass biases=True to prune vectors"
            )
        index = torch.arange(len(keep), device=keep.device)
        spans = [index[s.span] for s in slots]
        for group in spans if per_layer else [torch.cat(spans)]:
            order = relevance[group].argsort(stable=True)
            keep[group[order[: round(fraction * len(group))]]] = False
        return keep

    def refreshed(self, x: Any) -> Belief:
        """The same belief with BatchNorm's statistics taken anew from x, at each component's mean or each sample."""
        inputs = as_inputs(x, like=prototype_of(self.posterior))

        def renew(weights: Tensor, buffers: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return refresh_batch_norm(self.net, self.layout.weights(weights), buffers, inputs)

        with explain_input_errors(inputs):
            posterior, buffers = _refresh_components(self.posterior, self.buffers, renew, statistics_names(self.net))
        return replace(self, posterior=posterior, buffers=buffers)

    def plain(self, weights: Tensor | Draw | None = None, member: int = 0) -> nn.Module:
        """An ordinary torch net with the mean weights, or those of a draw of `posterior.draws()` with its buffers.

        Weights [P] alone take the buffers of the component `member`.
        """
        if weights is None:
            self._require_one_member()
            weights = self.posterior.mean
        draw = weights if isinstance(weights, Draw) else Draw(weights, member)
        net = copy.deepcopy(self.net)
        net.load_state_dict({**self.layout.weights(draw.weights), **buffers_of(draw, self.buffers)}, strict=False)
        return net

    def _require_one_member(self) -> None:
        if len(self.buffers) > 1 or (isinstance(self.posterior, Samples) and self.posterior.slots):
            raise BadInput(
                "the mean weights of an ensemble, or of a chain with buffers for each state, are no member's: ask for "
                "predict(), or for plain(draw) with a draw from posterior.draws()"
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the belief to one file: safetensors with a JSON header and a SHA-256 over both.

        What `load` would refuse, such as weights that are not finite, is refused here.
        """
        tensors: dict[str, Any] = {}
        header = {
            "layout": encode_layout(self.layout),
            "posterior": encode(self.posterior, "posterior", tensors),
            "prior": encode(self.prior, "prior", tensors),
            "likelihood": encode(self.likelihood, "likelihood", tensors),
            **self._encode_buffers(tensors),
            "noise": self.noise,
            "record": {"settings": self.record.settings, "history": self.record.history},
        }
        require_loadable(path, header, tensors)
        weights = {f"{name}.rows": chain.size for name, chain in chains_of(self.posterior)}
        write(path, BELIEF, header, tensors, finite=weights)

    def _encode_buffers(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """What the header says of the buffers, which go into `tensors`: one that components share is there once."""
        first_holder: dict[tuple[str, int], int] = {}
        for k, component_buffers in enumerate(self.buffers):
            for name, buffer in component_buffers.items():
                if first_holder.setdefault((name, id(buffer)), k) == k:
                    tensors[f"buffers.{k}.{name}"] = buffer
        holders = {
            name: [first_holder[name, id(component_buffers[name])] for component_buffers in self.buffers]
            for name in self.buffers[0]
        }
        if all(holder == list(range(len(self.buffers))) for holder in holders.values()):
            return {"members": len(self.buffers)}
        return {"components": len(self.buffers), "buffers": holders}

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Belief:
        """A copy of the belief on another device, or in another precision."""

        @functools.cache  # what is shared stays shared
        def move(t: Tensor) -> Tensor:
            return t.to(device=device, dtype=dtype if t.is_floating_point() else None)

        return replace(
            self,
            net=copy.deepcopy(self.net).to(device=device, dtype=dtype),
            posterior=map_tensors(self.posterior, move),
            prior=map_tensors(self.prior, move),
            buffers=tuple({k: move(b) for k, b in component_buffers.items()} for component_buffers in self.buffers),
        )

    def __repr__(self) -> str:
        families = sorted({n.partition(" ")[0] for n in self.noise.values()})
        return (
            f"Belief({type(self.net).__name__}, {type(self.posterior).__name__}, {type(self.likelihood).__name__}, "
            f"{self.layout.random:,} random weights, noise: {', '.join(families) or 'none'})"
        )


def _refresh_components(
    posterior: Posterior, buffers: Buffers, renew: Callable[..., dict[str, Tensor]], names: Sequence[str]
) -> tuple[Posterior, Buffers]:
    """A posterior and its components' buffers, where those of these names are renewed."""
    if isinstance(posterior, Mixture):
        ends = list(accumulate(m.components for m in posterior.members))
        spans = [buffers[end - m.components : end] for m, end in zip(posterior.members, ends, strict=True)]
        renewed = [
            _refresh_components(m, member_buffers, renew, names)
            for m, member_buffers in zip(posterior.members, spans, strict=True)
        ]
        return Mixture(tuple(m for m, _ in renewed)), tuple(
            member_buffers for _, part in renewed for member_buffers in part
        )
    if isinstance(posterior, Samples):
        slots = dict.fromkeys([*(name for name, _ in posterior.slots), *names])
        shapes = tuple((name, tuple(buffers[0][name].shape)) for name in slots)
        rows = OutputBuffer(len(posterior.rows))
        for draw in posterior.draws(len(posterior.rows), (0,)):
            renewed_buffers = renew(draw.weights, buffers_of(draw, buffers))
            rows.append(torch.cat([draw.weights[:0], *(renewed_buffers[name].flatten() for name in slots)]))
        return posterior.with_buffers(shapes, rows.all()), buffers
    flats = getattr(posterior, "weights", posterior.mean[None])
    return posterior, tuple(renew(flat, member_buffers) for flat, member_buffers in zip(flats, buffers, strict=True))


def load(
    path: str | PathLike[str],
    net: nn.Module,
    device: torch.device | str | None = None,
    sha256: str | None = None,
) -> Belief:
    """The belief in a file, for the net it was trained with; nothing in the file is ever executed.

    `sha256` is the digest of the whole file, where it is known: then that is compared.
    """
    header, tensors = read(path, BELIEF, sha256)
    if device is None:
        device = next((p.device for p in net.parameters()), torch.device("cpu"))
    parts = decode_parts(path, header, {k: t.to(device) if isinstance(t, Tensor) else t for k, t in tensors.items()})
    require_same_net(path, parts["layout"], parts["buffers"][0], net)
    _warn_of_odd_buffers(path, parts["buffers"], parts["posterior"], net)
    return Belief(net, **parts)


def _warn_of_odd_buffers(
    path: str | PathLike[str], buffers: Sequence[Mapping[str, Tensor]], posterior: Posterior, net: nn.Module
) -> None:
    """Say which buffers are not finite where those of the net as it was built are: nothing forbids it, few mean it."""
    names = {name: None for member in buffers for name, b in member.items() if not _is_finite(b)}
    names |= {name: None for _, chain in chains_of(posterior) for name in chain.slots_not_finite}
    own = {name for name, b in net.named_buffers() if name in names and not b.is_meta and not _is_finite(b)}
    # Of a net without memory nothing is known: a mask may be infinite, and NaN is not looked for.
    own |= {name for name, b in net.named_buffers() if b.is_meta and not any(_has_nan(m.get(name)) for m in buffers)}
    odd = [name for name in names if name not in own]
    if odd:
        warnings.warn(
            f"{path}: {', '.join(odd)} hold NaN or infinity, and so may what it predicts: the net as it was built does "
            "not",
            stacklevel=3,
        )


def _is_finite(buffer: Tensor) -> bool:
    return bool(_in_full(buffer).isfinite().all())


def _has_nan(buffer: Tensor | None) -> bool:
    return buffer is not None and bool(_in_full(buffer).isnan().any())


def _in_full(buffer: Tensor) -> Tensor:
    """Numbers that can be looked at: those of eight bits cannot."""
    return buffer.float() if buffer.is_floating_point() and buffer.element_size() == 1 else buffer
