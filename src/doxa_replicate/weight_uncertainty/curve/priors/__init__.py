"""What the prior makes of the curve: single Gaussians beside scale mixtures."""
