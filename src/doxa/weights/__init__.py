"""WEIGHTS: a net's weights as one flat vector: their layout, how the net uses them, BatchNorm's statistics."""
