"""Phase II: the decision process, its history and its evaluation."""
