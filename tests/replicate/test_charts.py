"""Charts: every line told from every other, and drawn with what it says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from doxa.report.palette import INK, MUTED
from doxa_replicate.charts import SEEN, panel
from doxa_replicate.looks import MARKED, looks
from doxa_replicate.show import Area, Chart, Contours, Dots, Line

X = [float(k) for k in range(MARKED + 10)]


def line(name: str, height: float = 1.0, **more: object) -> Line:
    return Line(name, X, [height] * len(X), **more)  # type: ignore[arg-type]


def chart(*lines: Line, **more: object) -> Chart:
    return Chart("A chart", "Lines are level.", "x", "y", lines, **more)  # type: ignore[arg-type]


def svg(found: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(panel(found, "key").svg)


def texts(found: Chart) -> list[str]:
    return [element.text or "" for element in svg(found).iter("text")]


def test_nine_lines_are_told_apart() -> None:
    styles = looks(chart(*(line(f"line {k}") for k in range(9)))).lines
    assert len({(style.colour, style.dash) for style in styles}) == 9


def test_three_times_three_lines_have_a_colour_and_a_dash_each_way() -> None:
    alike = [line(f"{a}, {b}", like=None if b == 0 else f"{a}, 0") for a in range(3) for b in range(3)]
    styles = looks(chart(*alike)).lines
    for k in range(3):
        assert len({style.colour for style in styles[3 * k : 3 * k + 3]}) == 1
        assert len({style.dash for style in styles[k::3]}) == 1
    assert len({(style.colour, style.dash) for style in styles}) == 9


def test_a_dashed_line_is_ink_where_it_is_like_no_other_and_has_their_colour_where_it_is() -> None:
    ours, rule = looks(chart(line("ours"), line("as it should be", dashed=True))).lines
    assert (rule.colour, ours.dash) == (INK, ())
    assert rule.dash
    ours, theirs = looks(chart(line("ours"), line("theirs", dashed=True, like="ours"))).lines
    assert theirs.colour == ours.colour
    assert theirs.dash != ours.dash == ()


def test_faint_lines_are_alike_and_have_no_key() -> None:
    found = chart(line("mean"), *(line(f"draw {k}", faint=True) for k in range(10)))
    mean, *draws = looks(found).lines
    assert len({(style.colour, style.dash) for style in draws}) == 1
    assert mean.colour != draws[0].colour
    assert [name for _, name, _ in panel(found, "key").legend] == ["mean"]


def test_few_points_have_markers_and_many_have_none() -> None:
    few = Line("few", X[:MARKED], X[:MARKED])
    assert [bool(style.marker) for style in looks(chart(few, line("many"))).lines] == [True, False]


def test_an_area_inside_another_is_deeper_and_lies_over_it() -> None:
    low, high = [-1.0] * len(X), [1.0] * len(X)
    inner = Area("25–75 %", X, [v / 2 for v in low], [v / 2 for v in high], like="median")
    outer = Area("5–95 %", X, low, high, like="median")
    found = chart(line("median", 0.0), areas=(inner, outer))
    drawn = re.findall(r"fill-opacity: ([\d.]+)", panel(found, "key").svg)
    assert [float(v) for v in drawn] == sorted(float(v) for v in drawn)
    assert len(set(drawn)) == 2
    keys = {name: mark for mark, name, _ in panel(found, "key").legend}
    assert keys["25–75 %"] != keys["5–95 %"]
    assert len({style.colour for style in (*looks(found).lines, *looks(found).areas)}) == 1


def test_dots_are_grey_or_like_a_line_and_the_training_data_have_a_key() -> None:
    found = chart(
        line("ours"),
        dots=(Dots("training data", X, X), Dots("document", X[:2], X[:2], like="ours")),
        shaded=(0.0, 5.0),
    )
    grey, alike = looks(found).dots
    assert (grey.colour, alike.colour) == (MUTED, looks(found).lines[0].colour)
    names = [name for _, name, _ in panel(found, "key").legend]
    assert names == ["ours", "training data", "document", SEEN]


def test_a_logarithmic_axis_has_round_numbers() -> None:
    falling = Line("variance", [10.0**k for k in range(8)], [10.0**-k for k in range(8)])
    said = texts(chart(falling, log_x=True, log_y=True))
    assert "10⁻⁵" in said or "10⁻⁶" in said
    assert "100" in said
    short = texts(chart(Line("short", [1.0, 2.0], [10.0, 60.0]), log_y=True))
    assert {"10", "20", "50"} <= {*short}


def test_what_is_not_known_leaves_a_gap_and_errors_are_drawn() -> None:
    gap = Line("gap", [0.0, 1.0, 2.0], [1.0, None, 3.0], error=[0.1, None, None])
    dense = line("dense", error=[0.2] * len(X))
    found = svg(chart(gap, dense))
    assert "nan" not in ElementTree.tostring(found, "unicode")
    without = svg(chart(Line("gap", gap.x, gap.y), line("dense")))
    assert len(list(found.iter("path"))) > len(list(without.iter("path")))


def test_the_drawing_says_what_it_shows_and_keeps_to_its_limits() -> None:
    found = chart(line("one", 1.0), line("two", 100.0), y_limits=(0.0, 4.0), x_limits=(0.0, 10.0))
    root = svg(found)
    assert root.attrib["aria-label"] == "A chart. Lines are level."
    assert {"x", "y", "4", "10"} <= {*texts(found)}
    assert "100" not in texts(found)


@pytest.mark.parametrize("slim", [False, True])
def test_two_charts_of_a_page_share_no_id(slim: bool) -> None:
    found = chart(line("one"))
    ids = [re.findall(r' id="([^"]+)"', panel(found, key, slim).svg) for key in ("a", "b")]
    assert ids[0]
    assert not {*ids[0]} & {*ids[1]}


def test_contours_have_a_key_with_their_heights_and_more_ink_the_higher() -> None:
    axis = [0.0, 1.0, 2.0]
    plane = Contours("f", axis, axis, [[a + b for a in axis] for b in axis], (-1.0, 1.0, 2.0, 4.0))
    found = panel(chart(contours=plane), "key")
    assert [name for _, name, _ in found.legend] == ["f, from \N{MINUS SIGN}1 to 4"]
    ink = re.findall(r"fill: var\(--ink\); fill-opacity: ([\d.]+)", found.svg)
    assert [float(share) for share in ink] == sorted(float(share) for share in ink)
    assert ink
