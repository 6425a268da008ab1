"""What things cost: CPU seconds of whole commands, measured from outside."""
