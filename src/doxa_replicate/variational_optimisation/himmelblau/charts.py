"""What the three figures of Himmelblau's function draw alike: paths over contours, and f, σ and slopes by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch

from doxa.search.functions import himmelblau
from doxa_replicate.show import Chart, ChartLine, Contours, Dots, ResultTable
from doxa_replicate.variational_optimisation.himmelblau.searches import final_values

SHOWN_PATHS, STEPS_BETWEEN_POINTS = 3, 2  # paths on the contours, and steps between the points that are kept
DRAWN_BELOW = 1e30  # searches on their way to infinity
LIMIT, GRID_CELLS = 5.0, 80
LEVELS = (0.0, 2.0, 10.0, 30.0, 70.0, 130.0, 200.0, 350.0, 600.0, 2000.0)


def chart_numbers(searches_record: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a fleet of searches that its charts are drawn of."""
    records = searches_record["seeds"]
    longest = max(len(record["f"]) for record in records)
    steps = list(range(0, longest, STEPS_BETWEEN_POINTS))
    choice = (
        {"rates": searches_record["rates"], "choice": searches_record["table"]} if "table" in searches_record else {}
    )
    return {
        **choice,
        "ends": final_values(searches_record),
        "lowest": [min(record["f"]) for record in records],
        "last_scales": [record["last_scale"] for record in records],
        "steps": steps,
        "paths": [record["path"] for record in records[:SHOWN_PATHS]],
        "f": [[_value_at(record["f"], k) for k in steps] for record in records],
        "scale": records[0]["scale"],
        "gradient": records[0]["gradient"],
    }


def _value_at(column: Sequence[float], k: int) -> float | None:
    return column[k] if k < len(column) else None


def _median_of_running(values: Sequence[float | None]) -> float | None:
    """The median over searches that go on, as long as half of them do."""
    running = [v for v in values if v is not None]
    return median(running) if 2 * len(running) >= len(values) else None


def path_chart(numbers: Mapping[str, Any], column: str) -> Chart:
    grid = torch.linspace(-LIMIT, LIMIT, GRID_CELLS + 1, dtype=torch.float64)
    height = himmelblau(torch.stack(torch.meshgrid(grid, grid, indexing="xy"), -1))
    lines = [
        ChartLine(f"seed {k}", [p[0] for p in path], [p[1] for p in path]) for k, path in enumerate(numbers["paths"])
    ]
    x, y = ([point[k] for point in himmelblau.minima] for k in range(2))
    return Chart(
        f"Paths of the mean, {column}",
        "From the middle, over lines of equal f: the more ink, the higher. Dots are the four minima, where f is 0.",
        "x",
        "y",
        lines,
        dots=[Dots("minima", x, y)],
        contours=Contours("f", grid.tolist(), grid.tolist(), height.tolist(), LEVELS),
        x_limits=(-LIMIT, LIMIT),
        y_limits=(-LIMIT, LIMIT),
    )


def value_chart(
    numbers: Mapping[str, Any], column: str, caption: str, limits: tuple[float, float] = (1e-4, 1e3)
) -> Chart:
    """f at the mean: every seed, and their median."""
    steps = numbers["steps"]
    seeds = [[None if v is None or v > DRAWN_BELOW else v for v in values] for values in numbers["f"]]
    middle = [_median_of_running([values[k] for values in seeds]) for k in range(len(steps))]
    lines = [ChartLine("median", steps, middle)]
    lines += [ChartLine(f"seed {k}", steps, values, faint=True, like="median") for k, values in enumerate(seeds)]
    title = f"f at the mean, each seed and the median, {column}"
    return Chart(title, caption, "step", "f", lines, y_limits=limits, log_y=True)


def scale_chart(
    numbers: Mapping[str, Any], column: str, caption: str, limits: tuple[float, float] | None = None
) -> Chart:
    """σ and the norm of ∂U/∂mean, of the first search."""
    steps = range(len(numbers["scale"]))
    lines = [ChartLine("σ", steps, numbers["scale"]), ChartLine("‖∂U/∂μ‖", steps, numbers["gradient"])]
    title = f"σ and the gradient by the mean, seed 0, {column}"
    return Chart(title, caption, "step", "", lines, y_limits=limits, log_y=True)


def choice_table(numbers: Mapping[str, Any]) -> ResultTable:
    """All rates that were tried, the chosen ones bold."""
    rows = []
    for row in sorted(numbers["choice"], key=lambda row: row["reached"]):
        chosen = {key: row[key] for key in ("mean", "scale")} == numbers["rates"]
        cells = [f"{row['mean']:g}", f"{row['scale']:g}", *(format_value(row[key]) for key in ("reached", "end"))]
        rows.append([f"**{cell}**" if chosen else cell for cell in cells])
    return ResultTable(
        "Rates as written, by the lowest level that f stays at for twenty steps; the chosen ones bold",
        ("rate of the mean", "of the variance", "lowest level", "f at the end"),
        rows[:8],
        text_columns=0,
        caption="Medians over seeds of their own; the eight lowest. ∞: it did not last to the end."
        if len(rows) > 8
        else "Medians over seeds of their own. ∞: it did not last to the end.",
    )


def format_value(value: float | None) -> str:
    return "∞" if value is None or math.isinf(value) else f"{value:.3g}"


def median_and_range(column: Sequence[float | None]) -> list[str]:
    """Median, lowest and highest of values, infinite where they are not known."""
    values = [math.inf if v is None else v for v in column]
    return [format_value(statistic(values)) for statistic in (median, min, max)]
