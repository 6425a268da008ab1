"""The parts that the cost of a run is split into."""

START_UP = "Start-up"  # imports, configuration, data, up to the first line in MLflow
PHASE_1 = "Phase I"
WARM_UP = "Warm-up"
PHASE_2 = "Phase II"  # decisions and learning, without evaluation
EVALUATION = "Evaluation"  # of the policy at every step, and of the latent at the end
RESULTS = "Results"  # tables, figures, policy, checkpoints
MLFLOW = "MLflow"
OTHER = "Other"  # what is left of the run: terminal, folders
RATE = "Rate"  # of products, measured after the run; no part of it, and taken off the total
EXIT = "Exit"  # the interpreter's end, with the hundredths of a second of its start
TOTAL = "Total"  # of the process, measured from outside; the sum of all above

PARTS = (START_UP, PHASE_1, WARM_UP, PHASE_2, EVALUATION, RESULTS, MLFLOW, OTHER, EXIT, TOTAL)
