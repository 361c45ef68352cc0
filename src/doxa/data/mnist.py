"""MNIST."""

from __future__ import annotations

from doxa.data.dataset import Dataset
from doxa.data.idx import idx_dataset


def mnist() -> Dataset:
    """Handwritten digits: 60,000 to train on and 10,000 to test with, 28×28, from DOXA_DATA/mnist.

    LeCun, Bottou, Bengio & Haffner (1998), Gradient-based learning applied to document recognition.
    """
    return idx_dataset("mnist", source="https://ossci-datasets.s3.amazonaws.com/mnist/")
