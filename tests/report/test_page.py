"""The page: whole, safe, the same every time, and true to the results."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise

import matplotlib
import pytest

from doxa import report
from doxa.errors import BadInput
from doxa.results import read_result, write_result

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "\"quotes\" 'single' & ampersand",
    "$x_1^2$ \\frac{a}{b} _under_ $unclosed",
    "🧠👩‍👩‍👧 emoji",
    "A" * 10_000,
    "שלום עולם",
    "\u202eturned",
    "line\nbreak\n\nanother",
    "</style></svg></title>--><b>",
    "{{ 7 * 7 }}{% raw %}",
    "nul\x00 and half \ud800",
    "",
    "javascript:alert(1)",
]
# Figures that are quick to draw, where it is not they that are asked about.
LIGHT = dict.fromkeys(["history", "entropy", "pruning", "signal_to_noise", "intervals", "attack"])
ADDRESSES = {"href", "src", "action", "formaction", "data", "poster", "srcset", "background", "ping", "manifest"}


def test_a_page_of_hostile_text_runs_and_asks_for_nothing(make_result, read):
    results = []
    for text in HOSTILE:
        sections = {"settings": {text: text}, "findings": [text], "stamp": {"device": text, "versions": {text: text}}}
        result = make_result(text, **sections, **LIGHT)
        result["data"] = {"name": "x" + text, "classes": [text] * 3, "source": text, "licence": text, "task": text}
        result["scores"] |= {text: {"value": 1.0, "error": None}}
        results.append(result)
    page = read(report.page(results))
    page.source.encode()  # no half characters
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ADDRESSES & attributes.keys():
            assert attributes[name].startswith(("#", "data:image/png;base64,")), (tag, attributes)
        assert "url(" not in attributes.get("style", "")
        assert re.fullmatch(r"(url\(#[\w.-]+\))?", attributes.get("clip-path", ""))
    assert "49" not in page.text.split("{{ 7 * 7 }}")[1][:10]


@pytest.mark.parametrize("name", [name for name in HOSTILE if 0 < len(name) < 40 and name.isprintable()])
def test_a_name_is_shown_as_it_is(name, make_result, read):
    page = read(report.page([make_result(name, **LIGHT)]))
    assert name in page.text


def test_a_long_name_is_cut_and_whole_in_its_title(make_result, read):
    page = read(report.page([make_result("A" * 10_000, **LIGHT)]))
    assert "A" * 50 not in page.text
    assert "A" * 10_000 in {attributes.get("title") for attributes in page.all("bdi")}


def test_two_runs_of_one_name_are_told_apart(make_result, read):
    text = read(report.page([make_result("same", **LIGHT), make_result("same", **LIGHT)])).text
    assert "same (1)" in text
    assert "same (2)" in text


def test_the_policy_forbids_all_but_styles_and_inline_images(make_result, read):
    page = read(report.page([make_result()]))
    policies = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert not re.findall(r"https?:|@import", page.source)


def test_the_same_results_make_the_same_bytes(make_result):
    results = [make_result("one"), make_result("two", nll=0.3)]
    before = dict(matplotlib.rcParams)
    first = report.page(results)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "axes.grid": False}):
        assert report.page(copy.deepcopy(results)) == first
    assert dict(matplotlib.rcParams) == before


def test_a_result_from_disk_makes_the_same_page(make_result, tmp_path):
    write_result(tmp_path / "one.json", make_result())
    assert report.page([read_result(tmp_path / "one.json")]) == report.page([make_result()])


def test_the_table_holds_the_numbers_of_the_results(make_result, read, tmp_path):
    results = [make_result("one", nll=0.123456789, **LIGHT), make_result("two", nll=-4.5e-7, error=None, **LIGHT)]
    report.write(results, tmp_path / "page.html")
    page = read((tmp_path / "page.html").read_text(encoding="utf-8"))
    page_values = [float(attributes["value"]) for attributes in page.all("data")]
    for result in json.loads(json.dumps(results)):
        for score in result["scores"].values():
            assert page_values.count(score["value"]) >= 2  # in the table, and in the table of all scores


def test_the_best_is_marked_by_more_than_colour(make_result, read):
    results = [make_result(name, nll=nll, **LIGHT) for name, nll in (("one", 0.9), ("two", 0.1), ("three", 0.11))]
    page = report.page(results)
    table = page[page.index('<table class="scores">') : page.index("</table>")]
    rows = dict(re.findall(r'class="name">(\w+)</bdi>(.*?)</tr>', table, re.DOTALL))
    nll = {name: re.findall(r"<td.*?</td>", row, re.DOTALL)[1] for name, row in rows.items()}
    assert "★" in nll["two"]
    assert "≈" in nll["three"]
    assert "★" not in nll["one"]
    assert "≈" not in nll["one"]


def test_a_run_alone_is_not_called_best(make_result):
    assert "★" not in report.page([make_result(**LIGHT)])


def test_results_on_other_data_are_not_compared(make_result, read):
    on_curve = make_result("two")
    on_curve["data"] = {"name": "curve", "task": "regression"}
    page = report.page([make_result("one"), on_curve])
    assert "★" not in page
    assert {"data1", "data2"} <= {attributes.get("id") for attributes in read(page).all("h2")}


def judged_on(result, digest, rows=360):
    return {**result, "data": {**result["data"], "digest": digest, "rows": rows}}


def test_results_on_other_rows_of_the_same_data_are_not_compared(make_result, read):
    one, two = (judged_on(make_result(name, nll=nll, **LIGHT), "a") for name, nll in (("one", 0.1), ("two", 0.9)))
    lucky = judged_on(make_result("lucky", nll=0.01, **LIGHT), "b", rows=20)
    page = report.page([one, lucky, two])
    parsed = read(page)
    assert {"data1", "data2"} <= {attributes.get("id") for attributes in parsed.all("h2")}
    assert "digits, 360 rows" in parsed.text
    assert "digits, 20 rows" in parsed.text
    assert "judged on other rows" in parsed.text
    first, second = page.split('<section class="data"')[1:]
    assert "★" in first
    assert "lucky" not in first
    assert "★" not in second


def test_as_many_other_rows_are_told_apart_and_the_same_ones_side_by_side(make_result, read):
    results = [judged_on(make_result(name, **LIGHT), digest) for name, digest in zip("abcd", "xyxy", strict=True)]
    page = read(report.page(results))
    assert "digits, 360 rows (1)" in page.text
    assert "digits, 360 rows (2)" in page.text
    same_rows_page = read(report.page(results[::2]))
    assert "360 rows (1)" not in same_rows_page.text
    assert "other rows" not in same_rows_page.text


def test_headings_are_in_order_and_pictures_have_words(make_result, read):
    page = read(report.page([make_result("one"), make_result("two")]))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("title")) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    plots = [a for a in page.all("svg") if "plot" in a["class"]]
    assert plots
    assert all(a["role"] == "img" and len(a["aria-label"]) > 20 for a in plots)
    assert all(a["alt"] for a in page.all("img"))


def test_figures_take_their_colours_from_the_page(make_result):
    page = report.page([make_result(name) for name in "abcdefgh"])
    svgs = "".join(re.findall(r'<svg class="plot.*?</svg>', page, re.DOTALL))
    assert "var(--run-1)" in svgs
    assert not re.findall(r"#[0-9a-f]{6}\b(?![\w-])", re.sub(r'(href|id)="[^"]*"|url\(#[^)]*\)', "", svgs))
    assert "font-family" not in svgs
    declared = set(re.findall(r"(--[\w-]+):", page))
    assert set(re.findall(r"var\((--[\w-]+)\)", page)) <= declared


def test_ids_are_unique_and_every_reference_has_its_target(make_result, read):
    on_other_data = make_result("two")
    on_other_data["data"] = {"name": "elsewhere"}
    page = report.page([make_result("one"), on_other_data])
    ids = [a["id"] for _, a in read(page).elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([\w.-]+)', page)) <= set(ids)


def test_a_result_of_scores_alone_makes_a_page(read):
    page = report.page([{"name": "bare", "scores": {"nll": {"value": 0.5}}}, {"name": "empty", "scores": {}}])
    assert "bare" in read(page).text
    assert '<svg class="plot' not in page


@pytest.mark.parametrize("section", ["data", "settings", "stamp", "history", "reliability", "unsure", "findings"])
def test_a_missing_section_is_no_obstacle(section, make_result, read):
    assert "belief" in read(report.page([make_result(**{**LIGHT, section: None}), make_result("whole", **LIGHT)])).text


def test_what_is_not_known_is_a_dash(make_result, read):
    unknown = make_result("unknown", **LIGHT)
    unknown["scores"]["nll"]["value"] = None
    page = report.page([unknown, make_result("known", **LIGHT)])
    assert "–</td>" in page
    assert "None" not in read(page).text
    assert not re.search(r"\bnan\b", read(page).text)


def test_any_number_of_results(make_result, read):
    results = [make_result(f"run {k}", nll=0.1 + k / 100, **LIGHT, band=None) for k in range(20)]
    page = read(report.page(results))
    for k in range(20):
        assert page.text.count(f"run {k}") > 5, "in the tables and in the legends"


def test_settings_and_provenance_are_told(make_result, read):
    text = read(report.page([make_result(**LIGHT)])).text
    for expected in ("epochs", "60", "N(0, 1)", "torch 2.13", "0, 1", "CPU", "3.5"):
        assert expected in text


@pytest.mark.parametrize("results", [[], {}, [{}], [{"name": "x"}], ["x"], [{"name": "x", "scores": {}, "band": 3}]])
def test_what_is_no_result_is_refused(results):
    with pytest.raises(BadInput, match="result"):
        report.page(results)


def test_seeds_that_agree_have_an_error_of_nothing_and_a_point_has_none(make_result, read):
    agreed, point = make_result("agreed", error=0.0, **LIGHT), make_result("point", error=0.0, **LIGHT)
    point["scores"]["nll"] |= {"over": "draws", "count": 1}
    page = report.page([agreed, point])
    cell_texts = re.findall(r'<data value="0.1">(.*?)</data>', page)
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in cell_texts[:2]] == ["0.1000 ± 0", "0.1000"]
