"""The process: signals, terminal, threads and memory."""
