"""Weight uncertainty: Bayes by Backprop on a curve, on MNIST and on mushrooms. Blundell et al. (2015), replicated."""

from doxa.replicate.weight_uncertainty import (
    figure_2,
    figure_3,
    figure_23,
    figure_24,
    figure_25,
    figure_26,
    figure_27,
)

ARTEFACTS = tuple(
    module.ARTEFACT
    for module in (
        figure_2,
        figure_3,
        figure_23,
        figure_24,
        figure_25,
        figure_26,
        figure_27,
    )
)
