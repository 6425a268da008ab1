"""What each part of a method is worth with the others fixed: studies/ablation.yaml."""

from reproduction.study import Study

ablation = Study("ablation")
