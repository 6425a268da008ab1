"""Tables of people: files and DataFrames, what columns mean, and new people by the schema of old ones."""
