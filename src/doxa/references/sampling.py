"""Chains under way: work for the engine's driver, one trajectory of all of them a unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.engine.states import restore, select_prefix
from doxa.errors import BadInput, Diverged
from doxa.random import streams
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_uniform
from doxa.references.leapfrog import Target, reasonable_step_size
from doxa.references.mass import DiagonalMass, window_ends
from doxa.references.settings import HMCSettings
from doxa.references.step_size import DualAveraging
from doxa.references.transition import Rule, draw_momentum, metropolis, transition

LOOKS = 100  # at how it goes, for the history
FIRST_STEP_SIZE = 0.1


class Sampling:
    """K chains of Hamiltonian Monte Carlo: all that a checkpoint holds, and how to go on.

    While it warms up, step sizes and masses are adapted; from then on nothing is, and draws are kept. How many steps a
    trajectory has is drawn for all chains at once, from a stream of its own: what they take together takes as long as
    one.
    """

    def __init__(
        self,
        target: Target,
        settings: HMCSettings,
        seeds: Sequence[int],
        make_result: Callable[[Sampling], Any] = lambda sampling: None,
        rule: Rule = metropolis,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.target, self.settings, self.make_result, self.rule = target, settings, make_result, rule
        self.identity = dict(identity or {})  # what a checkpoint says besides of whose chains these are
        device, chains = target.position.device, len(target.position)
        self.seeds = torch.tensor(seeds, device=device)
        self.length_seed = torch.tensor([seed_of((settings.seed, "trajectories"))])
        target.evaluate()
        self.energy = target.energy()
        _require_finite(self.energy, target.slope)
        first = FIRST_STEP_SIZE if settings.step_size is None else settings.step_size
        self.steps = DualAveraging(
            torch.full((chains,), first, dtype=torch.float64, device=device), settings.acceptance
        )
        self.mass = DiagonalMass(target.position)
        self.windows = window_ends(settings.warmup) if settings.adapt_mass else []
        self.window_start = round(0.15 * settings.warmup)
        self.accepted = torch.zeros(chains, dtype=torch.float64, device=device)  # sums, since the warm-up
        self.divergences = torch.zeros(chains, dtype=torch.float64, device=device)
        self.warmup_divergences = torch.zeros_like(self.divergences)
        self.gradients = 0  # of all chains, on trajectories; finding first step sizes takes some more
        self.draws: list[Tensor] = []  # [K, P] each
        self.energies: list[Tensor] = []  # [K] each
        self.history: list[dict[str, float]] = []
        self.done, self.text = 0, ""

    @property
    def total(self) -> int:
        """Trajectories, those of the warm-up among them."""
        return self.settings.warmup + self.settings.draws * self.settings.thinning

    @property
    def finished(self) -> bool:
        return self.done >= self.total

    @property
    def warming_up(self) -> bool:
        return self.done < self.settings.warmup

    @property
    def step_size(self) -> Tensor:
        """Of the next trajectory [K]."""
        return self.steps.step_size if self.warming_up or not self.settings.warmup else self.steps.averaged

    def trajectory_length(self, number: int) -> int:
        """Steps of a trajectory: uniform on `steps` (1 ± `jitter`), a whole number and at least one."""
        fewest = max(1, round(self.settings.steps * (1 - self.settings.jitter)))
        most = max(fewest, round(self.settings.steps * (1 + self.settings.jitter)))
        uniform = torch.empty(1, 1)
        fill_uniform(uniform, Stream(self.length_seed, number, streams.CHAIN_LENGTH))
        return fewest + int(float(uniform) * (most - fewest + 1))

    @torch.no_grad()
    def advance(self) -> str:
        """The next trajectory, and what is learned from it."""
        number, stream = self.done, Stream(self.seeds, self.done)
        if self.warming_up and (number in self.windows or (number == 0 and self.settings.step_size is None)):
            self._find_step_size(stream)
        length = self.trajectory_length(number)
        outcome = transition(
            self.target, self.energy, stream, self.step_size, self.mass.inverse_mass, length, self.rule
        )
        self.energy.copy_(outcome.energy)
        self.gradients += length
        if self.warming_up:
            self._adapt(number, outcome.acceptance)
            self.warmup_divergences += outcome.divergent
        else:
            self.accepted += outcome.acceptance
            self.divergences += outcome.divergent
            if (number - self.settings.warmup + 1) % self.settings.thinning == 0:
                self.draws.append(self.target.position.clone())
                self.energies.append(self.energy.clone())
        self.done += 1
        if self.done % max(1, self.total // LOOKS) == 0 or self.finished:
            self._look(outcome.acceptance)
        return self.text

    def _find_step_size(self, stream: Stream) -> None:
        """Begin anew from step sizes that fit the masses."""
        momentum = draw_momentum(stream.with_number(streams.CHAIN_TRIAL), self.mass.inverse_mass, self.target.position)
        step_size = reasonable_step_size(
            self.target, self.energy, momentum, self.mass.inverse_mass, self.steps.step_size
        )
        self.steps.restart(step_size)

    def _adapt(self, number: int, acceptance: Tensor) -> None:
        self.steps.update(acceptance)
        if self.windows and self.window_start <= number < self.windows[-1]:
            self.mass.observe(self.target.position)
            if number + 1 in self.windows:
                self.mass.adopt()

    def _look(self, acceptance: Tensor) -> None:
        """Ask the device how it goes, for history and progress."""
        row = {
            "trajectory": self.done,
            "energy": float(self.energy.mean()),
            "acceptance": float(acceptance.mean()),
            "step_size": float(self.step_size.median()),
            "divergences": int(self.divergences.sum()),  # those of the warm-up are no fault
        }
        self.history.append(row)
        chains = len(self.energy)
        self.text = (
            f"{f'{chains} chains  ' if chains > 1 else ''}{'warm-up  ' if self.warming_up else ''}"
            f"energy {row['energy']:.4g}  acceptance {row['acceptance']:.2f}  step {row['step_size']:.2g}"
            + (f"  {row['divergences']} divergences" if row["divergences"] else "")
        )

    def position(self) -> str:
        return f"after trajectory {self.done} of {self.total}"

    def partial_result(self) -> Any:
        return self.make_result(self)

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        if not bool(self.target.position.isfinite().all()):
            raise Diverged("the weights of a chain are no longer finite")
        kept = {"draws": torch.stack(self.draws), "energies": torch.stack(self.energies)} if self.draws else {}
        header = {"done": self.done, "gradients": self.gradients, "history": self.history}
        return {**self.identity, **header}, {**self._tensors(), **kept}

    def _tensors(self) -> dict[str, Tensor]:
        """What changes in place."""
        return {
            "position": self.target.position,
            "slope": self.target.slope,
            "energy": self.energy,
            "accepted": self.accepted,
            "divergences": self.divergences,
            "warmup_divergences": self.warmup_divergences,
            **{f"steps.{k}": t for k, t in self.steps.tensors().items()},
            **{f"mass.{k}": t for k, t in self.mass.tensors().items()},
        }

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        done, kept = (
            header["done"],
            tensors.get("draws", self.target.position.new_empty(0, *self.target.position.shape)),
        )
        energies = tensors.get("energies", self.energy.new_empty(0, len(self.energy)))
        if type(done) is not int or done < 0 or type(header["gradients"]) is not int:
            raise ValueError(f"done is {done!r:.80}, not a number of trajectories")
        if done > self.total:
            raise BadInput(
                f"{done - self.settings.warmup} trajectories were saved after the warm-up, more than draws="
                f"{self.settings.draws} come to: ask for as many draws, or for more"
            )
        expected = max(0, done - self.settings.warmup) // self.settings.thinning
        if kept.shape != (expected, *self.target.position.shape) or energies.shape != (expected, len(self.energy)):
            raise ValueError(f"draws have shape {tuple(kept.shape)}, of {expected} that were kept")
        restore(self._tensors(), select_prefix(tensors, ""))
        self.draws, self.energies = [*kept.to(self.target.position)], [*energies.to(self.energy)]
        self.done, self.gradients, self.history = done, header["gradients"], [dict(row) for row in header["history"]]


def _require_finite(energy: Tensor, slope: Tensor) -> None:
    """Refuse to begin where there is no density, or no slope of it."""
    bad = ~(energy.isfinite() & slope.isfinite().all(1))
    if bool(bad.any()):
        chains = bad.nonzero()[:, 0].tolist()
        raise BadInput(
            f"the energy −log p(y, w | x) or its slope is not finite where chain {chains[0]} starts"
            f"{f' (and {len(chains) - 1} more)' if len(chains) > 1 else ''}: start from other weights with start=, or "
            "look for infinite likelihoods of the targets"
        )
