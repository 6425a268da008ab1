"""Layers and likelihoods that train E replicates as one."""
