"""The parts of a belief from the header and the tensors of its file, each checked against the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Likelihood, Posterior, Prior, Record
from doxa.errors import BadInput, BrokenFile, shorten
from doxa.posteriors.mixture import Mixture, require_fit
from doxa.posteriors.samples import Samples
from doxa.predict.field_types import hints_of
from doxa.predict.members import decode_member
from doxa.storage import fields
from doxa.storage.json_text import canonical_json, parse_object
from doxa.storage.sealed import explain_contents
from doxa.weights.layout import LIKELIHOOD, Layout
from doxa.weights.saved_layout import decode_layout

BUFFER = re.compile(r"buffers\.(0|[1-9][0-9]{0,9})\.(.+)", re.DOTALL)


def decode_parts(path: str | PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What a belief is made of but its net; BrokenFile names the field that cannot be, whatever is wrong with it."""
    with explain_contents(path):
        return _decode(header, dict(tensors))


def require_loadable(path: str | PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Refuse, by BadInput, to write what could not be read again."""
    try:
        decode_parts(path, parse_object(canonical_json(header)), tensors)
    except BrokenFile as error:
        raise BadInput(f"this cannot be saved, as it could not be loaded: {error}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be written: {error}; give names of plain text, nested less deep") from None


def _decode(header: Mapping[str, Any], unused: dict[str, Any]) -> dict[str, Any]:
    layout = decode_layout(header["layout"])
    likelihood = decode_member(header["likelihood"], unused, "likelihood", "likelihoods")
    _require_parameters(likelihood, layout)
    posterior = decode_member(header["posterior"], unused, "posterior", "posteriors")
    _require_posterior_fits(posterior, layout)
    prior = None
    if header["prior"] is not None:
        prior = decode_member(header["prior"], unused, "prior", "priors")
        _require_prior_fits(prior, layout)
    buffers = _decode_buffers(header, unused, posterior.components)
    for name in unused:
        raise ValueError(f"it holds a tensor {shorten(name)!r} that belongs to nothing")
    _require_apart(layout, buffers[0], posterior)
    noise = {k: fields.text(f"noise.{k}", v) for k, v in fields.mapping("noise", header["noise"]).items()}
    return {
        "layout": layout,
        "likelihood": likelihood,
        "posterior": posterior,
        "prior": prior,
        "buffers": buffers,
        "noise": noise,
        "record": _decode_record(header["record"]),
    }


def _require_posterior_fits(posterior: Posterior, layout: Layout) -> None:
    try:
        require_fit(posterior, layout)
        dtypes = _weight_dtypes(posterior)
    except BadInput as error:
        raise ValueError(f"the posterior does not fit the layout: {error}") from None
    if len(dtypes) > 1:
        raise ValueError(f"the posterior mixes {sorted(map(str, dtypes))}; expected one precision for all members")


def _weight_dtypes(posterior: Posterior) -> set[torch.dtype]:
    """The precisions of draws, without reading samples from a disk."""
    if isinstance(posterior, Mixture):
        return set().union(*(_weight_dtypes(m) for m in posterior.members))
    return {posterior.prototype.dtype if isinstance(posterior, Samples) else posterior.mean.dtype}


def _require_prior_fits(prior: Prior, layout: Layout) -> None:
    """A prior's centre and scale are finite numbers: one, or one for each random weight."""
    for name in ("centre", "scale"):
        value = getattr(prior, name, 0.0)
        if isinstance(value, Tensor):
            if value.shape not in ((), (layout.random,)) or not value.is_floating_point():
                raise ValueError(
                    f"prior.{name} holds {value.dtype} of shape {tuple(value.shape)}; expected real numbers, one or "
                    f"{layout.random}"
                )
            if not bool(value.isfinite().all()):
                raise ValueError(f"prior.{name} holds NaN or infinity; expected finite numbers")
        elif type(value) in (int, float):
            if not abs(value) < float("inf"):
                fields.refuse(f"prior.{name}", value, "a finite number")
        elif hints_of(type(prior)).get(name) is Any:
            fields.refuse(f"prior.{name}", value, "a number, or one for each weight")


def _require_parameters(likelihood: Likelihood, layout: Layout) -> None:
    """What the likelihood learns is what the layout has of it."""
    try:
        expected = set(likelihood.parameters(torch.zeros(1, 2)))
    except (RuntimeError, ValueError, IndexError, TypeError):
        return  # one of its own that outputs of this shape do not suit
    stored = {s.name.removeprefix(LIKELIHOOD) for s in layout.slots if s.name.startswith(LIKELIHOOD)}
    if stored != expected:
        raise ValueError(f"the likelihood learns {sorted(expected)}, but the layout has {sorted(stored)} for it")


def _decode_buffers(
    header: Mapping[str, Any], unused: dict[str, Any], components: int
) -> tuple[dict[str, Tensor], ...]:
    """The buffers of each component, by reference; a set that components share is one."""
    stored: dict[tuple[int, str], Tensor] = {}
    for key in [key for key in unused if BUFFER.fullmatch(key) and isinstance(unused[key], Tensor)]:
        number, name = BUFFER.fullmatch(key).groups()  # type: ignore[union-attr]
        stored[int(number), name] = unused.pop(key)
    if "buffers" in header:
        fields.whole("components", header["components"], components, components)
        sets = _shared_sets(fields.mapping("buffers", header["buffers"]), stored, components)
    else:
        fields.whole("members", header["members"], components, components)
        names = sorted({name for _, name in stored})
        sets = tuple({name: _take(stored, k, name) for name in names} for k in range(components))
    for k, name in stored:
        raise ValueError(f"buffers.{k}.{name} belongs to no component; the posterior has {components}")
    for k, buffers in enumerate(sets):
        for name, buffer in buffers.items():
            first = sets[0][name]
            if (buffer.shape, buffer.dtype) != (first.shape, first.dtype):
                raise ValueError(f"buffers.{k}.{name} is of another shape or kind than that of the first component")
    return sets


def _shared_sets(
    holders: Mapping[str, Any], stored: dict[tuple[int, str], Tensor], components: int
) -> tuple[dict[str, Tensor], ...]:
    """Sets of which the header says, for each buffer, which component's every component has."""
    tensors: dict[tuple[int, str], Tensor] = {}
    for name, numbers in holders.items():
        for k, holder in enumerate(fields.items(f"buffers.{name}", numbers, count=components)):
            where = f"buffers.{name}[{k}]"
            if fields.whole(where, holder, 0, k) == k:
                tensors[k, name] = _take(stored, k, name)
            elif (holder, name) not in tensors:
                fields.refuse(where, holder, "a component with a buffer of its own")
    sets: dict[tuple[int, ...], dict[str, Tensor]] = {}
    holders_by_component = [tuple(numbers[k] for numbers in holders.values()) for k in range(components)]
    for numbers in holders_by_component:
        sets.setdefault(numbers, {name: tensors[k, name] for name, k in zip(holders, numbers, strict=True)})
    return tuple(sets[numbers] for numbers in holders_by_component)


def _take(stored: dict[tuple[int, str], Tensor], component: int, name: str) -> Tensor:
    if (component, name) not in stored:
        raise ValueError(f"buffers.{component}.{name} is missing")
    return stored.pop((component, name))


def _require_apart(layout: Layout, buffers: Mapping[str, Tensor], posterior: Posterior) -> None:
    """Weights and buffers have names of their own, and buffers in the rows of samples are buffers."""
    for slot in layout.slots:
        if slot.name in buffers:
            raise ValueError(f"{slot.name} is both a weight and a buffer")
    for _, chain in chains_of(posterior):
        for name, shape in chain.slots:
            if name not in buffers or tuple(buffers[name].shape) != shape or not buffers[name].is_floating_point():
                raise ValueError(
                    f"the posterior's slots have {name} of shape {shape}, which is no buffer of the belief"
                )


def chains_of(posterior: Posterior, name: str = "posterior") -> Iterator[tuple[str, Samples]]:
    """The samples in a posterior, and the names that they have in its file."""
    if isinstance(posterior, Samples):
        yield name, posterior
    if isinstance(posterior, Mixture):
        for i, member in enumerate(posterior.members):
            yield from chains_of(member, f"{name}.members.{i}")


def _decode_record(value: Any) -> Record:
    record = fields.mapping("record", value)
    if record.keys() - {"settings", "history"}:
        fields.refuse("record", sorted(record), "settings and history")
    history = fields.items("record.history", record.get("history", []))
    for i, row in enumerate(history):
        for name, entry in fields.mapping(f"record.history[{i}]", row).items():
            if isinstance(entry, dict | list):
                fields.refuse(f"record.history[{i}].{name}", entry, "a number")
    return Record(fields.mapping("record.settings", record.get("settings", {})), history)
