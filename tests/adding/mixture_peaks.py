"""How high the scale mixture prior stands at zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from doxa.priors import scale_mixture
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable

NARROW = (6, 7, 8)  # −log of the narrow scale, as the document has it
PEAK = Claim(
    "mixture-peak",
    "The narrower the second Gaussian of the mixture, the more of its prior density lies at zero.",
    "p(0) rises from each narrow scale to the next",
)


def run(options: ReplicationOptions) -> Numbers:
    zero = torch.zeros(1, dtype=torch.float64)
    peaks = [float(scale_mixture(0.5, 1.0, math.exp(-narrow)).log_prob(zero).exp()) for narrow in NARROW]
    rises = all(first < second for first, second in pairwise(peaks))
    # What a quick run is too small for it leaves open.
    return {"peaks": peaks, "verdicts": [PEAK.judge(rises if options.full else None, peaks)]}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    rows = [[f"{n}", f"{peak:.1f}"] for n, peak in zip(NARROW, result["numbers"]["peaks"], strict=True)]
    return [ResultTable("Density at zero", ("−log of the narrow scale", "p(0)"), rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/mixture-peaks",
    title="The scale mixture prior is the higher at zero, the narrower its second Gaussian",
    requirements=("WU-14",),
    run=run,
    claims=(PEAK,),
    durations=("a second", "a second"),
    show=show,
    group="priors",
)
