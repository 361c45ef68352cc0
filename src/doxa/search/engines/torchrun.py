"""Workers that torchrun has started: the same script in every one of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from doxa.errors import BadInput, require_positive, require_whole
from doxa.search.engines.contract import (
    CopySearch,
    Evaluate,
    EvaluationFailed,
    Exchange,
    OutOfStep,
    describe_error,
    failure,
    search_state_of,
)


@dataclass(frozen=True)
class Torchrun:
    """Every rank runs the whole search, evaluates its share of each generation, and hears what the others found.

    Values are all that travels. When a rank dies, or stands still, the others notice within `timeout` seconds and end
    too; torchrun starts all of them again (--max-restarts), and with a checkpoint of every generation and resume=True
    they go on where they were. Rank 0 alone writes. Results are the same for any number of ranks.
    """

    timeout: float = field(default=30.0, compare=False)
    parts: int = 16

    def __post_init__(self) -> None:
        require_positive("timeout", self.timeout)
        require_whole("parts", self.parts)

    @property
    def leads(self) -> bool:
        """Whether this rank is the one that writes."""
        return int(os.environ.get("RANK", "0")) == 0

    @contextmanager
    def start_workers(self, copy: CopySearch) -> Iterator[Exchange]:
        if "RANK" not in os.environ:
            raise BadInput(
                "engines.torchrun needs a script that torchrun has started, e.g. torchrun --nproc-per-node 4 script.py"
            )
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        wait = timedelta(seconds=self.timeout)
        # The agent's store outlives a restart: what the last life left there must not be taken for this one's.
        try:
            agent_store = TCPStore(
                os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=_hosts_store(rank), timeout=wait
            )
            store = PrefixStore(f"doxa/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", agent_store)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=wait)
        except RuntimeError as error:
            raise EvaluationFailed(
                f"the {world_size} ranks did not find one another within timeout={self.timeout:g} s: {error}"
            ) from error
        try:
            yield RankExchange(rank, world_size, self.timeout).exchange
        finally:
            dist.destroy_process_group()


def _hosts_store(rank: int) -> bool:
    """Whether this process is to keep the store: only where torchrun's agent does not."""
    return rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"


@dataclass(frozen=True)
class RankExchange:
    """One rank among others."""

    rank: int
    world_size: int
    timeout: float = 30.0

    def exchange(self, generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
        """Evaluate every so-manieth block, and gather the rest from ranks that stand at the same place."""
        values_here: dict[int, Any] = {}
        error_here: tuple[int, str, str] | None = None
        for k in range(self.rank, len(blocks), self.world_size):
            try:
                values_here[k] = evaluate(blocks[k]).cpu().numpy()
            except (Exception, SystemExit) as error:
                error_here = k, *describe_error(error)
                break
        from_ranks: list[Any] = [None] * self.world_size
        try:
            dist.all_gather_object(from_ranks, (values_here, error_here, (generation, _digest(evaluate, blocks))))
        except RuntimeError as error:
            raise EvaluationFailed(
                f"another rank has died, stands still, or took more than timeout={self.timeout:g} s longer than this "
                f"one in generation {generation + 1}: {error}. Nothing was changed by this generation; where "
                "evaluations take long, give engines.torchrun a longer timeout"
            ) from error
        _require_same_state([state for _, _, state in from_ranks])
        errors = [rank_error for _, rank_error, _ in from_ranks if rank_error is not None]
        if errors:
            raise failure(generation, *errors[0])
        values_by_block = {k: values for rank_values, _, _ in from_ranks for k, values in rank_values.items()}
        return [torch.from_numpy(values_by_block[k]) for k in range(len(blocks))]


def _digest(evaluate: Evaluate, blocks: Sequence[slice]) -> str:
    """A few letters for what is searched, from where, in which blocks."""
    digest = hashlib.blake2b(repr(blocks).encode(), digest_size=4)
    for tensor in search_state_of(evaluate):
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _require_same_state(states: Sequence[tuple[int, str]]) -> None:
    if len(set(states)) > 1:
        rank_states = ", ".join(
            f"rank {k} in generation {g + 1} of search {digest}" for k, (g, digest) in enumerate(states)
        )
        raise OutOfStep(
            f"the ranks do not stand at the same place: {rank_states}. All need the same seed, settings and start on "
            "machines that compute alike, and to go on, the same checkpoint: is its folder one that each of them can "
            "read? Nothing was changed by this generation"
        )
