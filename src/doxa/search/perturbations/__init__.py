"""PERTURBATIONS: how a generation's nets differ: in their weights, in low rank, in their activations."""
