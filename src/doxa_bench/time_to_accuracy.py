"""How long does a belief about MNIST take to an error and an NLL that were set beforehand?

784-400-400-10, batch 128, Adam with rate 1e-3, prior N(0, 1), the true free energy, all from the same net with the same
scale; one seed. All learn in turn, a quarter of an epoch each, from the same batches, so that the machine's moods are
shared; after each turn 10,000 validation rows are predicted by four draws, which is not counted. Who has reached both
targets leaves. The seconds of training until a target was first met are given, or how far a contender came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import doxa
from doxa_bench import beside
from doxa_bench.contenders import Task, quiet
from doxa_bench.digits import Rows, digits
from doxa_bench.kinds import BATCH, KINDS, new
from doxa_bench.settings import Settings
from doxa_bench.steps import GAUSSIAN, SCALE, Believed, Pupil, even, plain
from doxa_bench.tables import Table, libraries, number, refusals
from doxa_bench.timing import seconds

KIND = "mlp400"
TARGETS = {"error": 0.025, "nll": 0.09}
DRAWS = 4  # of the weights, for the validation rows
QUARTERS = 40  # of an epoch: ten epochs at most
SECONDS = 660.0  # in all


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    train, validation, _ = digits(settings.device)
    found: dict[str, Any] = {
        "settings": {
            "net": KINDS[KIND].shown,
            "batch": BATCH,
            "rows": len(train[0]),
            "validation_rows": len(validation[0]),
            "validation_draws": DRAWS,
            "start_scale": SCALE,
            "targets": TARGETS,
            "most_epochs": settings.turns(QUARTERS) / 4,
            "most_seconds": settings.seconds(SECONDS),
        },
        "contenders": {},
        "missing": {},
        "libraries": beside.known(),
    }
    learning = contenders(train, found["missing"], settings)
    found["contenders"] = {name: {"seconds": 0.0, "steps": 0, "history": []} for name in learning}
    begun = time.perf_counter()
    for quarter in range(settings.turns(QUARTERS)):
        batches = quarter_of_an_epoch(len(train[0]), quarter)
        for name in list(learning):
            if time.perf_counter() - begun > settings.seconds(SECONDS):
                return
            own = found["contenders"][name]
            with quiet():
                taken = seconds(turn(learning[name], train, batches), 1, settings.device)
                scores = judged(learning[name], validation)
            own["seconds"] += taken
            own["steps"] += len(batches)
            own["history"].append({"seconds": own["seconds"], "steps": own["steps"], **scores})
            for target, bar in TARGETS.items():
                if scores[target] <= bar and target not in own:
                    own[target] = {"seconds": own["seconds"], "steps": own["steps"]}
                    settings.say(f"{name}: {target} of {scores[target]:.4f} after {own['seconds']:.1f} s")
            settings.progress(f"{name}: error {scores['error']:.4f}, NLL {scores['nll']:.4f}")
            if all(target in own for target in TARGETS):
                del learning[name]
        yield found
        if not learning:
            return


def contenders(train: Rows, missing: dict[str, dict[str, str]], settings: Settings) -> dict[str, Pupil]:
    """Who learns, by name."""
    rows, device = (train[0][:BATCH], train[1][:BATCH]), settings.device
    found = {"plain net": plain(new(KIND, device))}
    for noise in beside.NOISES:
        learner = doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise])
        found[f"{noise}, Doxa"] = Believed(new(KIND, device), rows, learner, len(train[0])).pupil()
    net = new(KIND, device)
    task: Callable[[str], Task] = lambda noise: Task(net, even(net), len(train[0]), noise)  # noqa: E731
    for noise, library, offer in beside.pupils(task, *rows):
        if isinstance(offer, str):
            missing.setdefault(noise, {})[library] = offer
        else:
            found[f"{noise}, {library}"] = offer
    for pupil in found.values():  # the first run of many things is their slowest, and none that would be learned from
        with quiet():
            pupil.slopes(*rows)
    return {name: pupil for name, pupil in found.items() if settings.wants(name)}


def quarter_of_an_epoch(rows: int, quarter: int) -> tuple[Tensor, ...]:
    """Indices of batches, the same for all."""
    generator = torch.Generator().manual_seed(quarter // 4)
    batches = torch.randperm(rows, generator=generator).split(BATCH)
    share = max(1, len(batches) // 4)
    return batches[quarter % 4 * share :][:share]


def turn(pupil: Pupil, train: Rows, batches: tuple[Tensor, ...]) -> Callable[[], None]:
    def run() -> None:
        for index in batches:
            place = index.to(train[0].device)
            pupil.step(train[0][place], train[1][place])

    return run


@torch.no_grad()
def judged(pupil: Pupil, validation: Rows) -> dict[str, float]:
    """Error and NLL of the averaged probabilities."""
    x, y = validation
    p = pupil.outputs(x, DRAWS).detach().double().softmax(-1).mean(0)
    return {"error": float((p.argmax(-1) != y).double().mean()), "nll": float(F.nll_loss(p.log(), y))}


def show(found: dict[str, Any]) -> list[Table]:
    targets = found["settings"]["targets"]
    rows = []
    for name, own in found["contenders"].items():
        if not own["history"]:
            continue
        noise, _, who = name.partition(", ")
        reached = [number(own.get(target, {}).get("seconds"), ".1f") for target in targets]
        best = [f"{min(past[target] for past in own['history']):.4f}" for target in targets]
        steps = max((own[target]["steps"] for target in targets if target in own), default=None)
        each = 1e3 * own["seconds"] / own["steps"]
        rows.append(
            (
                noise if who else "none",
                who or name,
                *reached,
                number(steps, "d"),
                f"{each:.1f}",
                f"{own['seconds']:.1f}",
                *best,
            )
        )
    heads = (
        *("noise", "who", f"s to error ≤ {targets['error']:.1%}", f"s to NLL ≤ {targets['nll']:g}"),
        *("steps to the last", "ms a step", "s trained", "best error", "best NLL"),
    )
    notes = [
        "A dash: not reached in the seconds trained.",
        *libraries(found),
        *refusals(found["missing"]),
    ]
    return [Table("Seconds of training until a target was first met on validation rows", heads, rows, 2, notes)]
