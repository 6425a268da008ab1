from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.quiver import Quiver

from fairall import Result
from fairall.display import STYLE
from reproduction import alignment
from reproduction.alignment import alignment_figure, draw_alignment, states
from reproduction.figures import ROSE, TEAL
from reproduction.latents import Space
from reproduction.plan import Planned, with_runs
from tests.reproduction.collection import planned, result

WORDS = ("model=fairall_I_II", "dataset=synthetic", "seeds=5")
# Switched, flipped, both (which counts as switched), a sign that is noise, without a latent.
LATENT: dict[str, list[Any]] = {
    "latent_variance_gap": [0.9, 0.1, 1.3, 0.1, None],
    "latent_label_agreement": [0.1, -0.9, -0.5, -0.9, 0.9],
    "latent_label_auc": [0.8, 0.8, 0.8, 0.55, 0.8],
}


def with_latents(*words: str, number: int = 0) -> Result:
    """A result whose seeds have latent measures."""
    per_seed = result(*WORDS, *words).per_seed.assign(**LATENT).astype(float)
    return result(*WORDS, *words, number=number, per_seed=per_seed)


def plans(*runs: Result) -> list[Planned]:
    return with_runs(planned("paper_alignment", "dataset=synthetic", "seeds=5"), runs)


def test_seeds_are_switched_or_flipped_by_the_thresholds_of_the_warnings() -> None:
    found = states(with_latents()).to_dict()
    assert found == {0: "switched", 1: "flipped", 2: "switched", 3: "aligned"}


def space(angle: float) -> Space:
    """A latent whose label depends on the first axis in S = +1, and on one `angle` away in S = −1."""
    draw = np.random.default_rng(0)
    z, s = draw.normal(size=(400, 2)), np.repeat([1.0, -1.0], 200)
    of_group = np.where(s > 0, 0.0, angle)
    return z, s, (z[:, 0] * np.cos(of_group) + z[:, 1] * np.sin(of_group) > 0).astype(float)


def test_arrows_point_to_where_the_label_gets_likelier_in_each_group() -> None:
    z, s, label = space(np.pi)
    flat = (z * [1.0, 0.05], s, label)
    with mpl.rc_context(STYLE):
        figure = draw_alignment({"switched": space(np.pi / 2), "flipped": flat, "matched": space(0.0)})
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}) == 1
    for axes, angle in zip(figure.axes, (np.pi / 2, np.pi, 0.0), strict=True):
        arrows = [arrow for arrow in axes.collections if isinstance(arrow, Quiver)]
        assert [to_hex(arrow.get_facecolor()[0]) for arrow in arrows] == [to_hex(TEAL), to_hex(ROSE)]
        one, other = (np.array([arrow.U[0], arrow.V[0]]) for arrow in arrows)
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert cosine == pytest.approx(np.cos(angle), abs=0.2)


def test_the_figure_takes_misaligned_seeds_as_learnt_and_an_aligned_one_of_matched_axes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[tuple[str, int]] = []

    def latent(run: Any, seed: int) -> Space:
        taken.append((run.name("protocol"), seed))
        return space(0.0)

    monkeypatch.setattr(alignment, "latent_space", latent)
    assert alignment_figure(plans()).draw is None
    runs = [
        with_latents(f"protocol={name}", number=k) for k, name in enumerate(("published_code", "corrected"))
    ]
    figure = alignment_figure(plans(*runs))
    assert figure.draw is not None
    assert sorted(taken) == [("corrected", 3), ("published_code", 0), ("published_code", 1)]
    with mpl.rc_context(STYLE):
        assert [axes.get_title() for axes in figure.draw().axes] == ["switched", "flipped", "matched"]
