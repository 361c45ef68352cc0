"""Local reparameterisation on the curve: what it learns, how fast, and with which variance."""
