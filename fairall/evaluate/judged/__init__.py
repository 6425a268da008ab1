"""What estimates support: refusals, warnings, validation, and a policy over time."""
