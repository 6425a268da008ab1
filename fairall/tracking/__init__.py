"""MLflow, and nothing else that touches it; what it cannot be told is kept and told later."""
