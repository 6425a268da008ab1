"""What things cost: processor time, time and memory of whole commands and of their parts."""
