"""Test errors on MNIST in per cent, by width: those of the document, and those of the original paper."""

DOCUMENT_ERROR = {
    "gaussian": (1.31, 1.19, 1.35),
    "mixture": (1.42, 1.42, 1.45),
    "plain": (1.95, 1.68, 1.83),
    "dropout": (1.27, 1.41, 1.37),
}
ORIGINAL_ERROR = {
    "gaussian": (1.82, 1.99, 2.02),
    "mixture": (1.36, 1.34, 1.32),
    "plain": (1.83, 1.84, 1.88),
    "dropout": (1.51, 1.33, 1.36),
}
