"""MNIST and Fashion-MNIST as searches use them: rows to learn from, rows to choose by, test rows."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from doxa.data import fashion_mnist, mnist
from doxa_replicate.contract import ReplicationOptions

DATASETS = {"MNIST": mnist, "Fashion-MNIST": fashion_mnist}
HELD_OUT_ROWS = 10_000

Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ImageData:
    """Images [B, 784], less the mean and over the spread of training pixels, and labels [B].

    `learn` and `choose` make up `train`.
    """

    train: Rows
    learn: Rows
    choose: Rows
    test: Rows

    def to_device(self, options: ReplicationOptions) -> ImageData:
        """The same, where they are worked with."""
        return ImageData(*(to_device(options, rows) for rows in (self.train, self.learn, self.choose, self.test)))


def to_device(options: ReplicationOptions, rows: Rows) -> Rows:
    """Rows where they are worked with."""
    device = torch.device(options.device or "cpu")
    return rows[0].to(device), rows[1].to(device)


def load_images(options: ReplicationOptions, name: str) -> ImageData:
    return _load_images(
        name, options.by_size(3000, 60_000), options.by_size(1000, HELD_OUT_ROWS), options.by_size(1000, 10_000)
    )


@functools.lru_cache(maxsize=2)
def _load_images(name: str, rows: int, held_out: int, test_rows: int) -> ImageData:
    dataset = DATASETS[name]()
    x, x_test = (torch.as_tensor(images).flatten(1) for images in dataset.images())
    pixel_mean, pixel_std = x.mean(), x.std()
    x, x_test = ((images - pixel_mean) / pixel_std for images in (x[:rows], x_test[:test_rows]))
    y, y_test = torch.as_tensor(dataset.y_train)[:rows], torch.as_tensor(dataset.y_test)[:test_rows]
    learn_rows = rows - held_out
    return ImageData((x, y), (x[:learn_rows], y[:learn_rows]), (x[learn_rows:], y[learn_rows:]), (x_test, y_test))


def generation_loader(rows: Rows, batch: int, generations: int) -> DataLoader[tuple[Tensor, ...]]:
    """Rows drawn afresh for each stretch of so many generations, which a fit takes for an epoch."""
    data = TensorDataset(*rows)
    sampler = RandomSampler(data, num_samples=min(len(data), batch * generations))
    return DataLoader(data, sampler=BatchSampler(sampler, batch, drop_last=True), batch_size=None)
