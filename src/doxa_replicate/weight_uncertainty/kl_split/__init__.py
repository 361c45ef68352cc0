"""KL split: what shares of the KL that halve from minibatch to minibatch do to a belief that Adam learns."""
