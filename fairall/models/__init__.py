"""Learners, and the losses, models and policies that they share."""
