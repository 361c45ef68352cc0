"""How much do the gradients of a step vary with each noise, and what does a step cost?

At a belief that is held still, 784-400-400-10 on MNIST, gradients of the free energy are taken again and again, each
with another batch of 128 rows and other noise, the batches the same for all. Their variance is summed over the weights
of each layer, and held against that of shared noise with one sample, in rounds of sixteen; ratios are medians over
rounds. The plain net's gradients at the mean weights vary with the batch alone: that much no noise can do without.
Steps are timed in turn, so that variance times cost can be read: what one unit of precision costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.engine.contracts import Learner
from doxa_bench import beside
from doxa_bench.contenders import Task, quiet
from doxa_bench.digits import Rows, digits
from doxa_bench.kinds import BATCH, KINDS, new
from doxa_bench.settings import Settings
from doxa_bench.steps import GAUSSIAN, SCALE, Believed, Named, Pupil, even, plain
from doxa_bench.tables import Table, libraries, number, refusals
from doxa_bench.timing import figures, in_turn, ratio

ROUNDS, EACH = 10, 16  # rounds, and gradients in a round
STEPS = 31  # rounds of timing
SECONDS = 60.0  # of timing
KIND = "mlp400"
EPOCHS = 3  # before the second belief is held still

variational = doxa.learners.variational
GROUND = "shared"
LEARNERS: dict[str, Learner] = {
    "shared": variational(GAUSSIAN),
    "shared, two samples": variational(GAUSSIAN, samples=2),
    "shared, antithetic pair": variational(GAUSSIAN, samples=2, antithetic=True),
    "local": variational(GAUSSIAN, doxa.noise.local),
    "flipout": variational(GAUSSIAN, doxa.noise.flipout),
}

Gradients = Callable[[Tensor, Tensor], dict[str, Named]]  # by "mean", and by "rho" where it is known
Sums = dict[str, dict[str, float]]  # by what, and for each layer


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    rounds = settings.turns(ROUNDS)
    train, _, _ = digits(settings.device)
    found: dict[str, Any] = {
        "settings": {
            "net": KINDS[KIND].shown,
            "batch": BATCH,
            "rows": len(train[0]),
            "rounds": rounds,
            "gradients": rounds * EACH,
            "start_scale": SCALE,
            "epochs": epochs(settings),
        },
        "points": {},
        "cost": {},
        "missing": {},
        "libraries": beside.known(),
    }
    for name, (net, scales) in points(train, settings).items():
        known = gradients(net, scales, train, found["missing"], settings)
        found["points"][name] = variances(known, train, rounds, partial(settings.progress, name))
        settings.say(
            f"{name}: " + ", ".join(f"{k} {v['by_mean']['ratio']:.2f}" for k, v in found["points"][name].items())
        )
        yield found
    found["cost"] = costs(train, settings)
    yield found


def epochs(settings: Settings) -> int:
    return 1 if settings.quick else EPOCHS


def points(train: Rows, settings: Settings) -> dict[str, tuple[nn.Module, Named]]:
    """Beliefs to hold still: as a net that weighs its means, and scales by name."""
    net = new(KIND, settings.device)
    begun = net, even(net)
    learned = Believed(
        new(KIND, settings.device), (train[0][:BATCH], train[1][:BATCH]), LEARNERS["local"], len(train[0])
    )
    torch.manual_seed(0)
    for epoch in range(epochs(settings)):
        settings.progress(f"learning, epoch {epoch + 1}")
        for index in torch.randperm(len(train[0])).to(settings.device).split(BATCH):
            learned.step(learned.batch(train[0][index], train[1][index]))
    belief = learned.belief()
    scales = {slot.name: belief.posterior.scale[slot.span].view(slot.shape) for slot in belief.layout.random_slots}
    return {"at the start": begun, f"after {epochs(settings)} epochs": (belief.plain(), scales)}


def gradients(
    net: nn.Module, scales: Named, train: Rows, missing: dict[str, dict[str, str]], settings: Settings
) -> dict[str, Gradients]:
    """How every contender takes its gradients at one belief."""
    rows = train[0][:BATCH], train[1][:BATCH]
    found: dict[str, Gradients] = {"plain net": by_mean(plain(net))}
    for name, learner in LEARNERS.items():
        if name == GROUND or settings.wants(name):
            belief = Believed(net, rows, learner, len(train[0]))
            belief.spread(scales)
            found[name] = by_both(belief)
    task: Callable[[str], Task] = lambda noise: Task(net, scales, len(train[0]), noise)  # noqa: E731
    for noise, library, offer in beside.pupils(task, *rows):
        if isinstance(offer, str):
            missing.setdefault(noise, {})[library] = offer
        elif settings.wants(f"{noise}, {library}"):
            found[f"{noise}, {library}"] = by_mean(offer)
    return found


def by_mean(pupil: Pupil) -> Gradients:
    return lambda x, y: {"mean": pupil.slopes(x, y)}


def by_both(belief: Believed) -> Gradients:
    def taken(x: Tensor, y: Tensor) -> dict[str, Named]:
        mean, rho = belief.gradients(belief.batch(x, y))
        return {"mean": mean, "rho": rho}

    return taken


def variances(known: dict[str, Gradients], train: Rows, rounds: int, heard: Callable[[], None]) -> dict[str, Any]:
    """Each contender's variance by mean and by rho: absolute, and times the ground's."""
    torch.manual_seed(1)
    taken: dict[str, list[Sums]] = defaultdict(list)
    for _ in range(rounds):
        batches = torch.randint(len(train[0]), (EACH, BATCH), device=train[0].device)
        for name, gradient in known.items():
            with quiet():
                taken[name].append(summed([gradient(train[0][index], train[1][index]) for index in batches]))
        heard()
    return {name: held_against(own, taken[GROUND]) for name, own in taken.items()}


def summed(found: list[dict[str, Named]]) -> Sums:
    """The variance over gradients, summed over the weights of each layer."""
    sums: Sums = {}
    for by, tensors in found[0].items():
        layers: dict[str, float] = defaultdict(float)
        for name in tensors:
            layer = name.rpartition(".")[0]
            layers[layer] += float(torch.stack([each[by][name] for each in found]).double().var(0).sum())
        sums[by] = dict(layers)
    return sums


def held_against(own: list[Sums], ground: list[Sums]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for by in own[0]:
        ratios = [sum(a[by].values()) / sum(b[by].values()) for a, b in zip(own, ground, strict=True)]
        layers = {layer: sum(sums[by][layer] for sums in own) / len(own) for layer in own[0][by]}
        against = {layer: sum(sums[by][layer] for sums in ground) / len(ground) for layer in layers}
        found[f"by_{by}"] = {
            **ratio(ratios),
            "variance": sum(layers.values()),
            "layers": layers,
            "layer_ratios": {layer: layers[layer] / against[layer] for layer in layers},
        }
    return found


def costs(train: Rows, settings: Settings) -> dict[str, Any]:
    """A step of each, times a plain step."""
    rows = train[0][:BATCH], train[1][:BATCH]
    steps: dict[str, Callable[[], object]] = {}
    for name, learner in LEARNERS.items():
        belief = Believed(new(KIND, settings.device), rows, learner)
        steps[name] = partial(belief.step, belief.batch(*rows))
    net = new(KIND, settings.device)
    for noise, library, offer in beside.pupils(lambda noise: Task(net, even(net), noise=noise), *rows):
        if not isinstance(offer, str) and settings.wants(f"{noise}, {library}"):
            steps[f"{noise}, {library}"] = partial(offer.step, *rows)
    base = partial(plain(new(KIND, settings.device)).step, *rows)
    with quiet():
        taken = in_turn(base, steps, settings.turns(STEPS), settings.seconds(SECONDS), settings.device)
    return {name: figures(pairs) for name, pairs in taken.items()}


def show(found: dict[str, Any]) -> list[Table]:
    cost, shown = found["cost"], []
    for point, contenders in found["points"].items():
        rows = []
        for name, own in contenders.items():
            step = cost.get(name, {}).get("ratio")
            ground = cost.get(GROUND, {}).get("ratio")
            mean, rho = own["by_mean"]["ratio"], own.get("by_rho", {}).get("ratio")
            dearer = None if step is None or ground is None else step / ground
            prices = [None if dearer is None or v is None else v * dearer for v in (mean, rho)]
            rows.append(
                (
                    *_who(name),
                    number(mean, ".3g"),
                    number(rho, ".3g"),
                    number(step),
                    *(number(p, ".3g") for p in prices),
                )
            )
        heads = (
            "noise",
            "who",
            "variance by mean",
            "variance by rho",
            "step, times plain",
            "by mean × cost",
            "by rho × cost",
        )
        notes = [*libraries(found), *refusals(found["missing"])] if point == list(found["points"])[-1] else []
        shown.append(Table(f"Gradients {point}, times those of shared noise with one sample", heads, rows, 2, notes))
        layers = list(next(iter(contenders.values()))["by_mean"]["layer_ratios"])
        own = {n: c for n, c in contenders.items() if n in LEARNERS}
        by_layer = [
            (name, *(f"{c[f'by_{by}']['layer_ratios'][layer]:.3g}" for by in ("mean", "rho") for layer in layers))
            for name, c in own.items()
        ]
        columns = ("noise", *(f"{by}, layer {i + 1}" for by in ("mean", "rho") for i in range(len(layers))))
        shown.append(Table(f"The same {point}, layer by layer", columns, by_layer))
    return shown


def _who(name: str) -> tuple[str, str]:
    if name in LEARNERS:
        return name, "Doxa"
    noise, _, library = name.partition(", ")
    return ("batch alone", "plain net") if not library else (noise, library)
