"""Estimators of scikit-learn's shape as archives of skops, which hold no pickles and repeat byte by byte."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection
from typing import Any

from fairall.errors import FairAllError, one_line

MOST_PACKED, IN_ANY_CASE = 200, 2**26  # bytes of an archive's contents: for each of its own, and beside
# What fitted estimators of scikit-learn consist of, beside the types that skops trusts by itself.
KNOWN_TYPES = frozenset(
    {
        "collections.OrderedDict",
        "fairall.models.ridge.Ridge",
        "numpy.dtype",
        "scipy.interpolate._bsplines.BSpline",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.DotProduct",
        "sklearn.gaussian_process.kernels.Matern",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.gaussian_process.kernels.RationalQuadratic",
        "sklearn.gaussian_process.kernels.Sum",
        "sklearn.gaussian_process.kernels.WhiteKernel",
        "sklearn.metrics._classification.log_loss",
        "sklearn.metrics._dist_metrics.ChebyshevDistance64",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn.metrics._ranking.roc_auc_score",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)


def archive_of(estimator: Any) -> bytes:
    """An estimator as an archive of skops, with the same bytes for the same estimator.

    Raises:
        FairAllError: where skops cannot save it.
    """
    import skops.io

    with one_line("a fitted classifier cannot be saved"):  # skops and classes of the user's raise many types
        dumped = skops.io.dumps(estimator)
    numbers, names = dict[int, int](), dict[str, str]()

    def renumber(node: dict[str, Any]) -> dict[str, Any]:
        """Replace addresses in memory by numbers in the order in which they come.

        Plain values get a number each, since whether two are the same object is chance.
        """
        if "__id__" in node:
            address = -len(numbers) if node.get("__loader__") == "JsonNode" else node["__id__"]
            node["__id__"] = numbers.setdefault(address, len(numbers))
        if isinstance(name := node.get("file"), str):
            node["file"] = names.setdefault(name, f"{len(names)}.{name.rpartition('.')[2]}")
        return node

    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(dumped)) as given,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        schema = json.loads(given.read("schema.json"), object_hook=renumber)
        contents = {new: given.read(old) for old, new in names.items()}
        for name, content in (contents | {"schema.json": json.dumps(schema)}).items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def types_in(archive: bytes, trusted: Collection[str]) -> tuple[list[str], list[str]]:
    """Types in an archive that skops does not trust by itself, and those of them that nobody knows.

    These are neither `KNOWN_TYPES` nor of the packages `trusted`.
    """
    import skops.io

    packages = tuple(f"{name}." for name in trusted)
    asked = skops.io.get_untrusted_types(data=archive)
    return asked, [one for one in asked if one not in KNOWN_TYPES and not one.startswith(packages)]


def of_archive(archive: bytes, trusted: Collection[str]) -> Any:
    """The estimator of an archive of `archive_of`.

    Args:
        archive: may be of a stranger; no code of it is run.
        trusted: packages, or modules, whose types it may have beside `KNOWN_TYPES`.

    Raises:
        FairAllError: where it has other types, or is damaged.
    """
    import skops.io

    with one_line(
        "a saved classifier is damaged: run it anew"
    ):  # skops raises many types for damaged archives
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            size = sum(one.file_size for one in packed.infolist())
        if size > MOST_PACKED * len(archive) + IN_ANY_CASE:
            raise ValueError(f"{size} bytes")
        asked, unknown = types_in(archive, trusted)
        if not unknown:
            return skops.io.loads(archive, trusted=asked)
    package = unknown[0].partition(".")[0]
    raise FairAllError(
        f"a saved classifier has the type {unknown[0]}, which could run code of {package}; if you trust who "
        f"wrote it, name it: --trust {package}, or load_policy(..., modules=[{package!r}])"
    )
