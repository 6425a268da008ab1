"""What a run leaves behind and shows: summaries, pictures, tables, warnings."""
