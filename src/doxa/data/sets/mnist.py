"""MNIST."""

from __future__ import annotations

from doxa.data.card import Card
from doxa.data.dataset import Dataset
from doxa.data.formats.idx import idx_dataset, idx_files

CARD = Card(
    name="mnist",
    description="Handwritten digits in grey, 60,000 to train on and 10,000 to test with.",
    rows=70_000,
    shape=(28, 28),
    task="classification",
    licence="CC BY-SA 3.0, as usually given; the files state none",
    citation="LeCun, Bottou, Bengio & Haffner (1998), Gradient-based learning applied to document recognition",
    home="http://yann.lecun.com/exdb/mnist/",
    files=idx_files(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        (
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        (
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        (
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        (
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    note="The author's page no longer gives the files out; fetched from a mirror.",
)


def mnist() -> Dataset:
    """Handwritten digits: 60,000 to train on and 10,000 to test with, 28×28, from mnist/ in the data folder.

    LeCun, Bottou, Bengio & Haffner (1998), Gradient-based learning applied to document recognition.
    """
    return idx_dataset(CARD)
