"""Files for tests of storage: a small belief, and the hand of a forger who can seal what he likes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from doxa import Belief, likelihoods, priors
from doxa.contracts import Record
from doxa.posteriors import MeanField
from doxa.storage.sealed import canonical_json, sha256_of
from doxa.weights.layout import lay_out, untrained_tensors

X = torch.randn(6, 2, generator=torch.Generator().manual_seed(1))


def overwrite(path: Path, content: bytes | bytearray) -> None:
    """Write over a file without emptying it first, upon which some file systems wait for the disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))


def belief(posterior: Any = None, prior: Any = None, sets: int = 1) -> Belief:
    """A small belief with everything that a file can hold; a posterior is made from layout and start."""
    likelihood = likelihoods.gaussian_learned(0.5)
    layout, start = lay_out(net(), extra=likelihood.parameters(torch.zeros(1, 2)))
    q = (
        MeanField(start, torch.tensor([-2.0, -1.0]), layout.weights_per_layer())
        if posterior is None
        else posterior(layout, start)
    )
    prior = priors.gaussian(0.3, centre=start[: layout.random]) if prior is None else prior
    names = {s.name: "shared" for s in layout.slots}
    buffers = tuple(untrained_tensors(net()) for _ in range(sets))
    return Belief(net(), likelihood, q, layout, buffers, prior, names, Record({"seed": 0}, [{"nll": 1.0}]))


def sealed_bytes(header: Any, tensors: dict[str, Tensor], text: str | None = None) -> bytes:
    """A file with any header, and the SHA-256 that belongs to it."""
    text = canonical_json(header) if text is None else text
    return to_bytes(tensors, metadata={"doxa": canonical_json({"header": text, "sha256": sha256_of(text, tensors)})})


def forge(path: Path, header: Any, tensors: dict[str, Tensor], text: str | None = None) -> Path:
    path.write_bytes(sealed_bytes(header, tensors, text))
    return path
