"""Variational optimisation: search by values alone. Staines & Barber (2013); Wierstra et al. (2014), replicated."""

from doxa.replicate.variational_optimisation import (
    adapted_variance,
    antithetic_variance,
    convolutional,
    discretised_sinc,
    divergence,
    fashion_mnist,
    fewer_evaluations,
    gradient_quality,
    gradient_variance,
    himmelblau_fixed,
    himmelblau_natural,
    himmelblau_plain,
    layer_variances,
    minibatch_variance,
    mnist_local,
    mnist_pairs,
    mushroom_policy,
    score_laws,
    smoothed_gradient,
    two_wells,
    ways_round,
    workers,
)

ARTEFACTS = tuple(
    module.ARTEFACT
    for module in (
        smoothed_gradient,
        himmelblau_fixed,
        gradient_variance,
        discretised_sinc,
        two_wells,
        score_laws,
        himmelblau_plain,
        himmelblau_natural,
        antithetic_variance,
        minibatch_variance,
        fewer_evaluations,
        mnist_pairs,
        gradient_quality,
        mnist_local,
        fashion_mnist,
        convolutional,
        adapted_variance,
        layer_variances,
        ways_round,
        divergence,
        mushroom_policy,
        workers,
    )
)
