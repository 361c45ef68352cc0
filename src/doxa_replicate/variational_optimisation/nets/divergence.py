"""How far perturbations move a net's outputs, with and without regard to what each weight does to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_normals
from doxa.search.sensitivity import s_abs, s_sum, safe
from doxa.weights.layout import call, lay_out
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.parts import kept
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.nets.pictures import pictures, stretches
from doxa_replicate.variational_optimisation.nets.trials import dense

HIDDEN, RATE, BATCH = (100,), 1e-3, 128
SCALES = (0.003, 0.01, 0.03, 0.1)
SMALL = "0.01"  # one of them, as it is told
SAFE = Claim(
    "C-VO-12",
    "Perturbations divided by sensitivities move the outputs less",
    "divergence of the outputs at equal length of the perturbation: lower with ε/s than with ε, at every scale, for "
    "nets at their start and trained ones, with either sensitivity",
)
KINDS = ("plain", "s_sum", "s_abs")
STATES = ("at the start", "trained")


def run(ask: Ask) -> Numbers:
    seeds, many = ask.these(1, 3), int(ask.of(8, 100))
    told = {"scales": SCALES, "perturbations": many, "rows": int(ask.of(100, 1000)), "net": [784, *HIDDEN, 10]}
    told |= {"steps": steps(ask), "rate": RATE, "batch": BATCH}
    parts = [
        kept(ask, f"search-divergence-{seed}", {**told, "seed": seed, "device": ask.device}, partial(_found, ask, seed))
        for seed in seeds
    ]
    found = {
        state: {kind: {s: summary([p[state][kind][s] for p in parts]) for s in parts[0][state][kind]} for kind in KINDS}
        for state in STATES
    }
    ratios = {
        f"{scale:g}": [
            [p[state][kind][f"{scale:g}"] / p[state]["plain"][f"{scale:g}"] for p in parts]
            for state in STATES
            for kind in KINDS[1:]
        ]
        for scale in SCALES
    }
    return {
        "settings": told,
        "seeds": seeds,
        "divergence": found,
        "alike": {state: summary([p[state]["alike"] for p in parts]) for state in STATES},
        "verdicts": [
            SAFE.judged(
                all(ratio < 1 for own in ratios.values() for each in own for ratio in each),
                {f"σ = {scale}": max(mean(each) for each in own) for scale, own in ratios.items()},
                max(error(each) or 0.0 for own in ratios.values() for each in own),
                seeds,
                "D with ε/s over D with ε at each scale, for the worst of two nets and two sensitivities, mean over "
                "seeds; MNIST, 784-100-10",
            )
        ],
    }


def steps(ask: Ask) -> int:
    """Of Adam, that make a net a trained one."""
    return int(ask.of(20, 400))


def _found(ask: Ask, seed: int) -> dict[str, Any]:
    ask.say(f"divergence, seed {seed}")
    rows = pictures(ask, "MNIST").on(ask)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense(HIDDEN)
    layout, start = lay_out(net)
    belief = doxa.fit(
        net,
        stretches(rows.learn, BATCH, steps(ask)),
        learner=doxa.learners.point(),
        likelihood=doxa.likelihoods.categorical(),
        epochs=1,
        lr=RATE,
        seed=seed,
        size=len(rows.learn[1]),
        device=ask.device,
        progress=False,
    )
    x = rows.choose[0][: int(ask.of(100, 1000))]
    places = {"at the start": start.to(x.device), "trained": belief.posterior.mean.to(x.device)}
    return {state: _at(net, layout, flat, x, seed, int(ask.of(8, 100))) for state, flat in places.items()}


def _at(net: nn.Module, layout: Any, flat: Tensor, x: Tensor, seed: int, many: int) -> dict[str, Any]:
    def outputs(weights: Mapping[str, Tensor], rows: Any) -> Tensor:
        return call(net, weights, {}, rows)

    flat = flat.detach()
    found = {"s_sum": s_sum(outputs, layout, flat, x), "s_abs": s_abs(outputs, layout, flat, x)}
    factors = {"plain": torch.ones_like(flat), **{name: safe(s) for name, s in found.items()}}
    epsilon = flat.new_empty(many, len(flat))
    fill_normals(epsilon, Stream(torch.tensor([seed_of((seed, "divergence", n)) for n in range(many)]), 0))
    lengths = epsilon.norm(dim=1, keepdim=True)
    table: dict[str, Any] = {}
    with torch.no_grad():
        middle = outputs(layout.weights(flat), x)
        for name, factor in factors.items():
            step = epsilon * factor
            step *= lengths / step.norm(dim=1, keepdim=True)
            table[name] = {
                f"{scale:g}": mean([divergence(middle, outputs(layout.weights(flat + scale * e), x)) for e in step])
                for scale in SCALES
            }
    return {**table, "alike": float(nn.functional.cosine_similarity(found["s_sum"], found["s_abs"], 0))}


def divergence(outputs: Tensor, perturbed: Tensor) -> float:
    """D = (1/I) Σ_k Σ_i (NN(x_i | w)_k − NN(x_i | w + ε)_k)²."""
    return float((outputs - perturbed).square().sum(1).mean())


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    table = found["numbers"]["divergence"]
    shown: list[Shown] = [
        Chart(
            state.capitalize(),
            f"At σ = {SMALL} s_sum leaves {_left(own, 's_sum'):.2g} of it, s_abs {_left(own, 's_abs'):.2g}.",
            "‖ε‖ / √P",
            "divergence",
            [Line(name, [float(s) for s in of], [v["mean"] for v in of.values()]) for name, of in own.items()],
            log_x=True,
            log_y=True,
        )
        for state, own in table.items()
    ]
    rows = [
        [state, name, *(f"{v['mean']:.3g}" for v in of.values())]
        for state, own in table.items()
        for name, of in own.items()
    ]
    heads = ("net", "perturbations", *(f"σ = {s:g}" for s in SCALES))
    return [*shown, Table("Divergence of the outputs, at equal length", heads, rows, words=2)]


def _left(own: Mapping[str, Any], kind: str) -> float:
    return float(own[kind][SMALL]["mean"] / own["plain"][SMALL]["mean"])


ARTEFACT = Artefact(
    name="variational-optimisation/divergence",
    place=20,
    group="nets",
    title="Safe perturbations: how far outputs diverge",
    rows=("VO-34", "VO-35", "VO-36"),
    run=run,
    claims=(SAFE,),
    reference={"document": "definitions alone; perturbations divided by a sensitivity should diverge less"},
    left_open=(
        "net and rows: 784-100-10 on MNIST, as torch starts it and after 400 steps; 1,000 rows, 100 perturbations",
        "what outputs are: those of the net, before the softmax",
        "the floor of a sensitivity: a thousandth of its root mean square; perturbations keep their length",
    ),
    departures={"quick": ("100 rows, eight perturbations, 20 steps",)},
    takes=("some seconds", "two minutes"),
    show=show,
)
