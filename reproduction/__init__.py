"""The paper's tables and figures, a leaderboard, and the studies of docs/, made from runs of fairall."""
