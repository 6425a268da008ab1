"""Layers, likelihoods and optimisers of E stacked replicates."""
