"""`doxa.references.hmc`: from a net and data to draws of its posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Likelihood, Prior, Record
from doxa.data.rows import Inputs, row_count, take_rows
from doxa.engine.checkpoint import BELIEF, Checkpointer, reserved
from doxa.engine.driver import drive
from doxa.engine.run import training_context
from doxa.errors import require_whole
from doxa.posteriors.samples import Samples
from doxa.predict.belief import Belief
from doxa.random.keys import seed_of
from doxa.references.diagnose import values_by_chain
from doxa.references.diagnostics import FEWEST_DRAWS, ess_bulk, ess_tail, r_hat
from doxa.references.energy import PosteriorEnergy
from doxa.references.problem import Question, build_question, require_same_weights
from doxa.references.sampling import Sampling
from doxa.references.settings import HMCSettings, chain_numbers
from doxa.storage.describe import describe
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress
from doxa.weights.layout import module_mode, untrained_tensors
from doxa.weights.saved_layout import encode_layout

KIND = "doxa.hmc"  # of its checkpoints
ROWS_WATCHED = 100  # at most, where diagnostics are taken if nobody says where


def hmc(
    net: nn.Module,
    data: Any,
    *,
    likelihood: Likelihood,
    prior: Prior,
    chains: int | Sequence[int] = 64,
    draws: int = HMCSettings.draws,
    warmup: int = HMCSettings.warmup,
    steps: int = HMCSettings.steps,
    jitter: float = HMCSettings.jitter,
    acceptance: float = HMCSettings.acceptance,
    step_size: float | None = HMCSettings.step_size,
    adapt_mass: bool = HMCSettings.adapt_mass,
    thinning: int = HMCSettings.thinning,
    start: Tensor | None = None,
    at: Any = None,
    rows: int | None = None,
    seed: int = HMCSettings.seed,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
    progress: bool = True,
) -> Belief:
    """The posterior of all weights of `net` itself, as draws of many chains that run as one program.

    p(w | y, x) ∝ exp(−U(w)),  U(w) = −Σᵢ log p(yᵢ | xᵢ, w) − log p(w)

    by Hamiltonian Monte Carlo on all rows of `data`, a pair (x, y) of tensors or arrays, with nothing approximated but
    by chance: each chain makes trajectories of about `steps` leapfrog steps (their number drawn anew each time, within
    a share `jitter` of it), whose ends are accepted or not. `warmup` trajectories find each chain's step size, by dual
    averaging to the mean `acceptance`, and one mass for each weight from what all chains have seen; then `draws` are
    kept of each chain, every `thinning`-th trajectory. `step_size` is the first one tried, and with `warmup=0` the one
    that is used.

    `chains` is how many, or which: chain k is the same alone or among others, where `adapt_mass` is off. They begin at
    fresh starts of the net's layers, or at `start` [chains, P]. `rows` go through the nets at a time; `dtype`, as
    torch.float64, is that of the arithmetic. The record tells, at the inputs `at` (by default up to 100 of the data's),
    R-hat and effective sizes of the predictions; `doxa.references.diagnose(belief, x)` does at any others. With
    `checkpoint`, a folder, the chains are saved every `checkpoint_every` trajectories and when interrupted;
    `resume=True` goes on from there, to the same bits, also with more `draws`. Neal (2011), MCMC using Hamiltonian
    dynamics; Hoffman & Gelman (2014), The No-U-Turn sampler.
    """
    settings = HMCSettings(draws, warmup, steps, jitter, acceptance, step_size, adapt_mass, thinning, seed)
    numbers, checkpoint_every = chain_numbers(chains), require_whole("checkpoint_every", checkpoint_every)
    question = build_question(net, data, likelihood, prior, numbers, settings.seed, start, dtype, device)
    size = row_count(question.x) if rows is None else require_whole("rows", rows)
    described = _describe(settings, question, numbers, likelihood, prior, start) | {
        "rows": size,
        "frozen": describe(untrained_tensors(net)),  # what is not sampled, and belongs to the energy all the same
    }
    with ExitStack() as stack:
        folder = None if checkpoint is None else Path(checkpoint)
        stack.enter_context(reserved(folder))
        stack.enter_context(training_context(question.problem, question.y.device))
        # The function that predicts is the one that is sampled.
        stack.enter_context(module_mode(question.problem.net, training=False))
        sampling = Sampling(
            PosteriorEnergy(question.problem, question.prior, question.x, question.y, size),
            settings,
            [seed_of(key) for key in question.problem.seeds],
            partial(make_belief, net, question, likelihood, prior, described),
            identity={"layout": encode_layout(question.problem.layout)},
        )
        checkpointer = Checkpointer(
            KIND,
            "sampling",
            folder,
            described,
            is_due=lambda done: done % checkpoint_every == 0,
            changeable=("draws",),
            check_header=partial(require_same_weights, question.problem),
        )
        checkpointer.reopen(sampling, resume)
        stop = stack.enter_context(gentle_interrupt())
        shown = Progress(progress, sampling.total, 1, sampling.done, unit="trajectory")
        drive(sampling, checkpointer, shown, stop)
    belief = make_belief(net, question, likelihood, prior, described, sampling)
    belief = _with_diagnostics(belief, _rows_watched(question.original_x) if at is None else at)
    if folder is not None:
        belief.save(folder / BELIEF)
    return belief


def _describe(
    settings: HMCSettings,
    question: Question,
    numbers: Sequence[int],
    likelihood: Likelihood,
    prior: Prior,
    start: Tensor | None,
) -> dict[str, Any]:
    """What the record tells of the sampling, and a checkpoint must have in common with who resumes it."""
    return {
        **{name: value for name, value in describe(settings).items() if name != "is"},
        "method": "hmc",
        "likelihood": describe(likelihood),
        "prior": describe(prior),
        "chain_numbers": list(numbers),
        "start": describe(start),
        "size": row_count(question.x),
        "data": question.fingerprint,
        "dtype": str(question.problem.start.dtype),
    }


def make_belief(
    net: nn.Module,
    question: Question,
    likelihood: Likelihood,
    prior: Prior,
    described: dict[str, Any],
    sampling: Sampling,
) -> Belief:
    """What the chains have come to, one chain after the other; before the first draw, where they are."""
    layout, chains = question.problem.layout, len(sampling.target.position)
    draws = sampling.draws or [sampling.target.position]
    rows = torch.stack(draws, 1).flatten(0, 1).to(question.dtype)
    count = max(1, sampling.done - sampling.settings.warmup)
    sampled = {
        "chains": chains,
        "draws": len(draws),
        "acceptance": (sampling.accepted / count).tolist(),
        "step_size": sampling.step_size.tolist(),
        "divergences": [int(n) for n in sampling.divergences.tolist()],
        "warmup_divergences": [int(n) for n in sampling.warmup_divergences.tolist()],
        "gradients": sampling.gradients,
    }
    if len(sampling.energies) >= FEWEST_DRAWS:
        sampled["energy_r_hat"] = _number(float(r_hat(torch.stack(sampling.energies, 1))))
    device = question.y.device
    buffers = {name: tensor.to(device) for name, tensor in untrained_tensors(net).items()}
    noise = {slot.name: "samples" for slot in layout.slots}
    record = Record({**described, "sampled": sampled}, [dict(row) for row in sampling.history])
    return Belief(
        net, likelihood, Samples(rows, layout.random), layout, (buffers,), question.bound_prior, noise, record
    )


def _with_diagnostics(belief: Belief, x: Any) -> Belief:
    """The same belief, whose record tells how its chains have mixed in what they predict at x."""
    sampled = belief.record.settings["sampled"]
    if sampled["draws"] >= FEWEST_DRAWS:
        values = values_by_chain(belief, x)
        for name, statistic, worst in (("r_hat", r_hat, max), ("ess_bulk", ess_bulk, min), ("ess_tail", ess_tail, min)):
            numbers = [number for number in statistic(values).flatten().tolist() if not math.isnan(number)]
            sampled[name] = _number(worst(numbers, default=math.nan))
    return belief


def _rows_watched(x: Inputs) -> Inputs:
    """Rows of the data, evenly spaced."""
    count = row_count(x)
    watched = min(count, ROWS_WATCHED)
    return take_rows(x, torch.arange(watched) * count // watched)


def _number(value: float) -> float | None:
    """A number as JSON has it, where NaN is none."""
    return value if math.isfinite(value) else None
