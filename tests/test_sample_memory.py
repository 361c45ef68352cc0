"""What many kept samples cost in memory: next to nothing, since they stay on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MEGABYTE = 1 << 20

PROGRAM = """
import resource, sys
from pathlib import Path

import torch
from torch import nn

from doxa import Belief, likelihoods, load, posteriors
from doxa.weights.layout import LIKELIHOOD, Layout, Slot, untrained_tensors, lay_out
from doxa.storage.sample_store import SampleStore

torch.set_num_threads(1)
count, folder = int(sys.argv[1]), Path(sys.argv[2])
net = nn.Sequential(nn.Linear(64, 600), nn.BatchNorm1d(600), nn.ReLU(), nn.Linear(600, 100))
layout, start = lay_out(net)
layout = Layout((*layout.slots, Slot(LIKELIHOOD + "log_scale", (100,), layout.size, False)))
slots = (("1.running_mean", (600,)), ("1.running_var", (600,)))
state = torch.cat([start, torch.zeros(700), torch.ones(600)])
store = SampleStore.create(folder / "chain.rows", len(state))
for s in range(0, count, 10):
    store.append(state + 0.01 * torch.arange(s, s + 10)[:, None])
chain = posteriors.samples(store, layout.random, slots)
kept = Belief(net, likelihoods.gaussian_learned(), chain, layout, (untrained_tensors(net),))
x = torch.randn(8, 64)
assert len(kept.predict(x, count)) == count
kept.save(folder / "kept.doxa")
again = load(folder / "kept.doxa", net)
assert len(again.predict(x, count)) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(count: int, folder: Path) -> int:
    """Bytes at most in memory while so many samples are stored, predicted with, saved, loaded and predicted with."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(count), str(folder)]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert finished.returncode == 0, finished.stderr
    return int(finished.stdout) * (1 if sys.platform == "darwin" else 1024)


def test_four_hundred_samples_take_hardly_more_memory_than_ten(tmp_path: Path) -> None:
    """Weights of 160 MB in all."""
    peak_of_ten, peak_of_four_hundred = peak(10, tmp_path / "few"), peak(400, tmp_path / "many")
    assert peak_of_four_hundred - peak_of_ten < 20 * MEGABYTE
