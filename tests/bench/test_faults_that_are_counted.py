"""Counts of campaigns, added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BadInput
from doxa_bench import runner
from doxa_bench.faults import campaign
from doxa_bench.faults.contract import Case, Outcome


def test_counts_of_several_runs_are_added(tmp_path: Path) -> None:
    def run(seed: int, number: int | None = None, commit: str = "") -> dict[str, Any]:
        result: dict[str, Any] = {"kinds": {}, "failures": [], "seeds": [seed], "settings": {"device": "cpu"}}
        result["numbers"] = {"kills": number}
        outcome = Outcome({"kills": 3})
        outcome.fail("lost", "a thing")
        campaign.enter(result, Case(seed, "kills", 0), outcome, 0.5)
        return {
            **result,
            "commit": commit or f"c{seed}",
            "seconds": 10.0,
            "versions": {},
            "device": "CPU",
            "complete": True,
        }

    total = campaign.add([campaign.add([run(0), run(1)]), run(2)])
    assert total["seeds"] == [0, 1, 2]
    assert total["seconds"] == 30.0
    assert [one["commit"] for one in total["runs"]] == ["c0", "c1", "c2"]
    assert total["kinds"]["kills"]["tried"] == {"kills": 9}
    assert (total["kinds"]["kills"]["lost"], total["kinds"]["kills"]["cases"]) == (3, 3)
    assert [failure["case"] for failure in total["failures"]] == ["kills:0"] * 3
    runner.write_result(tmp_path, "faults", run(0))
    with pytest.raises(BadInput, match="the kills of seed 0 were counted before, at commit c0; choose another seed"):
        runner.add_to_earlier(tmp_path, "faults", "cpu")(run(0))
    with pytest.raises(BadInput, match="at commit c0"):  # what was mended meanwhile makes no other cases
        runner.add_to_earlier(tmp_path, "faults", "cpu")(run(0, commit="another"))
    combined = runner.add_to_earlier(tmp_path, "faults", "cpu")(run(1))
    assert combined["kinds"]["kills"]["lost"] == 2
    assert [table.title for table in runner.result_tables("faults", combined)][-1] == "Failures"
    with pytest.raises(BadInput, match="--add"):
        runner.add_to_earlier(tmp_path, "memory", "cpu")
    single = campaign.add([run(3, 7), run(3, 8)])
    assert single["kinds"]["kills"]["cases"] == 2
    for again in (run(3, 7, "another"), run(3)):
        with pytest.raises(BadInput, match="the kills of seed 3 were counted before"):
            campaign.add([single, again])
