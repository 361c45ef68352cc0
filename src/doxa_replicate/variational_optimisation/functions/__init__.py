"""Functions of a few variables: what smoothing, pairs and scores do to gradients."""
