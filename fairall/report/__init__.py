"""What a person sees: progress, tables, figures, the paper's figures beside ours."""
