"""Names and shapes of a net's weights, laid out in one flat vector."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from doxa.data.rows import Inputs
from doxa.errors import BadInput
from doxa.random.keys import Key, isolated_rng, reseed

LIKELIHOOD = "likelihood:"

Chooser = Callable[[str, nn.Parameter], bool]


@dataclass(frozen=True)
class Slot:
    """One tensor's place in the flat vector."""

    name: str
    shape: tuple[int, ...]
    start: int
    random: bool

    @property
    def stop(self) -> int:
        return self.start + prod(self.shape)

    @property
    def span(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Layout:
    """Random weights first, then trained point estimates (BatchNorm's affine parameters, the likelihood's own)."""

    slots: tuple[Slot, ...]

    @property
    def size(self) -> int:
        """P: the length of the flat vector."""
        return self.slots[-1].stop

    @property
    def random(self) -> int:
        """R: how many of its leading entries are random."""
        return sum(prod(s.shape) for s in self.slots if s.random)

    @property
    def random_slots(self) -> tuple[Slot, ...]:
        return tuple(s for s in self.slots if s.random)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Every tensor by name, as a view of the last axis of `flat` [..., P]."""
        return {s.name: flat[..., s.span].view((*flat.shape[:-1], *s.shape)) for s in self.slots}

    def weights(self, flat: Tensor) -> dict[str, Tensor]:
        """The net's own tensors among the views."""
        return {k: v for k, v in self.views(flat).items() if not k.startswith(LIKELIHOOD)}

    def parameters(self, flat: Tensor) -> dict[str, Tensor]:
        """The likelihood's own tensors among the views, by their bare names."""
        likelihood_slots = Layout(tuple(s for s in self.slots if s.name.startswith(LIKELIHOOD)))
        return {k.removeprefix(LIKELIHOOD): v for k, v in likelihood_slots.views(flat).items()}

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The flat vector [P] of tensors given by name."""
        for slot in self.slots:
            if slot.name not in tensors:
                raise BadInput(
                    f"no weight named {slot.name!r} among those given; the net has one of shape {slot.shape}"
                )
            if tuple(tensors[slot.name].shape) != slot.shape:
                shape = tuple(tensors[slot.name].shape)
                raise BadInput(f"weight {slot.name!r} has shape {shape}; the net's has {slot.shape}")
        return torch.cat([tensors[s.name].detach().reshape(-1) for s in self.slots])

    def weights_per_layer(self) -> tuple[int, ...]:
        """How many random weights each module owns, in order."""
        counts: dict[str, int] = {}
        for slot in self.random_slots:
            counts[slot.module] = counts.get(slot.module, 0) + prod(slot.shape)
        return tuple(counts.values())


def lay_out(
    net: nn.Module, random: Chooser | None = None, extra: Mapping[str, Tensor] | None = None
) -> tuple[Layout, Tensor]:
    """A net's Layout and its present weights as one vector [P]; frozen parameters stay out of both.

    `random(name, parameter)` says which trained weights are beliefs; by default all but BatchNorm's affine ones.
    """
    trained = {k: p for k, p in net.named_parameters() if p.requires_grad}
    if not trained:
        raise BadInput("the net has no trainable parameter; set requires_grad on those that should be learned")
    dtypes = {p.dtype for p in trained.values()}
    if len(dtypes) > 1:
        raise BadInput(
            f"the net's parameters mix dtypes {sorted(map(str, dtypes))}; bring them to one, e.g. net.float()"
        )
    (dtype,) = dtypes
    if not dtype.is_floating_point:
        raise BadInput(f"the net's parameters are {dtype}; weights must be real floating-point numbers")
    if len({p.device for p in trained.values()}) > 1:
        raise BadInput("the net's parameters lie on several devices; bring them to one with net.to(device)")
    norms = {
        f"{k}.{n}" if k else n
        for k, m in net.named_modules()
        if isinstance(m, _BatchNorm)
        for n, _ in m.named_parameters()
    }
    chooser = random or (lambda name, parameter: name not in norms)
    random_by_name = {k: bool(chooser(k, p)) for k, p in trained.items()}
    if not any(random_by_name.values()):
        raise BadInput("no weight of the net was chosen to be random; `random` must say True for at least one")
    first_parameter = next(iter(trained.values()))
    likelihood_tensors = {
        LIKELIHOOD + k: v.to(dtype=dtype, device=first_parameter.device) for k, v in (extra or {}).items()
    }
    ordered: dict[str, tuple[Tensor, bool]] = {k: (trained[k], True) for k in trained if random_by_name[k]}
    ordered |= {k: (trained[k], False) for k in trained if not random_by_name[k]}
    ordered |= {k: (v, False) for k, v in likelihood_tensors.items()}
    slots, start = [], 0
    for name, (tensor, is_random) in ordered.items():
        slots.append(Slot(name, tuple(tensor.shape), start, is_random))
        start = slots[-1].stop
    layout = Layout(tuple(slots))
    return layout, layout.flatten({k: t for k, (t, _) in ordered.items()})


def as_rows(vectors: Sequence[Tensor]) -> Tensor:
    """Vectors [P] as rows [K, P]; a single one is not copied."""
    return vectors[0][None] if len(vectors) == 1 else torch.stack(list(vectors))


def untrained_tensors(net: nn.Module) -> dict[str, Tensor]:
    """Copies of what is not learned by gradients: buffers and frozen parameters."""
    frozen = {k: p.detach().clone() for k, p in net.named_parameters() if not p.requires_grad}
    return frozen | {k: b.detach().clone() for k, b in net.named_buffers()}


def call(net: nn.Module, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs) -> Tensor:
    """Run the net, untouched, on the given weights and buffers."""
    args = x if isinstance(x, tuple) else () if isinstance(x, dict) else (x,)
    kwargs = x if isinstance(x, dict) else {}
    output: Any = functional_call(net, {**weights, **buffers}, args, kwargs)
    if not isinstance(output, Tensor):
        raise BadInput(
            f"the net returned a {type(output).__name__}; Doxa needs one tensor: wrap the net in a module that picks it"
        )
    return output


def autocast_context(device: torch.device, autocast: torch.dtype | None) -> AbstractContextManager[object]:
    """Run the net in a lower precision, if asked to; always from fresh casts of the weights."""
    if torch.is_autocast_enabled(device.type):
        torch.clear_autocast_cache()
    return torch.autocast(device.type, dtype=autocast) if autocast is not None else nullcontext()


@contextmanager
def module_mode(net: nn.Module, training: bool) -> Iterator[None]:
    """The net in training or evaluation mode; every module gets its own mode back afterwards."""
    with _temporary_modes(net, dict.fromkeys(net.modules(), training)):
        yield


@contextmanager
def learning_mode(net: nn.Module) -> Iterator[None]:
    """The net as it learns, by `learning_flags`; every module gets its own mode back afterwards."""
    with _temporary_modes(net, learning_flags(net)):
        yield


def learning_flags(net: nn.Module) -> dict[nn.Module, bool]:
    """Which modules are in training mode while the net learns: those that their owner has put there.

    A net that is in evaluation mode as a whole, as one that was just loaded may be, is put into training mode, but for
    what is frozen: modules that hold parameters none of which learns, with all that is in them.
    """
    modes = {m: m.training for m in net.modules()}
    if any(modes.values()):
        return modes
    frozen = {m for parent in net.modules() if _is_frozen(parent) for m in parent.modules()}
    return {m: m not in frozen for m in modes}


def _is_frozen(module: nn.Module) -> bool:
    requires_grad = [p.requires_grad for p in module.parameters()]
    return bool(requires_grad) and not any(requires_grad)


@contextmanager
def _temporary_modes(net: nn.Module, modes: Mapping[nn.Module, bool]) -> Iterator[None]:
    before, fastpath = {m: m.training for m in net.modules()}, torch.backends.mha.get_fastpath_enabled()
    for module, training in modes.items():
        module.training = training
    # torch's quick attention for evaluation reads weights beyond the alignment that views of a flat vector have, which
    # ends the process on a GPU, and it cannot run for many nets at once.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fastpath)
        for module, was_training in before.items():
            module.training = was_training


def fresh_weights(net: nn.Module, layout: Layout, start: Tensor, key: Key) -> Tensor:
    """A fresh start [P] of the same net, from its modules' own `reset_parameters`; the net itself is not touched."""
    net_copy = copy.deepcopy(net).cpu()  # whose generator draws the same numbers wherever the net will learn
    with isolated_rng(torch.device("cpu")):
        reseed(key)
        # Children first, as torch's constructors do: a parent may have its own way with their weights.
        for module in reversed(list(net_copy.modules())):
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(reset):
                reset()
    fresh = {k: p.detach().to(start.device) for k, p in net_copy.named_parameters() if p.requires_grad}
    start_tensors = layout.views(start)
    # A constant, such as a layer that starts at zero, is the same on purpose.
    unchanged = [
        k
        for k, p in fresh.items()
        if p.dim() > 1 and torch.equal(p, start_tensors[k]) and bool((p != p.flatten()[0]).any())
    ]
    if unchanged:
        warnings.warn(
            f"members of the ensemble start from the same {', '.join(unchanged)}: the modules that own them have no "
            "reset_parameters(); give them one for independent starts",
            stacklevel=2,
        )
    return layout.flatten({**start_tensors, **fresh})


def non_finite_message(layout: Layout, flat: Tensor) -> str | None:
    """Which tensors of a flat vector hold NaN or infinity, in words; None if none does."""
    if bool(flat.isfinite().all()):
        return None
    names = [k for k, v in layout.views(flat).items() if not bool(v.isfinite().all())]
    return f"the weights {', '.join(names)} are no longer finite"


def bind_prior(prior: Any, layout: Layout, start: Tensor) -> Any:
    """The prior with its per-weight fields as vectors [R] beside `start`; a net or state dict as centre is laid out."""
    bound = {}
    for name in ("centre", "scale"):
        value = getattr(prior, name, None)
        if isinstance(value, nn.Module):
            value = dict(value.named_parameters())
        if isinstance(value, Mapping):
            value = Layout(layout.random_slots).flatten(value)
        if not isinstance(value, Tensor):
            continue
        if value.dim() > 0 and value.shape != (layout.random,):
            raise BadInput(
                f"the prior's {name} has shape {tuple(value.shape)}; it must be a number or one for each of the "
                f"{layout.random} random weights"
            )
        bound[name] = value.detach().to(start)
    return _replace_fields(prior, bound) if bound else prior


def slice_prior(prior: Any, span: slice, random: int) -> Any:
    """The prior of a stretch of the random weights: fields with a number for each of them, if any, cut to the span."""
    is_dataclass = dataclasses.is_dataclass(prior)
    names = [f.name for f in dataclasses.fields(prior)] if is_dataclass else list(getattr(prior, "__dict__", ()))
    sliced = {
        name: value[span]
        for name in names
        if isinstance(value := getattr(prior, name), Tensor) and value.shape == (random,)
    }
    return _replace_fields(prior, sliced) if sliced and not isinstance(prior, type) else prior


def _replace_fields(prior: Any, fields: Mapping[str, Any]) -> Any:
    """The prior with other values of some fields; it may be any object."""
    if dataclasses.is_dataclass(prior) and not isinstance(prior, type):
        return dataclasses.replace(prior, **fields)
    changed = copy.copy(prior)
    vars(changed).update(fields)
    return changed
