"""MLflow tracking. Results that cannot be logged now are kept and logged later."""
