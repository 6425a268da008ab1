"""Evaluation of policies from logs of past decisions under selective labels."""
