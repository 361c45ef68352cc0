"""Figure 20: how many weights can go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import FRACTIONS, Cell, cells
from doxa_replicate.weight_uncertainty.digits.choice import chosen
from doxa_replicate.weight_uncertainty.digits.models import MODELS, WIDTHS

PRIORS = ("gaussian", "mixture")
MOST = FRACTIONS.index(0.95)
COST, ALIKE, LOSS = 0.3, 0.5, 1.0  # points
FEW = Claim(
    "C-WU-17",
    "Ninety-five of a hundred weights can go",
    f"error rises by at most {COST:g} points with 95 % pruned, all widths, all epochs; each prior is judged apart",
)
LONGER = Claim(
    "C-WU-18",
    "Longer training makes pruning safer",
    f"share that can be pruned for {LOSS:g} point of error: larger after all epochs than after half of them, at 1,200 "
    f"units with either prior; open where both stand {100 * FRACTIONS[-1]:g} %, the most that is tried",
)
EVERYWHERE = Claim(
    "C-WU-27",
    "Pruning acts alike across widths and priors",
    f"accuracies at 75 % and at 95 % pruned within {ALIKE:g} points over three widths and both priors",
)


def run(ask: Ask) -> Numbers:
    found = {f"{name}, {width}": cells(ask, name, width) for name in PRIORS for width in WIDTHS}
    best = {f"{name}, 1200": chosen(ask, name, 1200) for name in PRIORS}
    seeds = [cell["seed"] for cell in found["gaussian, 400"]]
    rises = {
        name: {str(width): [rise(cell["pruned"], 0.95) for cell in found[f"{name}, {width}"]] for width in WIDTHS}
        for name in PRIORS
    }
    stands = {
        name: {
            when: [tolerated(cell[key]) for cell in found[f"{name}, 1200"]]
            for when, key in (("half", "halfway"), ("all", "pruned"))
        }
        for name in PRIORS
    }
    spreads = {}
    for fraction in (0.75, 0.95):
        errors = [mean([at(cell["pruned"], fraction) for cell in own]) for own in found.values()]
        spreads[f"{fraction:g}"] = max(errors) - min(errors)
    return {
        "settings": {"fractions": FRACTIONS, "ranked by": "|mean| / scale over all layers; biases are kept"},
        "seeds": seeds,
        "curves": {
            **{f"as written, {key}": curve(own, "pruned") for key, own in found.items()},
            **{f"as written, {key}, half the epochs": curve(own, "halfway") for key, own in found.items()},
            **{f"chosen, {key}": curve(own, "pruned") for key, own in best.items()},
        },
        "tolerated": {name: {when: summary(v) for when, v in own.items()} for name, own in stands.items()},
        "verdicts": [
            *(
                FEW.judged(
                    all(mean(v) <= COST for v in own.values()),
                    {width: mean(v) for width, v in own.items()},
                    {width: error(v) for width, v in own.items()},
                    seeds,
                    f"as written, {MODELS[name].title}; rise of the error in points, by width",
                )
                for name, own in rises.items()
            ),
            LONGER.judged(
                longer(stands.values()),
                {f"{name}, {when}": mean(v) for name, own in stands.items() for when, v in own.items()},
                max(error(v) or 0.0 for own in stands.values() for v in own.values()),
                seeds,
                "as written; shares",
            ),
            EVERYWHERE.judged(
                all(v <= ALIKE for v in spreads.values()),
                spreads,
                None,
                seeds,
                "as written; largest less smallest error in points, by the share pruned",
            ),
        ],
    }


def at(pruned: Mapping[str, Any], fraction: float) -> float:
    found: float = pruned["error"][list(pruned["fraction"]).index(fraction)]
    return found


def rise(pruned: Mapping[str, Any], fraction: float) -> float:
    """Points of error that a pruning costs."""
    return at(pruned, fraction) - at(pruned, 0.0)


def tolerated(pruned: Mapping[str, Any]) -> float:
    """The share that can go before the error has risen by a point, by straight lines between what was measured."""
    limit = at(pruned, 0.0) + LOSS
    known = list(zip(pruned["fraction"], pruned["error"], strict=True))
    for (f, e), (g, h) in pairwise(known):
        if h > limit:
            return float(f + (g - f) * (limit - e) / (h - e))
    return float(known[-1][0])


def longer(stands: Iterable[Mapping[str, Sequence[float]]]) -> bool | None:
    """Whether more can go after all epochs with every prior; None where nothing was tried that either cannot stand."""
    pairs = [(mean(own["half"]), mean(own["all"])) for own in stands]
    if any(after < before for before, after in pairs):
        return False
    most = FRACTIONS[-1] - 1e-9
    return None if any(before >= most for before, _ in pairs) else all(before < after for before, after in pairs)


def curve(found: Sequence[Cell], key: str) -> dict[str, Any]:
    """Scores against the share pruned, means over seeds."""
    own = [cell[key] for cell in found]
    return {
        "fraction": own[0]["fraction"],
        **{
            score: [mean([c[score][k] for c in own]) for k in range(len(FRACTIONS))]
            for score in ("error", "nll", "ece")
        },
        "se": [error([c["error"][k] for c in own]) for k in range(len(FRACTIONS))],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    curves = found["numbers"]["curves"]
    written = {k: v for k, v in curves.items() if k.startswith("as written")}
    whole = {k.removeprefix("as written, "): v for k, v in written.items() if "half" not in k}
    wide = {k.removeprefix("as written, "): v for k, v in curves.items() if "1200" in k}
    errors = [
        [_named(name), *(f"{own['error'][k]:.2f}" for k in range(len(FRACTIONS)))] for name, own in curves.items()
    ]
    sure = [
        [_named(name), *(f"{own[key][k]:.{places}f}" for key, places in (("nll", 3), ("ece", 2)) for k in (0, MOST))]
        for name, own in curves.items()
    ]
    return [
        _chart("All epochs, every width and prior", whole),
        _chart("1,200 units: half and all of the epochs, and the chosen recipe", wide),
        Table("Test error in %, by the share pruned", ("net", *(f"{100 * f:g} %" for f in FRACTIONS)), errors),
        Table("NLL and ECE", ("net", "NLL, whole", "NLL at 95 %", "ECE %, whole", "ECE % at 95 %"), sure),
    ]


def _chart(title: str, named: Mapping[str, Any]) -> Chart:
    lines = [
        Line(_named(name), [100 * f for f in own["fraction"]], [100 - e for e in own["error"]])
        for name, own in named.items()
    ]
    said = ", ".join(f"{100 - own['error'][MOST]:.2f} % ({_named(name)})" for name, own in named.items())
    return Chart(title, f"Right with 95 % pruned: {said}.", "pruned, %", "accuracy, %", lines, y_limits=(90, 100))


def _named(name: str) -> str:
    for short in PRIORS:
        name = name.replace(short, MODELS[short].title)
    return name


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-20",
    place=26,
    group="mnist",
    title="Accuracy against the share of weights pruned",
    rows=("WU-53",),
    run=run,
    claims=(FEW, LONGER, EVERYWHERE),
    reference={
        "document": "about 98.5 % right up to 95 % pruned; nets of 600 epochs stand more than those of 300",
        "note": "the original paper loses 0.05 points at 95 % and 0.15 at 98 %",
    },
    left_open=(
        "to which value a pruned weight is set: zero, mean and scale",
        "whether biases are pruned: they are kept",
    ),
    takes=("some seconds", "31 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
