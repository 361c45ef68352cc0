"""MNIST and Fashion-MNIST as searches use them: rows to learn from, rows to choose by, test rows."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from doxa.data import fashion_mnist, mnist
from doxa_replicate.contract import Ask

SETS = {"MNIST": mnist, "Fashion-MNIST": fashion_mnist}
HELD_OUT = 10_000

Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Pictures:
    """Images [B, 784], less the mean and over the spread of training pixels, and labels [B].

    `learn` and `choose` make up `train`.
    """

    train: Rows
    learn: Rows
    choose: Rows
    test: Rows

    def on(self, ask: Ask) -> Pictures:
        """The same, where they are worked with."""
        return Pictures(*(placed(ask, rows) for rows in (self.train, self.learn, self.choose, self.test)))


def placed(ask: Ask, rows: Rows) -> Rows:
    """Rows where they are worked with."""
    device = torch.device(ask.device or "cpu")
    return rows[0].to(device), rows[1].to(device)


def pictures(ask: Ask, name: str) -> Pictures:
    return _pictures(name, ask.of(3000, 60_000), ask.of(1000, HELD_OUT), ask.of(1000, 10_000))


@functools.lru_cache(maxsize=2)
def _pictures(name: str, rows: int, held_out: int, tested: int) -> Pictures:
    found = SETS[name]()
    x, x_test = (torch.as_tensor(part).flatten(1) for part in found.images())
    middle, spread = x.mean(), x.std()
    x, x_test = ((part - middle) / spread for part in (x[:rows], x_test[:tested]))
    y, y_test = torch.as_tensor(found.y_train)[:rows], torch.as_tensor(found.y_test)[:tested]
    last = rows - held_out
    return Pictures((x, y), (x[:last], y[:last]), (x[last:], y[last:]), (x_test, y_test))


def stretches(rows: Rows, batch: int, generations: int) -> DataLoader[tuple[Tensor, ...]]:
    """Rows drawn afresh for each stretch of so many generations, which a fit takes for an epoch."""
    data = TensorDataset(*rows)
    order = RandomSampler(data, num_samples=min(len(data), batch * generations))
    return DataLoader(data, sampler=BatchSampler(order, batch, drop_last=True), batch_size=None)
