"""The learners and what they share."""
