"""The map of all random streams: no two uses have one address, and no number of a stream stands anywhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from doxa.optimisers.langevin import Langevin
from doxa.random import streams
from doxa.random.philox import Stream, philox_words

SOURCES = Path(__file__).resolve().parents[1] / "src"
MAP = SOURCES / "doxa" / "random" / "streams.py"
NUMBERS = {name: value for name, value in vars(streams).items() if name.isupper()}
MAKERS = {"seed_of", "stream_of", "generator", "reseed", "fill_normal", "normal"}  # what turns a key into numbers
CARRIERS = {
    "make_population",
    "episode_seeds",
    "uniform",
    "PredictionRequest",
    "AveragedLoss",
    "read",
    "draws",
    "_sweep",
}


def spans(first: int, size: int, count: int) -> list[tuple[int, int]]:
    """So many stretches of numbers, from a first one on: (begin, end) of each."""
    return [(first + k * size, first + (k + 1) * size) for k in range(count)]


GAME_AND_ORDER = [
    *spans(streams.BANDIT_BATCH, 1, 1),
    *spans(streams.BANDIT_POLICY, 1, 1),
    *spans(streams.BANDIT_DRAWS, streams.BANDIT_STREAMS_PER_DRAW, streams.BANDIT_MAX_DRAWS),
    *spans(streams.ORDER, 1, 1),
]
# What one seed may be asked for at one step, by stretches of numbers: (begin, end) of each.
SPACES = {
    "within a sample": [
        *spans(streams.WEIGHTS, 1, 1),
        *spans(streams.PRIOR, 1, 1),
        (streams.ROWS, streams.SAMPLE),
    ],
    "a net that learns a spread": [*spans(0, streams.SAMPLE, streams.MAX_SAMPLES), *GAME_AND_ORDER],
    "a net that learns a point": [
        *spans(0, streams.SAMPLE, 1),
        *spans(streams.LANGEVIN_NOISE, streams.SAMPLE, 1),
        *GAME_AND_ORDER,
    ],
    "an episode": spans(streams.BANDIT_CONTEXTS, 1, 1)
    + spans(streams.BANDIT_REWARDS, 1, 1)
    + spans(streams.BANDIT_RANDOM_ACTIONS, 1, 1),
    "a net's perturbation, by rows": [*spans(streams.SEARCH_WEIGHTS, 1, 1), (streams.SEARCH_ROWS, 1 << 31)],
    "a net's perturbation, of low rank": [
        *spans(streams.SEARCH_WEIGHTS, 1, 1),
        *spans(streams.SEARCH_FACTORS, 1, 1),
    ],
    "a point's perturbation": [
        *spans(streams.SEARCH_WEIGHTS, 1, 1),
        *spans(streams.SEARCH_KEEP, 1, 1),
        *spans(streams.SEARCH_PROPOSE, 1, 1),
        *spans(streams.SEARCH_ACCEPT, 1, 1),
        *spans(streams.SEARCH_REFILL, 1, 1),
    ],
    "a chain": [
        *spans(streams.CHAIN_MOMENTUM, 1, 1),
        *spans(streams.CHAIN_ACCEPT, 1, 1),
        *spans(streams.CHAIN_TRIAL, 1, 1),
    ],
    "all chains": spans(streams.CHAIN_LENGTH, 1, 1),
    "a draw": [(streams.DRAW, 1 << 31)],
}


@pytest.mark.parametrize("space", SPACES)
def test_stretches_of_one_seed_do_not_overlap(space: str) -> None:
    stretches = sorted(SPACES[space])
    assert all(begin < end for begin, end in stretches)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(stretches))
    assert stretches[0][0] >= 0
    assert stretches[-1][1] <= 1 << 31, "above, the upper half of the counter would be below zero"


def test_the_spaces_have_every_number() -> None:
    named = {begin for stretches in SPACES.values() for begin, _ in stretches}
    sizes = {"SAMPLE", "MAX_SAMPLES", "MAX_ROW_REQUESTS", "BANDIT_STREAMS_PER_DRAW", "BANDIT_MAX_DRAWS"}
    assert {value for name, value in NUMBERS.items() if name not in sizes} <= named


def test_the_table_has_every_name_and_number() -> None:
    table = (streams.__doc__ or "").split("\n\n")[1]
    sizes = {"MAX_SAMPLES", "MAX_ROW_REQUESTS", "BANDIT_STREAMS_PER_DRAW", "BANDIT_MAX_DRAWS"}
    assert set(re.findall(r"\b[A-Z]{2}[A-Z_]+\b", table)) == set(NUMBERS) - sizes
    for name, value in NUMBERS.items():
        line = next((line for line in table.splitlines() if re.search(rf"\b{name}\b", line)), "")
        if name in sizes | {"SAMPLE"}:
            continue
        assert (f"{value:X}" if value > 9 else str(value)) in line.split(name)[0], name


def test_step_and_number_have_bits_of_their_own() -> None:
    """The last step of a stream is followed by no other stream's first, and all of a counter's upper half is used."""
    seeds, last = torch.zeros(1, dtype=torch.int64), (1 << 32) - 1
    highs = [Stream(seeds, step, n).high for step in (0, 1, last) for n in (0, 1, streams.SAMPLE, streams.ORDER)]
    assert len(set(highs)) == len(highs)
    assert max(highs) < 1 << 63
    words = {tuple(int(w) for w in philox_words(0, torch.tensor([5]), high)) for high in highs}
    assert len(words) == len(highs)


def test_langevin_noise_and_samples_share_numbers_but_no_run() -> None:
    """The one overlap of the map: what has a spread, and so several samples, is refused by the stepper."""
    last_sample = (streams.MAX_SAMPLES - 1) * streams.SAMPLE
    assert last_sample == streams.LANGEVIN_NOISE

    class Gradient:
        parameters = [type("Parameter", (), {"role": "scales", "name": "rho", "values": torch.zeros(1, 2)})]

    with pytest.raises(ValueError, match="not with one that learns a spread"):
        Langevin().start(Gradient())  # type: ignore[arg-type]


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCES.rglob("*.py")):
        if path != MAP:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_every_number_is_used() -> None:
    used = {
        node.attr
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "streams"
    }
    assert used >= set(NUMBERS)


def literals(expression: ast.expr | None) -> list[int]:
    """Whole numbers of which an expression is made, but those that something is divided by."""
    if expression is None:
        return []
    divisors = {
        id(node.right)
        for node in ast.walk(expression)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod)
    }
    return [
        node.value
        for node in ast.walk(expression)
        if isinstance(node, ast.Constant) and type(node.value) is int and id(node) not in divisors
    ]


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def numbers_given(node: ast.Call) -> list[int]:
    """The whole numbers that a call gives a stream as its number."""
    position = {"Stream": 2, "with_number": 0}.get(called(node))
    if position is None:
        return []
    by_name = next((k.value for k in node.keywords if k.arg == "number"), None)
    return literals(node.args[position] if len(node.args) > position else by_name)


def test_nothing_else_numbers_a_stream() -> None:
    elsewhere = []
    for path, tree in modules():
        elsewhere += [
            f"{path.relative_to(SOURCES)}:{node.lineno}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and numbers_given(node)
        ]
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and literals(statement.value):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if re.search(r"\b\w*STREAMS?(_\w*)?\b", " ".join(map(ast.unparse, targets))):
                    elsewhere.append(f"{path.relative_to(SOURCES)}:{statement.lineno}: {ast.unparse(statement)}")
    assert not elsewhere


def test_the_search_above_sees_what_it_is_for() -> None:
    for call in ("Stream(seeds, 0, 7)", "Stream(seeds, number=7)", "s.with_number(s.number + 7)"):
        (node,) = (n for n in ast.walk(ast.parse(call)) if isinstance(n, ast.Call))
        assert numbers_given(node) == [7]
    (node,) = (n for n in ast.walk(ast.parse("s.with_number(SAMPLE * (k // 2))")) if isinstance(n, ast.Call))
    assert not numbers_given(node)


def test_the_map_has_every_word_of_a_key() -> None:
    """Of tuples that are handed to what hashes a key, or to what hands one on."""
    words = {
        part.value
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in MAKERS | CARRIERS
        for argument in (*node.args, *(k.value for k in node.keywords))
        for key in ast.walk(argument)
        if isinstance(key, ast.Tuple)
        for part in key.elts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    assert {"predict", "perturbation", "folds"} <= words
    assert not {word for word in words if f'"{word}"' not in (streams.__doc__ or "")}
