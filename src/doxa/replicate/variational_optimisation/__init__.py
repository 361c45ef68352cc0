"""Variational optimisation: search by values alone. Staines & Barber (2013); Wierstra et al. (2014), replicated."""

from doxa.replicate.variational_optimisation import (
    antithetic_variance,
    discretised_sinc,
    fashion_mnist,
    gradient_variance,
    himmelblau_fixed,
    himmelblau_natural,
    himmelblau_plain,
    minibatch_variance,
    smoothed_gradient,
    two_wells,
)

ARTEFACTS = tuple(
    module.ARTEFACT
    for module in (
        smoothed_gradient,
        himmelblau_fixed,
        gradient_variance,
        discretised_sinc,
        two_wells,
        himmelblau_plain,
        himmelblau_natural,
        antithetic_variance,
        minibatch_variance,
        fashion_mnist,
    )
)
