"""How far perturbations move a net's outputs, with and without regard to what each weight does to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_normals
from doxa.search.sensitivity import s_abs, s_sum, safe_factors
from doxa.weights.layout import Layout, call, lay_out
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.pictures import generation_loader, load_images
from doxa_replicate.variational_optimisation.nets.trials import dense_net
from doxa_replicate.verdicts import Evidence

HIDDEN, RATE, BATCH = (100,), 1e-3, 128
SCALES = (0.003, 0.01, 0.03, 0.1)
SMALL_SCALE_NAME = "0.01"  # one of them, as it is told
SAFE_MOVES_LESS = Claim(
    "C-VO-12",
    "Perturbations divided by the summed sensitivity move the outputs less than others of the same length",
    "divergence of the outputs with ε/s_sum over that with ε, both of the same length, less 1: below 0 at every scale, "
    "for nets at their start and trained ones",
)
TIMED_PASSES = 3  # of which the shortest counts
PERTURBATION_KINDS = ("plain", "s_sum", "s_abs")
NET_STATES = ("at the start", "trained")


def run(options: ReplicationOptions) -> Numbers:
    seeds, count = options.seed_list(1, 7), int(options.by_size(8, 100))
    settings = {
        "scales": SCALES,
        "perturbations": count,
        "rows": int(options.by_size(100, 1000)),
        "net": [784, *HIDDEN, 10],
    }
    settings |= {"steps": training_steps(options), "rate": RATE, "batch": BATCH}
    parts = [
        cached_part(
            options,
            f"search-divergence-{seed}",
            {**settings, "seed": seed, "device": options.device},
            partial(_measure_seed, options, seed),
        )
        for seed in seeds
    ]
    divergence_by_state = {
        state: {
            kind: {
                scale_name: summary([part[state][kind][scale_name] for part in parts])
                for scale_name in parts[0][state][kind]
            }
            for kind in PERTURBATION_KINDS
        }
        for state in NET_STATES
    }
    return {
        "settings": settings,
        "seeds": seeds,
        "divergence": divergence_by_state,
        "alike": {state: summary([part[state]["alike"] for part in parts]) for state in NET_STATES},
        "cost": {name: summary([part["cost"][name] for part in parts]) for name in parts[0]["cost"]},
        "verdicts": [
            SAFE_MOVES_LESS.decide(_evidence(parts), seeds, setting="MNIST, 784-100-10; D with ε/s_sum over D with ε")
        ],
    }


def _evidence(parts: Sequence[Mapping[str, Any]]) -> dict[str, Evidence]:
    return {
        f"{state}, σ = {scale:g}": Evidence(
            [part[state]["s_sum"][f"{scale:g}"] / part[state]["plain"][f"{scale:g}"] - 1 for part in parts], below=0.0
        )
        for state in NET_STATES
        for scale in SCALES
    }


def training_steps(options: ReplicationOptions) -> int:
    """Of Adam, that make a net a trained one."""
    return int(options.by_size(20, 400))


def _measure_seed(options: ReplicationOptions, seed: int) -> dict[str, Any]:
    options.say(f"divergence, seed {seed}")
    rows = load_images(options, "MNIST").to_device(options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense_net(HIDDEN)
    layout, start = lay_out(net)
    belief = doxa.fit(
        net,
        generation_loader(rows.learn, BATCH, training_steps(options)),
        learner=doxa.learners.point(),
        likelihood=doxa.likelihoods.categorical(),
        epochs=1,
        lr=RATE,
        seed=seed,
        size=len(rows.learn[1]),
        device=options.device,
        progress=False,
    )
    x = rows.choose[0][: int(options.by_size(100, 1000))]
    weights_by_state = {"at the start": start.to(x.device), "trained": belief.posterior.mean.to(x.device)}
    divergences = {
        state: _divergences(net, layout, flat_weights, x, seed, int(options.by_size(8, 100)))
        for state, flat_weights in weights_by_state.items()
    }
    return divergences | {"cost": _seconds(net, layout, start.detach().to(x.device), x)}


def _seconds(net: nn.Module, layout: Layout, flat_weights: Tensor, x: Tensor) -> dict[str, float]:
    """What each sensitivity takes beside the outputs themselves, of the same rows."""

    def outputs(weights: Mapping[str, Tensor], rows: Any) -> Tensor:
        return call(net, weights, {}, rows)

    def forward() -> None:
        with torch.no_grad():
            outputs(layout.weights(flat_weights), x)

    timed: dict[str, Callable[[], Any]] = {
        "outputs": forward,
        "s_sum": partial(s_sum, outputs, layout, flat_weights, x),
        "s_abs": partial(s_abs, outputs, layout, flat_weights, x),
    }
    return {name: min(_seconds_of(function, x.device) for _ in range(TIMED_PASSES)) for name, function in timed.items()}


def _seconds_of(function: Callable[[], Any], device: torch.device) -> float:
    start = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def _divergences(
    net: nn.Module, layout: Layout, flat_weights: Tensor, x: Tensor, seed: int, count: int
) -> dict[str, Any]:
    def outputs(weights: Mapping[str, Tensor], rows: Any) -> Tensor:
        return call(net, weights, {}, rows)

    flat_weights = flat_weights.detach()
    sensitivities = {"s_sum": s_sum(outputs, layout, flat_weights, x), "s_abs": s_abs(outputs, layout, flat_weights, x)}
    step_factors = {
        "plain": torch.ones_like(flat_weights),
        **{name: safe_factors(sensitivity) for name, sensitivity in sensitivities.items()},
    }
    epsilon = flat_weights.new_empty(count, len(flat_weights))
    fill_normals(epsilon, Stream(torch.tensor([seed_of((seed, "divergence", n)) for n in range(count)]), 0))
    lengths = epsilon.norm(dim=1, keepdim=True)
    divergence_by_kind: dict[str, Any] = {}
    with torch.no_grad():
        outputs_at_mean = outputs(layout.weights(flat_weights), x)
        for name, factor in step_factors.items():
            step = epsilon * factor
            step *= lengths / step.norm(dim=1, keepdim=True)
            divergence_by_kind[name] = {
                f"{scale:g}": mean(
                    [
                        divergence(outputs_at_mean, outputs(layout.weights(flat_weights + scale * perturbation), x))
                        for perturbation in step
                    ]
                )
                for scale in SCALES
            }
    return {
        **divergence_by_kind,
        "alike": float(nn.functional.cosine_similarity(sensitivities["s_sum"], sensitivities["s_abs"], 0)),
    }


def divergence(outputs: Tensor, perturbed: Tensor) -> float:
    """D = (1/I) Σ_k Σ_i (NN(x_i | w)_k − NN(x_i | w + ε)_k)²."""
    return float((outputs - perturbed).square().sum(1).mean())


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    table = result["numbers"]["divergence"]
    shown: list[PageElement] = [
        Chart(
            state.capitalize(),
            f"At σ = {SMALL_SCALE_NAME} s_sum leaves {_share_left(by_kind, 's_sum'):.2g} of it, s_abs "
            f"{_share_left(by_kind, 's_abs'):.2g}.",
            "‖ε‖ / √P",
            "divergence",
            [
                ChartLine(name, [float(s) for s in by_scale], [v["mean"] for v in by_scale.values()])
                for name, by_scale in by_kind.items()
            ],
            log_x=True,
            log_y=True,
        )
        for state, by_kind in table.items()
    ]
    rows = [
        [state, name, *(f"{v['mean']:.3g}" for v in by_scale.values())]
        for state, by_kind in table.items()
        for name, by_scale in by_kind.items()
    ]
    headers = ("net", "perturbations", *(f"σ = {s:g}" for s in SCALES))
    shown.append(ResultTable("Divergence of the outputs, at equal length", headers, rows, text_columns=2))
    return [*shown, *_seconds_table(result["numbers"].get("cost"))]


def _seconds_table(seconds: Mapping[str, Any] | None) -> list[ResultTable]:
    if seconds is None:  # a result of before they were measured
        return []
    passes = seconds["outputs"]["mean"]
    rows = [[name, f"{1000 * each['mean']:.3g}", f"{each['mean'] / passes:.3g}"] for name, each in seconds.items()]
    caption = (
        "The shortest of three, mean over seeds; s_sum takes a backward pass an output, s_abs one a row and output."
    )
    return [ResultTable("What sensitivities cost", ("what", "ms", "times the outputs"), rows, caption=caption)]


def _share_left(by_kind: Mapping[str, Any], kind: str) -> float:
    return float(by_kind[kind][SMALL_SCALE_NAME]["mean"] / by_kind["plain"][SMALL_SCALE_NAME]["mean"])


ARTEFACT = Artefact(
    name="variational-optimisation/divergence",
    order=20,
    group="nets",
    title="Safe perturbations: how far outputs diverge",
    requirements=("VO-34", "VO-35", "VO-36"),
    run=run,
    claims=(SAFE_MOVES_LESS,),
    reference={"document": "definitions alone; perturbations divided by a sensitivity should diverge less"},
    left_open=(
        "net and rows: 784-100-10 on MNIST, as torch starts it and after 400 steps; 1,000 rows, 100 perturbations",
        "what outputs are: those of the net, before the softmax",
        "the floor of a sensitivity: a thousandth of its root mean square; perturbations keep their length",
    ),
    departures={"quick": ("100 rows, eight perturbations, 20 steps",)},
    durations=("some seconds", "ten minutes"),
    show=show,
)
