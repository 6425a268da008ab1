"""A policy that goes on learning from its own decisions: ledger, versions, guard."""
