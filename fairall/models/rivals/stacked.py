"""Linear models and boosted trees, mixed by how well they have foretold labels.

References:
    Friedman: Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001.
    Ke et al.: LightGBM: a highly efficient gradient boosting decision tree, NeurIPS 2017 (histograms).
"""

from fairall.models.mixture import Mixture


class Stacked(Mixture):
    """Mixture of logistic regressions, each with another penalty, and boosted trees, with some optimism.

    Optimism is for where classifiers of which none has proved wrong disagree. Without it, classifiers with a
    strong penalty, which say nearly the same of everybody, may reject so many that it takes long to learn
    better from the few accepted.
    """
