"""Seeded fuzz of sealed files: refused in Doxa's words, or a belief that predicts, is saved and loaded again."""

from __future__ import annotations

import copy
import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from doxa import BadInput, BrokenFile, load, posteriors
from doxa.predict.belief import BELIEF
from doxa.predict.sweep import prototype_of
from doxa.storage import rows
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed import canonical_json, read, write
from for_storage import X, belief, forge, net

STRIDE = 3  # bytes from one damaged place to the next; `doxa bench faults` damages them all
SLOTS = (("1.running_mean", (2,)), ("1.running_var", (2,)))
FAMILIES: dict[str, Callable[..., Any]] = {
    "mean_field": belief,
    "particles": lambda: belief(
        lambda layout, start: posteriors.particles(start + torch.arange(3.0)[:, None], layout.random), sets=3
    ),
    "samples": lambda: belief(
        lambda layout, start: posteriors.samples(torch.cat([start, torch.ones(4)]).repeat(3, 1), layout.random, SLOTS)
    ),
    "mixture": lambda: belief(
        lambda layout, start: posteriors.mixture(tuple(posteriors.delta(start + k, layout.random) for k in range(2))),
        sets=2,
    ),
}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 12, 1 << 31, 1 << 63, 10**40, -(10**40), 1e308, -0.0, 0.5, 1e-320),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "",
        "a",
        "1",
        "\0",
        "é",
        "0.weight",
        "posterior.mean",
        "priors.gaussian",
        "x" * 999,
    ),
    *([], {}, [[]], [1, 2], [None], {"": 0}, {"is": "priors.laplace"}, {"is": "posteriors.delta"}, {"tensor": "x"}),
    *({"stream": "posterior.rows"}, {"is": "masks.channels"}, {"is": "likelihoods.bernoulli"}, {"is": "os.system"}),
    *({"is": "posteriors.mixture", "members": []}, {"tensor": "posterior.mean"}, json.loads("[" * 60 + "]" * 60)),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a header, with every key into it."""
    found = []
    for key in list(value if isinstance(value, dict) else range(len(value))):
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += places(value[key])
    return found


def mutate_header(choose: random.Random, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    container, key = choose.choice(places(header))
    other, other_key = choose.choice(places(header))
    match choose.randrange(6):
        case 0 | 1:
            container[key] = copy.deepcopy(choose.choice(VALUES))
        case 2:
            del container[key]
        case 3:
            container[key] = copy.deepcopy(other[other_key])
        case 4 if isinstance(container, list):
            container.insert(key, copy.deepcopy(choose.choice(VALUES)))
        case 4:
            container[choose.choice(["", "is", "tensor", "buffers", "components", "scale"])] = choose.choice(VALUES)
        case 5 if isinstance(container[key], int | float) and math.isfinite(container[key]):
            container[key] = choose.choice(
                [container[key] + 1, container[key] - 1, -container[key], container[key] * 2]
            )


def mutate_tensor(choose: random.Random, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    name = choose.choice(sorted(tensors))
    t = tensors[name]
    changes: list[Callable[[], Any]] = [
        lambda: tensors.pop(name),
        lambda: tensors.update({name: t[None]}),
        lambda: tensors.update({name: t.flatten()[:-1]}),
        lambda: tensors.update({name: t.flatten().repeat(2)}),
        lambda: tensors.update({name: t.to(choose.choice([torch.float64, torch.int64, torch.bool, torch.float16]))}),
        lambda: tensors.update({name: torch.full_like(t.double(), choose.choice([math.nan, math.inf])).to(t.dtype)}),
        lambda: tensors.update({name: torch.zeros(choose.choice([(0,), (), (10**6, 0), (0, 12)]), dtype=t.dtype)}),
        lambda: tensors.update({choose.choice(["x", "buffers.9.a", "buffers.0.b", f"{name}.x"]): tensors.pop(name)}),
        lambda: tensors.update({name: tensors[choose.choice(sorted(tensors))].clone()}),
    ]
    choose.choice(changes)()


def mutate_text(choose: random.Random, text: str) -> str:
    for _ in range(choose.randint(1, 3)):
        i, j = sorted(choose.randrange(len(text) + 1) for _ in range(2))
        piece = choose.choice(['"', "\\", "\\ud800", "{", "]", ",", ":", "1e999", "NaN", "-", "9" * 50, text[i:j][:80]])
        text = text[:i] + piece + text[choose.choice([i, i + 1, j if j - i < 40 else i + 2]) :]
    return text


def require_refused_or_sound(path: Path, folder: Path) -> bool:
    """Whether a file was refused in words; one that loads is a belief like any other."""
    refusal = None
    try:
        loaded = load(path, net())
    except (BrokenFile, BadInput) as error:
        refusal = str(error)
    if refusal is not None:
        assert str(path) in refusal
        assert len(refusal) < 2000
        return True
    x = X.to(prototype_of(loaded.posterior).dtype)
    try:
        outputs = loaded.predict(x, 2).outputs
    except BadInput:  # of a net of another precision than its buffers, say
        return False
    loaded.save(folder / "again.doxa")
    again = load(folder / "again.doxa", net())
    assert torch.equal(again.predict(x, 2).outputs.nan_to_num(), outputs.nan_to_num())
    headers = [read(file, BELIEF)[0] for file in (path, folder / "again.doxa")]
    assert headers[0]["layout"] == headers[1]["layout"]
    return False


@pytest.mark.parametrize("name", FAMILIES)
def test_hostile_headers_whose_seal_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    FAMILIES[name]().save(tmp_path / "honest.doxa")
    honest = read(tmp_path / "honest.doxa", BELIEF)
    refused = 0
    for seed in range(80):
        choose = random.Random(f"{name} {seed}")
        header, tensors = copy.deepcopy(honest)
        text = None
        for _ in range(choose.choice([1, 1, 1, 2, 4])):
            choose.choice([mutate_header, mutate_header, mutate_tensor])(choose, header, tensors)
        if choose.random() < 0.2:
            text = mutate_text(choose, canonical_json(header))
        try:
            canonical_json(header).encode() if text is None else text.encode()
        except UnicodeEncodeError:
            continue
        path = forge(tmp_path / "hostile.doxa", header, {k: t.contiguous().clone() for k, t in tensors.items()}, text)
        try:
            refused += require_refused_or_sound(path, tmp_path)
        except Exception as error:
            raise AssertionError(f"seed {name!r} {seed}: {error!r}") from error
    assert refused > 48


@pytest.fixture
def streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A belief whose samples stay in its file, in two segments."""
    monkeypatch.setattr(rows, "SEGMENT", 22 * 4 * 2)
    store = SampleStore.create(tmp_path / "chain.rows", 22)
    store.append(1 + torch.rand(3, 22, generator=torch.Generator().manual_seed(0)))
    belief(lambda layout, start: posteriors.samples(store, layout.random, SLOTS)).save(tmp_path / "a.doxa")
    return tmp_path / "a.doxa"


def test_no_truncation_of_a_file_with_samples_is_read(streamed: Path) -> None:
    for length in range(streamed.stat().st_size - 1, -1, -STRIDE):
        os.truncate(streamed, length)
        with pytest.raises(BrokenFile):
            read(streamed, BELIEF)


def test_no_flipped_byte_of_a_file_with_samples_is_read(streamed: Path) -> None:
    content, choose = streamed.read_bytes(), random.Random(0)
    header, tensors = read(streamed, BELIEF)
    expected, refused = {k: held(t) for k, t in tensors.items()}, 0
    with open(streamed, "r+b", buffering=0) as file:
        for i, byte in list(enumerate(content))[::STRIDE]:
            os.pwrite(file.fileno(), bytes([byte ^ 1 << choose.randrange(8)]), i)
            try:
                changed, tensors = read(streamed, BELIEF)
                assert changed == header, f"byte {i}"
                assert all(torch.equal(held(t), expected[k]) for k, t in tensors.items()), f"byte {i}"
            except BrokenFile:
                refused += 1
            os.pwrite(file.fileno(), bytes([byte]), i)
    assert refused > 0.99 * len(content) / STRIDE


def held(values: Any) -> Tensor:
    return values if isinstance(values, Tensor) else values.read(0, len(values))


def test_bytes_at_random_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    write(path, BELIEF, {}, {"a": torch.ones(3)})
    honest = path.read_bytes()
    for seed in range(100):
        choose = random.Random(seed)
        content = bytearray(choose.choice([honest, choose.randbytes(choose.randrange(300))]))
        for _ in range(choose.randint(1, 20)):
            i = choose.randrange(len(content) + 1)
            content[i : i + choose.randrange(3)] = choose.randbytes(choose.randrange(4))
        path.write_bytes(content)
        if bytes(content) != honest:
            with pytest.raises(BrokenFile):
                load(path, net())
