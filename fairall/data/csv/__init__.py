"""Tables of the user in CSV files."""
