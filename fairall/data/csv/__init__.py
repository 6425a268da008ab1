"""CSV files of the user."""
