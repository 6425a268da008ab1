"""The command line: a parser, and a thin function for each verb."""
