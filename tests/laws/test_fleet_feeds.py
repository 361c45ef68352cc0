"""Laws of what a fleet is fed: each net reads a loader as it would alone, whatever shapes its batches have."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import doxa
from doxa import learners, likelihoods, noise, priors
from doxa.contracts import Batch
from doxa.engine.feed import LoaderFeed, make_feed, stack_batches
from doxa.errors import BadInput
from doxa.gradients.forward_backward import ForwardBackward

GAUSSIAN = priors.gaussian(1.0)
LEARNERS = {
    "shared": learners.variational(GAUSSIAN),
    "local": learners.variational(GAUSSIAN, noise.local),
    "flipout": learners.variational(GAUSSIAN, noise.flipout),
    "two samples": learners.variational(GAUSSIAN, noise.local, 2),
    "mixture": learners.variational(priors.scale_mixture(0.5, 1.0, 0.01), noise.local),
    "point": learners.point(GAUSSIAN),
    "dropout": learners.dropout(0.3, 0.1, GAUSSIAN),
    "ensemble": learners.ensemble(learners.point(), 2),
}
SEEDS = [3, 8, 5]
KEYS: dict[str, Any] = {"likelihood": likelihoods.categorical(), "epochs": 3, "progress": False, "lr": 0.01}
X = torch.randn(70, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + X[:, 1].square() > 0.5).long()
WORDS = torch.randint(0, 7, (60, 9), generator=torch.Generator().manual_seed(1))
LENGTHS = torch.randint(1, 10, (60,), generator=torch.Generator().manual_seed(2)).tolist()


def build_seeded(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build()


def mlp() -> nn.Module:
    return build_seeded(lambda: nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)))


def normed() -> nn.Module:
    return build_seeded(
        lambda: nn.Sequential(nn.Linear(6, 9, bias=False), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 2))
    )


class Reading(nn.Module):
    """Words, however many, to two scores: each word through a linear map, then their mean through another."""

    def __init__(self, sparse: bool = False) -> None:
        super().__init__()
        self.words, self.each, self.head = nn.Embedding(7, 5, sparse=sparse), nn.Linear(5, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.each(self.words(x)).tanh().mean(1))


class Recurrent(Reading):
    """Of the kind whose nets take turns in any case."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.GRU(5, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.each(self.words(x))[0][:, -1])


class WordsWithCounts(Reading):
    """Words and how much each counts, by name."""

    def forward(self, words: Tensor, counts: Tensor) -> Tensor:
        return self.head((self.each(self.words(words)).tanh() * counts[..., None]).mean(1))


class Texts(Dataset):
    """Rows of many lengths."""

    def __len__(self) -> int:
        return len(WORDS)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return WORDS[index, : LENGTHS[index]], WORDS[index, 0] % 2

    def __reduce__(self) -> Any:
        raise TypeError("a data set is never copied")


def padded(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """A batch as long as its longest row."""
    longest = max(len(x) for x, _ in items)
    return torch.stack([F.pad(x, (0, longest - len(x))) for x, _ in items]), torch.stack([y for _, y in items])


def named(items: list[tuple[Tensor, Tensor]]) -> tuple[dict[str, Tensor], Tensor]:
    x, y = padded(items)
    return {"words": x, "counts": (x > 0).float()}, y


def texts(collate: Callable[..., Any] = padded) -> DataLoader:
    return DataLoader(Texts(), batch_size=8, shuffle=True, collate_fn=collate)


class Buckets(Sampler[list[int]]):
    """Rows of like length together, more or fewer of them; its generator has a name of its own."""

    def __init__(self) -> None:
        self.mine = torch.Generator().manual_seed(3)

    def __len__(self) -> int:
        return 9

    def __iter__(self) -> Iterator[list[int]]:
        order = sorted(range(60), key=LENGTHS.__getitem__)
        cuts = [0, 3, 8, 16, 20, 28, 40, 47, 55, 60]
        for i in torch.randperm(9, generator=self.mine).tolist():
            yield order[cuts[i] : cuts[i + 1]]


class Numbered(Sampler[int]):
    """An order by numpy's generator."""

    def __init__(self) -> None:
        self.numpy_generator = np.random.default_rng(4)

    def __len__(self) -> int:
        return len(X)

    def __iter__(self) -> Iterator[int]:
        for _ in range(len(X)):
            yield int(self.numpy_generator.integers(len(X)))


def close(belief: doxa.Belief, expected: doxa.Belief) -> None:
    for a, b in zip(numbers(belief), numbers(expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5)


def numbers(belief: doxa.Belief) -> list[Tensor]:
    tensors = [t for t in vars(belief.posterior).values() if isinstance(t, Tensor)]
    return tensors + [b for buffers in belief.buffers for b in buffers.values()]


def fleet_equals_alone(net: nn.Module, loader: Callable[[], Any], learner: Any, **more: Any) -> list[doxa.Belief]:
    """A fleet's beliefs, which are those of its members alone."""
    keys = {**KEYS, **more}
    beliefs = doxa.fleet(net, loader(), learners=learner, seeds=SEEDS, **keys)
    for belief, seed in zip(beliefs, SEEDS, strict=True):
        close(belief, doxa.fit(net, loader(), learner=learner, seed=seed, **keys))
    return beliefs


def test_workers_that_stay_serve_each_net_alone() -> None:
    def loader() -> DataLoader:
        return DataLoader(TensorDataset(X, Y), 16, shuffle=True, num_workers=1, persistent_workers=True)

    fleet_equals_alone(mlp(), loader, learners.point(), epochs=2)
    mine = loader()
    doxa.fit(mlp(), mine, learner=learners.point(), **KEYS)
    assert mine._iterator is None, "the caller's loader is left alone"


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


SAMPLERS: dict[str, Callable[[Dataset], dict[str, Any]]] = {
    "replacement": lambda d: {"sampler": RandomSampler(d, replacement=True, generator=generator())},
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(70), generator())},
    "weighted": lambda d: {"sampler": WeightedRandomSampler(torch.ones(70), 70, generator=generator())},
    "batches": lambda d: {
        "batch_size": 1,
        "batch_sampler": BatchSampler(RandomSampler(d, replacement=True, generator=generator()), 16, False),
    },
    "numpy": lambda d: {"sampler": Numbered()},
    "loader": lambda d: {"shuffle": True, "generator": generator()},
    "list": lambda d: {"sampler": list(range(70))},
    "list of batches": lambda d: {"batch_size": 1, "batch_sampler": [list(range(35)), list(range(35, 70))]},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_are_each_net_s_own(name: str) -> None:
    """Whichever generators they keep and however late they draw from them."""

    def loader() -> DataLoader:
        data = TensorDataset(X, Y)
        return DataLoader(data, **{"batch_size": 16, **SAMPLERS[name](data)})

    fleet_equals_alone(mlp(), loader, learners.point())
    mine = DataLoader(TensorDataset(X, Y), 16, sampler=RandomSampler(X, generator=generator()))
    doxa.fit(mlp(), mine, learner=learners.point(), **KEYS)
    assert torch.equal(mine.sampler.generator.get_state(), generator().get_state()), "the caller's is left alone"


@pytest.mark.parametrize("name", LEARNERS)
def test_nets_with_batches_of_unequal_shapes_learn_what_they_would_alone(name: str) -> None:
    fleet_equals_alone(build_seeded(Reading), texts, LEARNERS[name])


@pytest.mark.parametrize("name", ["shared", "local", "point"])
def test_so_do_nets_with_batches_of_unequal_size(name: str) -> None:
    fleet_equals_alone(
        build_seeded(Reading), lambda: DataLoader(Texts(), batch_sampler=Buckets(), collate_fn=padded), LEARNERS[name]
    )


def test_so_do_nets_that_take_turns() -> None:
    fleet_equals_alone(build_seeded(Recurrent), texts, learners.variational(GAUSSIAN))


def test_so_do_nets_with_several_inputs() -> None:
    fleet_equals_alone(build_seeded(WordsWithCounts), lambda: texts(named), LEARNERS["local"])


@pytest.mark.parametrize("kind", noise.TABLE)
def test_so_do_all_draws_of_a_step_side_by_side(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learners.variational(GAUSSIAN, noise.TABLE[kind], 4, antithetic=True)
    sequential_beliefs = doxa.fleet(build_seeded(Reading), texts(), learners=learner, seeds=SEEDS, **KEYS)
    monkeypatch.setattr(sys.modules["doxa.gradients.variational"], "vectorizes_draws", lambda problem: True)
    for sequential, vectorized in zip(
        sequential_beliefs, fleet_equals_alone(build_seeded(Reading), texts, learner), strict=True
    ):
        close(sequential, vectorized)


def test_so_do_statistics_of_unequal_batches() -> None:
    """BatchNorm's, of nets whose last, short batch comes at different times."""

    class Uneven(Buckets):
        def __iter__(self) -> Iterator[list[int]]:
            for i in torch.randperm(7, generator=self.mine).tolist():
                yield list(range(10 * i, 10 * i + 10 - i))

        def __len__(self) -> int:
            return 7

    beliefs = fleet_equals_alone(
        normed(), lambda: DataLoader(TensorDataset(X, Y), batch_sampler=Uneven()), LEARNERS["local"]
    )
    assert any((b["1.running_mean"] != 0).any() for belief in beliefs for b in belief.buffers)


def test_a_batch_is_stacked_where_it_can_be() -> None:
    first, second = Batch(torch.zeros(4, 2), torch.zeros(4)), Batch(torch.ones(4, 2), torch.ones(4))
    both = stack_batches([first, second])
    assert both.x.shape == (2, 4, 2)
    assert both.others == ()
    ragged = stack_batches([first, Batch(torch.ones(3, 2), torch.ones(3))])
    assert ragged.x.shape == (1, 4, 2)
    assert [batch.x.shape for batch in ragged.others] == [(1, 3, 2)]


@pytest.mark.parametrize("name", ["local", "flipout", "dropout", "two samples"])
def test_noise_is_asked_for_anew_where_rows_are_longer(name: str) -> None:
    """All nets' batches have as many rows and one shape, another from batch to batch."""

    class Grown(Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
            rows = slice(10 * index, 10 * index + 10)
            return WORDS[rows, : 1 + 2 * index], WORDS[rows, 0] % 2

    fleet_equals_alone(build_seeded(Reading), lambda: DataLoader(Grown(), batch_size=None), LEARNERS[name], size=40)


CHOSEN = [[0, 3, 5], [1, 2, 4]]
MASKS = [[k in indices for k in range(70)] for indices in CHOSEN]


@pytest.mark.parametrize(
    "rows",
    [
        CHOSEN,
        [np.array(indices) for indices in CHOSEN],
        [np.array(indices, dtype=np.uint16) for indices in CHOSEN],
        [torch.tensor(indices, dtype=torch.int32) for indices in CHOSEN],
        [torch.tensor(indices, dtype=torch.float32) for indices in CHOSEN],
        MASKS,
        [np.array(mask) for mask in MASKS],
        [torch.tensor(mask) for mask in MASKS],
    ],
)
def test_rows_are_indices_or_masks_of_any_make(rows: list[Any]) -> None:
    feed = make_feed((X, Y), X[:1], 2, None, rows)
    assert torch.equal(feed.rows, torch.tensor(CHOSEN))


@pytest.mark.parametrize(
    ("message", "rows"),
    [
        ("whole numbers", torch.tensor([0.5, 1.0])),
        ("whole numbers", [0.0, float("nan")]),
        ("whole numbers", [0.0, float("inf")]),
        ("whole numbers", [0j, 1j]),
        (r"list of indices or a mask; got shape \(1, 2\)", [[0, 1]]),
        (r"got shape \(\)", torch.tensor(3)),
        ("each of the data's 70 rows; got 69", torch.ones(69, dtype=torch.bool)),
        ("at least one", torch.zeros(70, dtype=torch.bool)),
        ("at least one", []),
        ("from 0 to 69", [0, 70]),
        ("from 0 to 69", [-1]),
        ("no numeric array", ["a", "b"]),
    ],
)
def test_rows_that_are_neither_are_refused(message: str, rows: Any) -> None:
    with pytest.raises(BadInput, match=message):
        make_feed((X, Y), X[:1], 2, None, [rows])


def test_rows_are_as_many_for_each_member() -> None:
    with pytest.raises(BadInput, match="as many each"):
        make_feed((X, Y), X[:1], 2, None, [[0, 1], [2]])


def test_a_mask_picks_a_member_s_rows() -> None:
    masks = [torch.arange(70) % 2 == k for k in range(2)]
    beliefs = doxa.fleet(mlp(), (X, Y), learners=learners.point(), rows=masks, batch_size=16, **KEYS)
    for belief, mask in zip(beliefs, masks, strict=True):
        close(belief, doxa.fit(mlp(), (X[mask], Y[mask]), learner=learners.point(), batch_size=16, **KEYS))


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", ["shared", "local", "two samples", "point", "ensemble"])
def test_sparse_gradients_are_those_of_dense_ones(name: str, members: int) -> None:
    data = WORDS, WORDS[:, 0] % 2
    keys = {**KEYS, "learners": LEARNERS[name], "seeds": SEEDS[:members], "batch_size": 16}
    fleets = [doxa.fleet(build_seeded(lambda s=s: Reading(s)), data, **keys) for s in (False, True)]
    for dense, sparse in zip(*fleets, strict=True):
        close(dense, sparse)


def test_so_are_those_of_nets_that_take_turns() -> None:
    def net() -> nn.Module:
        recurrent = Recurrent()
        recurrent.words.sparse = True
        return recurrent

    fleet_equals_alone(build_seeded(net), lambda: (WORDS, WORDS[:, 0] % 2), learners.variational(GAUSSIAN))
    fleet_equals_alone(build_seeded(lambda: Reading(sparse=True)), texts, learners.point())


@pytest.mark.parametrize("seeds", [[3], [3, 8]])
def test_so_are_those_of_a_function(seeds: list[int]) -> None:
    class Looking(Recurrent):
        sparse = True

        def forward(self, x: Tensor) -> Tensor:
            embedded = F.embedding(x, self.words.weight, sparse=self.sparse)
            return self.head(self.each(embedded)[0][:, -1])

    class Dense(Looking):
        sparse = False

    keys = {**KEYS, "learners": learners.variational(GAUSSIAN), "seeds": seeds, "batch_size": 16}
    fleets = [doxa.fleet(build_seeded(kind), (WORDS, WORDS[:, 0] % 2), **keys) for kind in (Looking, Dense)]
    for sparse, dense in zip(*fleets, strict=True):
        close(sparse, dense)


@pytest.mark.parametrize("name", ["local", "two samples", "point", "dropout", "ensemble"])
def test_a_training_dies_with_its_last_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No circle of references keeps a fleet's leaves, on a GPU its memory, until Python looks for such."""
    born: list[weakref.ref[ForwardBackward]] = []
    plain = ForwardBackward.__post_init__

    def noted(self: ForwardBackward) -> None:
        plain(self)
        born.append(weakref.ref(self))

    monkeypatch.setattr(ForwardBackward, "__post_init__", noted)
    torch.optim.Adam([torch.zeros(1)])  # the first one imports much of torch, whose errors on the way hold frames
    gc.disable()
    try:
        doxa.fleet(mlp(), (X, Y), learners=LEARNERS[name], seeds=SEEDS, optimiser=torch.optim.Adam, **KEYS)
        assert len(born) == 1
        assert born[0]() is None
    finally:
        gc.enable()


def test_a_loader_is_read_once_for_each_net() -> None:
    """The same words for a net in one epoch, others in the next; others for each net."""
    source = LoaderFeed(DataLoader(TensorDataset(X, Y), 16, shuffle=True), 70, 5, X[:1])
    seeds = torch.tensor([1, 2])
    first, first_again, second = ([b.x for b in source.epoch(n, seeds, 0)] for n in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, first_again, strict=True))
    assert not torch.equal(first[0], second[0])
    assert not torch.equal(first[0][0], first[0][1])
