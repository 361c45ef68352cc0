"""Numbers with their errors, as a reader wants them."""

from __future__ import annotations

import math

MOST_DECIMALS = 4  # decimals
LONG = 1e6  # from which numbers are shown in powers of ten
FINE = 3.55  # leading digits of an error up to which a second digit of it says something
SPACE = "\N{NO-BREAK SPACE}"


def format_with_error(value: float | None, error: float | None = None, unit: str = "") -> str:
    """0.078 ± 0.008, to the digits that the error leaves meaning; no error where none is known, a dash for no value.

    One digit of the error, or two where it begins with 1, 2 or 3.
    Particle Data Group (2024), Review of particle physics, introduction, section 5.3.
    """
    if value is None:
        return "–"
    if error is not None and not math.isfinite(error):
        error = None
    places = _decimal_places(value, error)
    spread = "" if error is None else f"{SPACE}±{SPACE}{format_fixed(error, places) if error else 0}"
    return f"{format_fixed(value, places)}{spread}{SPACE + unit if unit else ''}"


def format_percent(fraction: float | None, places: int = 1) -> str:
    """A part of one in percent."""
    return "–" if fraction is None else f"{format_plain(100 * fraction, places)}{SPACE}%"


def format_plain(value: float, places: int) -> str:
    """A number with so many decimals; in powers of ten where it would fill a line."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{places}f}" if abs(value) < LONG else f"{value:.2g}"


def format_fixed(value: float, places: int) -> str:
    """A number with so many decimals; in powers of ten where it would be too long or nothing."""
    if math.isinf(value):
        return format_plain(value, places)
    if abs(value) >= LONG or 0 < abs(value) < 0.5 * 10.0**-places:
        return f"{value:.2g}".replace("-", "−")
    return f"{value:,.{places}f}".replace("-", "−")


def _decimal_places(value: float, error: float | None) -> int:
    if error and error < 10.0**-MOST_DECIMALS / 100:
        places = MOST_DECIMALS
    elif error:
        power = math.floor(math.log10(error))
        places = -power + (error / 10.0**power < FINE)
    else:
        places = 3 - math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 1
    return max(0, min(MOST_DECIMALS, places))
