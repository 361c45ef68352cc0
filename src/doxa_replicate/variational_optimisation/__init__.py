"""Variational optimisation: search by values alone. Staines & Barber (2013); Wierstra et al. (2014), replicated."""
