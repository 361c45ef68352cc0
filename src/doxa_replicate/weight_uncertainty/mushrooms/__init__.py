"""The mushroom bandit."""
