"""Kept samples: on disk as in memory, each with its own buffers, saved and loaded without ever being held."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.func import functional_call

from doxa import Belief, likelihoods, load, posteriors, priors
from doxa.errors import BadInput, BrokenFile
from doxa.judge import findings
from doxa.posteriors.divergence import kl
from doxa.predict import sweep
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed_rows import SealedRows
from doxa.weights.layout import lay_out, untrained_tensors

SLOTS = (("1.running_mean", (5,)), ("1.running_var", (5,)))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).eval()


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X = normal(9, 4, seed=7)


def states(count: int = 6, seed: int = 0) -> Tensor:
    """Weights and BatchNorm's statistics of so many states of a chain."""
    _, start = lay_out(net())
    return torch.cat([start + 0.3 * normal(count, len(start), seed=seed), 1 + normal(count, 10, seed=seed).abs()], 1)


def stored(path: Path, rows: Tensor) -> SampleStore:
    store = SampleStore.create(path, rows.shape[1], rows.dtype)
    store.append(rows)
    return store


def belief(rows: Tensor | SampleStore, slots: tuple[tuple[str, tuple[int, ...]], ...] = SLOTS) -> Belief:
    layout, _ = lay_out(net())
    q = posteriors.samples(rows, layout.random, slots)
    return Belief(net(), likelihoods.categorical(), q, layout, (untrained_tensors(net()),), prior=priors.gaussian(1.0))


@pytest.fixture(params=["memory", "disk", "file"])
def sampled_belief(request: pytest.FixtureRequest, tmp_path: Path) -> Belief:
    """Six states: in memory, in a store, or in the file of a belief."""
    if request.param == "memory":
        return belief(states())
    stored_belief = belief(stored(tmp_path / "chain.rows", states()))
    if request.param == "disk":
        return stored_belief
    stored_belief.save(tmp_path / "kept.doxa")
    (tmp_path / "chain.rows").unlink()
    return load(tmp_path / "kept.doxa", net())


@pytest.mark.parametrize("most", [1, 4, 100])
def test_every_state_predicts_with_its_own_statistics(
    sampled_belief: Belief, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_draws_at_once", lambda *_: most)
    prediction = sampled_belief.predict(X, 100)
    assert len(prediction) == sampled_belief.posterior.distinct == 6
    size = sampled_belief.layout.size
    for out, row in zip(prediction.outputs, states(), strict=True):
        state_buffers = {"1.running_mean": row[size : size + 5], "1.running_var": row[size + 5 :]}
        expected = functional_call(
            sampled_belief.net, {**sampled_belief.layout.weights(row[:size]), **state_buffers}, (X,)
        ).detach()
        torch.testing.assert_close(out, expected)


def test_moments_are_those_of_the_states(sampled_belief: Belief) -> None:
    q, rows = sampled_belief.posterior, states()[:, : sampled_belief.layout.size].double()
    random = sampled_belief.layout.random
    torch.testing.assert_close(q.mean, rows.mean(0).float())
    torch.testing.assert_close(q.scale, rows[:, :random].std(0, correction=0).float())
    torch.testing.assert_close(q.relevance, rows[:, :random].square().mean(0).sqrt().float())
    particles = posteriors.particles(states()[:, : sampled_belief.layout.size], random)
    assert kl(q, priors.laplace(0.5)).value == pytest.approx(kl(particles, priors.laplace(0.5)).value, rel=1e-6)


def test_what_never_varies_has_no_scale() -> None:
    rows = (torch.rand(1, 8, dtype=torch.float64) + 1e6).repeat(7, 1)
    rows[:, 2] += torch.arange(7)
    q = posteriors.samples(rows, 8)
    assert (q.scale > 0).nonzero().tolist() == [[2]]
    torch.testing.assert_close(q.scale[2], rows[:, 2].std(correction=0))
    assert torch.equal(q.mean[3:], rows[0, 3:])


def test_fewer_draws_are_evenly_spaced(sampled_belief: Belief) -> None:
    rows = states()[:, : sampled_belief.layout.size]
    for count, chosen in ((1, [3]), (2, [1, 4]), (3, [1, 3, 5]), (4, [0, 2, 3, 5]), (6, range(6)), (50, range(6))):
        draws = list(sampled_belief.posterior.draws(count, (0,)))
        assert [draw.weight for draw in draws] == pytest.approx([1 / len(chosen)] * len(chosen))
        for draw, s in zip(draws, chosen, strict=True):
            assert torch.equal(draw.weights, rows[s]), (count, s)
    assert findings.has_all_distinct_draws(sampled_belief.posterior, 6)
    assert not findings.has_all_distinct_draws(sampled_belief.posterior, 5), "another six would be others"


def test_pruning_is_a_mask(sampled_belief: Belief) -> None:
    small = sampled_belief.prune(0.5, refresh=X).prune(0.7, refresh=X)
    keep = sampled_belief.kept(0.5) & sampled_belief.prune(0.5, refresh=X).kept(0.7)
    assert torch.equal(small.posterior.mean[: len(keep)] == 0, ~keep)
    for draw, row in zip(small.posterior.draws(6, (0,)), states(), strict=True):
        assert torch.equal(draw.weights[: len(keep)], row[: len(keep)] * keep)
        hidden = X @ small.layout.views(draw.weights)["0.weight"].T + small.layout.views(draw.weights)["0.bias"]
        torch.testing.assert_close(draw.buffers["1.running_mean"], hidden.mean(0))
        torch.testing.assert_close(draw.buffers["1.running_var"], hidden.var(0))


def test_refreshing_gives_every_state_statistics_of_its_own(tmp_path: Path) -> None:
    """Those of the belief were shared by all, and belonged to none."""
    layout, _ = lay_out(net())
    bare = belief(stored(tmp_path / "chain.rows", states()[:, : layout.size].contiguous()), ())
    assert [draw.buffers for draw in bare.posterior.draws(6, (0,))] == [None] * 6
    fresh = bare.refreshed(X)
    means = torch.stack([draw.buffers["1.running_mean"] for draw in fresh.posterior.draws(6, (0,))])
    for mean, draw in zip(means, bare.posterior.draws(6, (0,)), strict=True):
        named = layout.views(draw.weights)
        torch.testing.assert_close(mean, (X @ named["0.weight"].T + named["0.bias"]).mean(0))
    fresh.save(tmp_path / "fresh.doxa")
    reloaded = load(tmp_path / "fresh.doxa", net())
    assert torch.equal(reloaded.predict(X).outputs, fresh.predict(X).outputs)


def test_the_mean_of_states_with_their_own_buffers_is_no_net(sampled_belief: Belief) -> None:
    with pytest.raises(BadInput, match="no member's"):
        sampled_belief.plain()
    draw = list(sampled_belief.posterior.draws(6, (0,)))[4]
    torch.testing.assert_close(sampled_belief.plain(draw).eval()(X).detach(), sampled_belief.predict(X).outputs[4])


def test_saving_and_loading_lose_nothing(sampled_belief: Belief, tmp_path: Path) -> None:
    small = sampled_belief.prune(0.3, refresh=X)
    small.save(tmp_path / "a.doxa")
    reloaded = load(tmp_path / "a.doxa", net())
    reloaded.save(tmp_path / "b.doxa")
    assert (tmp_path / "a.doxa").read_bytes() == (tmp_path / "b.doxa").read_bytes()
    assert isinstance(reloaded.posterior.rows, Tensor) == isinstance(sampled_belief.posterior.rows, Tensor)
    assert torch.equal(reloaded.predict(X).outputs, small.predict(X).outputs)
    assert torch.equal(reloaded.posterior.mean, small.posterior.mean)


def test_the_file_is_safetensors_with_the_seal_of_one_written_from_memory(tmp_path: Path) -> None:
    belief(states()).save(tmp_path / "memory.doxa")
    belief(stored(tmp_path / "chain.rows", states())).save(tmp_path / "disk.doxa")
    memory, disk = (load_file(tmp_path / f"{name}.doxa") for name in ("memory", "disk"))
    assert set(disk) == {*memory, "posterior.like"}
    assert all(torch.equal(disk[name], memory[name]) for name in memory)
    assert torch.equal(disk["posterior.rows"], states())


def test_no_flipped_byte_of_a_streamed_file_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    belief(stored(tmp_path / "chain.rows", states(2))).save(path)
    whole, module = bytearray(path.read_bytes()), net()
    expected = load(path, module).predict(X).outputs
    refused = 0
    for i in [*range(0, len(whole), 7), len(whole) - 1]:
        whole[i] ^= 4
        path.write_bytes(whole)
        whole[i] ^= 4
        try:
            loaded = load(path, module)
        except BrokenFile:
            refused += 1
            continue
        assert torch.equal(loaded.predict(X).outputs, expected), f"byte {i}"
    assert refused > 0.9 * len(whole) / 7


def test_a_file_that_was_replaced_or_deleted_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    belief(stored(tmp_path / "chain.rows", states())).save(path)
    first = load(path, net())
    assert isinstance(first.posterior.rows, SealedRows)
    belief(stored(tmp_path / "other.rows", states(seed=1))).save(path)
    with pytest.raises(BrokenFile, match="was replaced or changed while a belief read its samples from it"):
        first.predict(X)
    second = load(path, net())
    path.unlink()
    with pytest.raises(BrokenFile, match="is gone, and the samples of the belief"):
        second.predict(X)


def test_a_belief_of_a_store_does_not_grow_with_it(tmp_path: Path) -> None:
    store = stored(tmp_path / "chain.rows", states())
    belief_of_six = belief(store)
    before = belief_of_six.predict(X).outputs
    store.append(states(3, seed=5))
    assert torch.equal(belief_of_six.predict(X).outputs, before)
    assert len(belief(store).predict(X)) == 9


def test_an_ensemble_of_chains_on_disk(tmp_path: Path) -> None:
    """Chains of 2 and 6 states, each chain as likely as the other, saved as one file and read from it."""
    layout, _ = lay_out(net())
    rows = states(2, seed=3), states(6)
    parts = tuple(posteriors.samples(stored(tmp_path / str(k), r), layout.random, SLOTS) for k, r in enumerate(rows))
    chains = Belief(
        net(),
        likelihoods.categorical(),
        posteriors.mixture(parts),
        layout,
        (untrained_tensors(net()), untrained_tensors(net())),
    )
    chains.save(tmp_path / "chains.doxa")
    reloaded = load(tmp_path / "chains.doxa", net())
    assert (reloaded.posterior.components, reloaded.posterior.distinct) == (2, 8)
    prediction = reloaded.predict(X, 100)
    assert prediction.weights.tolist() == pytest.approx([1 / 4] * 2 + [1 / 12] * 6)
    alone = [belief(r).predict(X).mean for r in rows]
    torch.testing.assert_close(prediction.mean, (alone[0] + alone[1]) / 2)
    assert torch.equal(prediction.outputs, chains.predict(X, 100).outputs)
    fresh = reloaded.refreshed(X)
    assert [len(p.rows) for p in fresh.posterior.members] == [2, 6]


def test_precision_is_changed_as_rows_are_read(sampled_belief: Belief) -> None:
    double = sampled_belief.to(dtype=torch.float64)
    assert {draw.weights.dtype for draw in double.posterior.draws(6, (0,))} == {torch.float64}
    assert double.posterior.mean.dtype == torch.float64
    torch.testing.assert_close(double.predict(X.double()).outputs.float(), sampled_belief.predict(X).outputs)


def test_a_copy_is_a_copy(sampled_belief: Belief) -> None:
    assert torch.equal(copy.deepcopy(sampled_belief).predict(X).outputs, sampled_belief.predict(X).outputs)


def test_predicting_reads_every_sample_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored_belief = belief(stored(tmp_path / "chain.rows", states()))
    read, rows_read = SampleStore.read, []
    monkeypatch.setattr(SampleStore, "read", lambda self, *span: (rows_read.extend(range(*span)), read(self, *span))[1])
    stored_belief.predict(X)
    assert rows_read == [0, 1, 2, 3, 4, 5]
    rows_read.clear()
    stored_belief.predict(X, 2)
    assert rows_read == [1, 4]


def test_rows_that_make_no_sense_are_refused() -> None:
    for rows, random in ((torch.zeros(0, 4), 4), (torch.zeros(4), 4), (torch.zeros(2, 4), 5), (torch.zeros(2, 4), -1)):
        with pytest.raises(BadInput):
            posteriors.samples(rows, random)
    with pytest.raises(BadInput, match="rows have 2 weights, of which 4 cannot be random"):
        posteriors.samples(torch.zeros(2, 4), 4, (("a", (2,)),))
    with pytest.raises(BadInput, match="real numbers"):
        posteriors.samples(torch.zeros(2, 4, dtype=torch.int64), 4)
    with pytest.raises(BadInput, match="keep must say yes or no of each of 4"):
        posteriors.samples(torch.zeros(2, 4), 4, keep=torch.ones(3, dtype=torch.bool))


# Buffers that components share.


def particles(count: int) -> Belief:
    layout, start = lay_out(net())
    q = posteriors.particles(start + 0.3 * normal(count, len(start)), layout.random)
    return Belief(net(), likelihoods.categorical(), q, layout, (untrained_tensors(net()),) * count)


def test_shared_buffers_are_saved_once_and_stay_shared(tmp_path: Path) -> None:
    shared = particles(5)
    shared.save(tmp_path / "a.doxa")
    stored_names = [name for name in load_file(tmp_path / "a.doxa") if name.startswith("buffers.")]
    assert sorted(stored_names) == sorted(f"buffers.0.{name}" for name in untrained_tensors(net()))
    reloaded = load(tmp_path / "a.doxa", net())
    assert len(reloaded.buffers) == 5
    assert all(buffers is reloaded.buffers[0] for buffers in reloaded.buffers)
    assert torch.equal(reloaded.predict(X).outputs, shared.predict(X).outputs)
    moved = reloaded.to(dtype=torch.float64)
    assert all(b is moved.buffers[0][name] for buffers in moved.buffers for name, b in buffers.items())


def test_each_buffer_is_shared_by_itself(tmp_path: Path) -> None:
    """Two chains with statistics of their own, and a count of batches that all have in common."""
    shared = particles(4)
    first = untrained_tensors(net())
    second = {**first, "1.running_mean": normal(5), "1.running_var": 1 + normal(5).abs()}
    mixed = replace(shared, buffers=(first, first, second, second))
    mixed.save(tmp_path / "a.doxa")
    stored_names = {name for name in load_file(tmp_path / "a.doxa") if name.startswith("buffers.")}
    assert stored_names == {f"buffers.0.{name}" for name in first} | {
        "buffers.2.1.running_mean",
        "buffers.2.1.running_var",
    }
    reloaded = load(tmp_path / "a.doxa", net())
    assert reloaded.buffers[0] is reloaded.buffers[1]
    assert reloaded.buffers[2] is reloaded.buffers[3]
    assert reloaded.buffers[2]["1.num_batches_tracked"] is reloaded.buffers[0]["1.num_batches_tracked"]
    assert torch.equal(reloaded.predict(X).outputs, mixed.predict(X).outputs)
    assert not torch.equal(reloaded.predict(X).outputs, shared.predict(X).outputs)


def test_buffers_that_are_not_shared_are_written_as_ever(tmp_path: Path) -> None:
    unshared = replace(particles(3), buffers=tuple(untrained_tensors(net()) for _ in range(3)))
    unshared.save(tmp_path / "a.doxa")
    stored_names = {name for name in load_file(tmp_path / "a.doxa") if name.startswith("buffers.")}
    assert stored_names == {f"buffers.{k}.{name}" for k in range(3) for name in untrained_tensors(net())}
    reloaded = load(tmp_path / "a.doxa", net())
    assert len({id(b) for b in reloaded.buffers}) == 3
