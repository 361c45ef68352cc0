"""Fashion-MNIST."""

from __future__ import annotations

from doxa.data.dataset import Dataset
from doxa.data.idx import idx_dataset


def fashion_mnist() -> Dataset:
    """Garments in the form of MNIST: 60,000 and 10,000, 28×28, from DOXA_DATA/fashion_mnist.

    Xiao, Rasul & Vollgraf (2017), Fashion-MNIST: a novel image dataset for benchmarking.
    """
    return idx_dataset("fashion_mnist", source="https://github.com/zalandoresearch/fashion-mnist")
