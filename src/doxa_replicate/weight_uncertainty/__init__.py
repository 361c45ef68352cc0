"""Weight uncertainty: Bayes by Backprop on a curve, on MNIST and on mushrooms. Blundell et al. (2015), replicated."""
