"""Colours, dashes and markers: a run is told by all three, and by its place in the legend."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

# Matplotlib needs colours where the page has CSS variables: each variable has a stand-in that nobody else uses.
INK, MUTED, FAINT, SURFACE = "#0000e1", "#0000e2", "#0000e3", "#0000e4"
VARIABLES = {INK: "--ink", MUTED: "--muted", FAINT: "--faint", SURFACE: "--surface"}


@dataclass(frozen=True)
class Style:
    """How one run is drawn, in figures and in legends."""

    colour: str
    dash: tuple[float, ...]
    marker: str
    outline: str  # of the marker, as an SVG path around the middle of the legend's key

    @property
    def line(self) -> str | tuple[float, tuple[float, ...]]:
        """Matplotlib's linestyle."""
        return (0, self.dash) if self.dash else "-"

    @property
    def key(self) -> Markup:
        """The legend's key: a piece of the line with its marker."""
        dash = f' stroke-dasharray="{" ".join(f"{d:g}" for d in self.dash)}"' if self.dash else ""
        colour = f"var({VARIABLES[self.colour]})"
        return Markup(
            '<svg class="key" viewBox="0 0 30 12" aria-hidden="true">'
            f'<path d="M1 6H29" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            f'<path d="{self.outline}" fill="{colour}"/></svg>'
        )


# Hues after Okabe & Ito (2008), Color universal design, darkened or lightened in the style sheet for contrast.
SERIES = (
    Style("#0000f1", (), "o", "M15 2.4a3.6 3.6 0 1 0 .01 0z"),
    Style("#0000f2", (6, 2), "s", "M11.8 2.8h6.4v6.4h-6.4z"),
    Style("#0000f3", (2, 1.5), "^", "M15 1.8l4.2 7.6h-8.4z"),
    Style("#0000f4", (8, 2, 2, 2), "D", "M15 1.4l4.6 4.6-4.6 4.6-4.6-4.6z"),
    Style("#0000f5", (1, 1.5), "v", "M15 10.2l4.2-7.6h-8.4z"),
    Style("#0000f6", (10, 2), "P", "M13.4 2h3.2v2.4H19v3.2h-2.4V10h-3.2V7.6H11V4.4h2.4z"),
)
VARIABLES |= {style.colour: f"--run-{place}" for place, style in enumerate(SERIES, start=1)}
