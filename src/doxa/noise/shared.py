"""One draw of the weights for the whole batch."""

from doxa.noise.leaves import Noise

shared = Noise("shared")
"""One draw of each weight, shared by all rows of the batch.

w = mean + scale·ε,  ε ~ N(0, 1);   pull-back: (g, g·ε)

Blundell et al. (2015), Weight uncertainty in neural networks, equations 3 and 4.
"""
