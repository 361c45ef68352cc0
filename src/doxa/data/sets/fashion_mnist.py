"""Fashion-MNIST."""

from __future__ import annotations

from doxa.data.card import Card
from doxa.data.dataset import Dataset
from doxa.data.formats.idx import idx_dataset, idx_files

CARD = Card(
    name="fashion_mnist",
    description="Garments in grey, in the form of MNIST, 60,000 to train on and 10,000 to test with.",
    rows=70_000,
    shape=(28, 28),
    task="classification",
    licence="MIT",
    citation="Xiao, Rasul & Vollgraf (2017), Fashion-MNIST: a novel image dataset for benchmarking",
    home="https://github.com/zalandoresearch/fashion-mnist",
    files=idx_files(
        "fashion_mnist",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        (
            26_421_880,
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        (
            29_515,
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        (
            4_422_102,
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        (
            5_148,
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
)


def fashion_mnist() -> Dataset:
    """Garments in the form of MNIST: 60,000 and 10,000, 28×28, from fashion_mnist/ in the data folder.

    Xiao, Rasul & Vollgraf (2017), Fashion-MNIST: a novel image dataset for benchmarking.
    """
    return idx_dataset(CARD)
