"""Off-policy evaluation and fairness under selective labels."""
