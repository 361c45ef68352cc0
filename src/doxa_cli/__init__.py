"""The command line of Doxa; outside of `doxa`, so that asking for help does not import torch."""
