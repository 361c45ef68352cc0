"""RANDOM: every random number is a function of a seed, a stream and a count."""
