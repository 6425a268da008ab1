"""Settings of the process: signals, terminal, threads and memory."""
