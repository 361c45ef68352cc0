"""What the three figures of Himmelblau's function draw alike: paths over contours, and f, σ and slopes by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch

from doxa.search.functions import himmelblau
from doxa_replicate.show import Chart, Contours, Dots, Line, Table
from doxa_replicate.variational_optimisation.himmelblau.searches import ends

SHOWN, EVERY = 3, 2  # paths on the contours, and steps between the points that are kept
LIMIT, CELLS = 5.0, 80
LEVELS = (0.0, 2.0, 10.0, 30.0, 70.0, 130.0, 200.0, 350.0, 600.0, 2000.0)


def drawn(of: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a fleet of searches that its charts are drawn of."""
    records = of["seeds"]
    longest = max(len(one["f"]) for one in records)
    steps = list(range(0, longest, EVERY))
    return {
        "rates": of["rates"],
        "choice": of["table"],
        "ends": ends(of),
        "steps": steps,
        "paths": [one["path"] for one in records[:SHOWN]],
        "f": [[_at(one["f"], k) for k in steps] for one in records],
        "scale": records[0]["scale"],
        "gradient": records[0]["gradient"],
    }


def _at(column: Sequence[float], k: int) -> float | None:
    return column[k] if k < len(column) else None


def _middle(values: Sequence[float | None]) -> float | None:
    """The median over searches that go on, as long as half of them do."""
    known = [v for v in values if v is not None]
    return median(known) if 2 * len(known) >= len(values) else None


def path_chart(numbers: Mapping[str, Any]) -> Chart:
    across = torch.linspace(-LIMIT, LIMIT, CELLS + 1, dtype=torch.float64)
    height = himmelblau(torch.stack(torch.meshgrid(across, across, indexing="xy"), -1))
    lines = [Line(f"seed {k}", [p[0] for p in path], [p[1] for p in path]) for k, path in enumerate(numbers["paths"])]
    x, y = ([point[k] for point in himmelblau.minima] for k in range(2))
    return Chart(
        "Paths of the mean",
        "From the middle, over lines of equal f: the more ink, the higher. Dots are the four minima, where f is 0.",
        "x",
        "y",
        lines,
        dots=[Dots("minima", x, y)],
        contours=Contours("f", across.tolist(), across.tolist(), height.tolist(), LEVELS),
        x_limits=(-LIMIT, LIMIT),
        y_limits=(-LIMIT, LIMIT),
    )


def value_chart(numbers: Mapping[str, Any], says: str, limits: tuple[float, float] = (1e-4, 1e3)) -> Chart:
    """f at the mean: every seed, and their median."""
    steps = numbers["steps"]
    middle = [_middle([one[k] for one in numbers["f"]]) for k in range(len(steps))]
    lines = [Line("median", steps, middle)]
    lines += [Line(f"seed {k}", steps, one, faint=True, like="median") for k, one in enumerate(numbers["f"])]
    return Chart("f at the mean, each seed and the median", says, "step", "f", lines, y_limits=limits, log_y=True)


def scale_chart(numbers: Mapping[str, Any], says: str, limits: tuple[float, float] | None = None) -> Chart:
    """σ and the norm of ∂U/∂mean, of the first search."""
    steps = range(len(numbers["scale"]))
    lines = [Line("σ", steps, numbers["scale"]), Line("‖∂U/∂μ‖", steps, numbers["gradient"])]
    return Chart("σ and the gradient by the mean, seed 0", says, "step", "", lines, y_limits=limits, log_y=True)


def choice_table(numbers: Mapping[str, Any]) -> Table:
    """All rates that were tried, the chosen ones bold."""
    rows = []
    for row in sorted(numbers["choice"], key=lambda row: row["reached"]):
        chosen = {key: row[key] for key in ("mean", "scale")} == numbers["rates"]
        cells = [f"{row['mean']:g}", f"{row['scale']:g}", *(said(row[key]) for key in ("reached", "end"))]
        rows.append([f"**{cell}**" if chosen else cell for cell in cells])
    return Table(
        "Rates, by the lowest level that f stays at for twenty steps; the chosen ones bold",
        ("rate of the mean", "of the variance", "lowest level", "f at the end"),
        rows[:8],
        words=0,
        says="Medians over seeds of their own; the eight lowest. ∞: it did not last to the end."
        if len(rows) > 8
        else "Medians over seeds of their own. ∞: it did not last to the end.",
    )


def said(value: float | None) -> str:
    return "∞" if value is None or math.isinf(value) else f"{value:.3g}"


def summary(column: Sequence[float | None]) -> list[str]:
    """Median, lowest and highest of values, infinite where they are not known."""
    values = [math.inf if v is None else v for v in column]
    return [said(of(values)) for of in (median, min, max)]
