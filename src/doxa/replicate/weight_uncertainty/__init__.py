"""Weight uncertainty: Bayes by Backprop on a curve, on MNIST and on mushrooms. Blundell et al. (2015), replicated."""

from doxa.replicate.weight_uncertainty import (
    adam_and_sgd,
    figure_1,
    figure_2,
    figure_3,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    lrt_time,
    lrt_variance,
    table_1,
    table_2,
    uci_regression,
)

ARTEFACTS = tuple(
    module.ARTEFACT
    for module in (
        figure_1,
        figure_2,
        figure_3,
        figure_6,
        figure_7,
        figure_8,
        figure_9,
        figure_10,
        figure_11,
        figure_12,
        table_1,
        figure_13,
        table_2,
        figure_14,
        figure_15,
        lrt_variance,
        lrt_time,
        adam_and_sgd,
        uci_regression,
    )
)
