"""What results and pages say of how the games were played, and where the document's own code says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.mushrooms.agents import (
    BBB,
    BBB_AS_RUN,
    BBB_AS_WRITTEN,
    FULL,
    GREEDY_AGENTS,
    HIDDEN,
    LEARNING_SAMPLES,
    LIKELIHOOD,
    NARROW_SCALE,
    QUICK,
    START,
    WIDE_SHARE,
    AgentSetting,
    GameSize,
    game_size,
)
from doxa_replicate.weight_uncertainty.mushrooms.games import choose, reported_seeds, varied_seeds
from doxa_replicate.weight_uncertainty.mushrooms.grids import AGENT_OF_KIND, tuning_seeds


def result_settings(options: ReplicationOptions) -> dict[str, Any]:
    """What a result says of how it was made: enough to make it again."""
    size = game_size(options)
    chosen = {AGENT_OF_KIND[kind]: choose(options, kind).setting for kind in AGENT_OF_KIND}
    agents: dict[str, Mapping[str, AgentSetting]] = {
        AS_RUN: {BBB: BBB_AS_RUN, **GREEDY_AGENTS},
        AS_WRITTEN: {BBB: BBB_AS_WRITTEN, **GREEDY_AGENTS},
        CHOSEN: chosen,
    }
    sizes = {AS_RUN: size.one_pass, AS_WRITTEN: size, CHOSEN: size}
    return {
        "games": {column: _describe_size(column_size) for column, column_size in sizes.items()},
        "agents": {
            column: {
                name: asdict(setting) | {"halving": size.scale_steps(setting.halving)}
                for name, setting in settings.items()
            }
            for column, settings in agents.items()
        },
        "seeds": {
            "main games": reported_seeds(options),
            "other priors and rates": varied_seeds(options),
            "for choosing": list(tuning_seeds(options)),
        },
        "net": {"columns": 95, "actions": 2, "hidden": HIDDEN, "outputs": 1},
        "likelihood": repr(LIKELIHOOD),
        "optimiser": "Adam, betas 0.9 and 0.999, eps 1e-8, on the mean over a minibatch",
        "start": f"beliefs: {START!r}; greedy and neural linear: torch's own",
        "prior": {"share": WIDE_SHARE, "narrow": NARROW_SCALE},
        "samples": LEARNING_SAMPLES,
        "KL": "for each thing remembered 1 / their number, times the share of the update",
    }


def _describe_size(size: GameSize) -> dict[str, Any]:
    minibatches = "drawn from the memory with replacement" if size.replacement else "one pass over the shuffled memory"
    return {**asdict(size), "minibatches": minibatches}


AGAINST_ITS_CODE = (
    "the document samples the weights twice and averages; its code draws twice for eating and twice more for passing, "
    "so that a choice compares different weights and explores more than Thompson sampling does; the document leaves "
    "out that each step makes 64 updates, one pass over the shuffled memory, that these pay for the KL in shares that "
    "halve from one to the next, that all runs begin with one stored memory, and that the axis of regret bends, with "
    "0, 1,000, 10,000 and 100,000 equally far apart: a straight line on it is none"
)
AGAINST_ITSELF = (
    "the document says both that BBB converges faster than the greedy agent and that it does not do so consistently; "
    "of its games nothing is stored"
)
LEFT_OPEN = (
    f"as written, updates for each step of the game: {FULL.updates} minibatches of {FULL.batch_size}, each drawn "
    "uniformly from the memory, with even shares of the KL; as run, 64 of 64 in one pass, with halving shares",
    "the noise of the reward, Gaussian of scale 1; the prior's share of the wide Gaussian, 1/2; draws in an update, 2: "
    "all three as run, and taken for every column",
    "mushrooms come with replacement, each as likely as any other; the regret of the 4,096 random actions before the "
    "first step is not counted",
    "over how many steps the eating rate is taken, which prior variances were tried, and which runs were averaged: "
    "nothing in the authors' code tells",
    "games are played many at a time, and rounding differs with the company and the device: over 50,000 steps that "
    "makes another game of it: with ε-greedy agents that were played twice, in other company, mean expected regrets of "
    "the last half were up to 26 % apart",
)
DEPARTURES: dict[str, tuple[str, ...]] = {
    "quick": (
        f"{QUICK.steps} steps of {QUICK.updates} updates for 50,000 of {FULL.updates}, a memory of {QUICK.memory} for "
        "4,096, two seeds, and two settings of each grid: a quick run shows that it works, not who wins",
    ),
    "full": (
        "ten seeds for the document's one or three, five with other priors and rates",
        "each seed has a memory of random actions of its own at the start, for the one that the authors had stored",
        "losses are means over a minibatch, the authors' of beliefs sums and of greedy nets squared errors: factors of "
        "64 and of a half, which Adam does not mind but for its eps; a tie, of two equal numbers, need not be passed",
        "settings of a grid are chosen by the mean expected regret of seeds 1000 and 1001, whose games are in no curve "
        "and no verdict; those of ε-greedy agents by their regret in the last half, where their slope is measured",
        "the grids are not the first: games of earlier ones were seen, those of the reported seeds 0 to 4 among them; "
        "rewards divided by ten and nets that tell the noise of a reward did worse and were left out, and rates and "
        "prior scales beyond the edges of those grids were added",
    ),
}
