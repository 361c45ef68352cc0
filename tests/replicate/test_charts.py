"""Charts: every line told from every other, and drawn with what it says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from doxa.report.palette import INK, MUTED
from doxa_replicate.charts import TRAINING_RANGE_LABEL, panel
from doxa_replicate.looks import MAX_MARKED_POINTS, chart_styles
from doxa_replicate.show import Area, Chart, ChartLine, Contours, Dots

X = [float(k) for k in range(MAX_MARKED_POINTS + 10)]


def line(name: str, height: float = 1.0, **settings: object) -> ChartLine:
    return ChartLine(name, X, [height] * len(X), **settings)  # type: ignore[arg-type]


def chart(*lines: ChartLine, **settings: object) -> Chart:
    return Chart("A chart", "Lines are level.", "x", "y", lines, **settings)  # type: ignore[arg-type]


def svg(drawn_chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(panel(drawn_chart, "key").svg)


def texts(drawn_chart: Chart) -> list[str]:
    return [element.text or "" for element in svg(drawn_chart).iter("text")]


def test_nine_lines_are_told_apart() -> None:
    styles = chart_styles(chart(*(line(f"line {k}") for k in range(9)))).lines
    assert len({(style.colour, style.dash) for style in styles}) == 9


def test_three_times_three_lines_have_a_colour_and_a_dash_each_way() -> None:
    alike = [line(f"{a}, {b}", like=None if b == 0 else f"{a}, 0") for a in range(3) for b in range(3)]
    styles = chart_styles(chart(*alike)).lines
    for k in range(3):
        assert len({style.colour for style in styles[3 * k : 3 * k + 3]}) == 1
        assert len({style.dash for style in styles[k::3]}) == 1
    assert len({(style.colour, style.dash) for style in styles}) == 9


def test_a_dashed_line_is_ink_where_it_is_like_no_other_and_has_their_colour_where_it_is() -> None:
    ours, rule = chart_styles(chart(line("ours"), line("as it should be", dashed=True))).lines
    assert (rule.colour, ours.dash) == (INK, ())
    assert rule.dash
    ours, theirs = chart_styles(chart(line("ours"), line("theirs", dashed=True, like="ours"))).lines
    assert theirs.colour == ours.colour
    assert theirs.dash != ours.dash == ()


def test_faint_lines_are_alike_and_have_no_key() -> None:
    faint_chart = chart(line("mean"), *(line(f"draw {k}", faint=True) for k in range(10)))
    mean, *draws = chart_styles(faint_chart).lines
    assert len({(style.colour, style.dash) for style in draws}) == 1
    assert mean.colour != draws[0].colour
    assert [name for _, name, _ in panel(faint_chart, "key").legend] == ["mean"]


def test_few_points_have_markers_and_many_have_none() -> None:
    few = ChartLine("few", X[:MAX_MARKED_POINTS], X[:MAX_MARKED_POINTS])
    assert [bool(style.marker) for style in chart_styles(chart(few, line("many"))).lines] == [True, False]


def test_an_area_inside_another_is_deeper_and_lies_over_it() -> None:
    low, high = [-1.0] * len(X), [1.0] * len(X)
    inner = Area("25–75 %", X, [v / 2 for v in low], [v / 2 for v in high], like="median")
    outer = Area("5–95 %", X, low, high, like="median")
    areas_chart = chart(line("median", 0.0), areas=(inner, outer))
    opacities = re.findall(r"fill-opacity: ([\d.]+)", panel(areas_chart, "key").svg)
    assert [float(v) for v in opacities] == sorted(float(v) for v in opacities)
    assert len(set(opacities)) == 2
    keys = {name: mark for mark, name, _ in panel(areas_chart, "key").legend}
    assert keys["25–75 %"] != keys["5–95 %"]
    assert len({style.colour for style in (*chart_styles(areas_chart).lines, *chart_styles(areas_chart).areas)}) == 1


def test_dots_are_grey_or_like_a_line_and_the_training_data_have_a_key() -> None:
    dots_chart = chart(
        line("ours"),
        dots=(Dots("training data", X, X), Dots("document", X[:2], X[:2], like="ours")),
        shaded=(0.0, 5.0),
    )
    grey, alike = chart_styles(dots_chart).dots
    assert (grey.colour, alike.colour) == (MUTED, chart_styles(dots_chart).lines[0].colour)
    names = [name for _, name, _ in panel(dots_chart, "key").legend]
    assert names == ["ours", "training data", "document", TRAINING_RANGE_LABEL]


def test_a_logarithmic_axis_has_round_numbers() -> None:
    falling = ChartLine("variance", [10.0**k for k in range(8)], [10.0**-k for k in range(8)])
    labels = texts(chart(falling, log_x=True, log_y=True))
    assert "10⁻⁵" in labels or "10⁻⁶" in labels
    assert "100" in labels
    short_labels = texts(chart(ChartLine("short", [1.0, 2.0], [10.0, 60.0]), log_y=True))
    assert {"10", "20", "50"} <= {*short_labels}


def test_what_is_not_known_leaves_a_gap_and_errors_are_drawn() -> None:
    gap = ChartLine("gap", [0.0, 1.0, 2.0], [1.0, None, 3.0], error=[0.1, None, None])
    dense = line("dense", error=[0.2] * len(X))
    drawn = svg(chart(gap, dense))
    assert "nan" not in ElementTree.tostring(drawn, "unicode")
    without = svg(chart(ChartLine("gap", gap.x, gap.y), line("dense")))
    assert len(list(drawn.iter("path"))) > len(list(without.iter("path")))


def test_the_drawing_says_what_it_shows_and_keeps_to_its_limits() -> None:
    limited_chart = chart(line("one", 1.0), line("two", 100.0), y_limits=(0.0, 4.0), x_limits=(0.0, 10.0))
    root = svg(limited_chart)
    assert root.attrib["aria-label"] == "A chart. Lines are level."
    assert {"x", "y", "4", "10"} <= {*texts(limited_chart)}
    assert "100" not in texts(limited_chart)


@pytest.mark.parametrize("slim", [False, True])
def test_two_charts_of_a_page_share_no_id(slim: bool) -> None:
    one_line_chart = chart(line("one"))
    ids = [re.findall(r' id="([^"]+)"', panel(one_line_chart, key, slim).svg) for key in ("a", "b")]
    assert ids[0]
    assert not {*ids[0]} & {*ids[1]}


def test_contours_have_a_key_with_their_heights_and_more_ink_the_higher() -> None:
    axis = [0.0, 1.0, 2.0]
    plane = Contours("f", axis, axis, [[a + b for a in axis] for b in axis], (-1.0, 1.0, 2.0, 4.0))
    contour_panel = panel(chart(contours=plane), "key")
    assert [name for _, name, _ in contour_panel.legend] == ["f, from \N{MINUS SIGN}1 to 4"]
    opacities = re.findall(r"fill: var\(--ink\); fill-opacity: ([\d.]+)", contour_panel.svg)
    assert [float(share) for share in opacities] == sorted(float(share) for share in opacities)
    assert opacities
