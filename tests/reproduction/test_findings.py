"""The page docs/findings.md: its text and figures are those of the tables of results in docs/."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student

from fairall import FairAllError
from reproduction import findings
from reproduction.findings import FIGURES, INTERVAL, cell, numbers, text
from reproduction.pages import BLOCK, DOCS, read_table

EMPTY = r"<!-- begin: \1 -->\n<!-- end: \1 -->"


def rows_of(name: str) -> list[dict[str, str]]:
    """A file of results as it lies there."""
    return read_table(name).reset_index().to_dict("records")  # type: ignore[return-value]


def lines_of(page: str, key: str) -> list[list[str]]:
    """The rows of a block of a page as they lie there, without marks of Markdown."""
    block = (DOCS / page).read_text().split(f"<!-- begin: {key} -->")[1].split("<!-- end")[0]
    lines = [line for line in block.splitlines() if line.startswith("|")]
    return [[part.strip() for part in line.replace("\\", "").split("|")[1:-1]] for line in lines]


def decimals(shown: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", shown.replace("−", "-"))]


def intervals(figure: Figure, panel: int) -> list[tuple[float, float, float]]:
    """Means with their ends, as drawn by `errorbar` in a panel."""
    found = []
    for container in figure.axes[panel].containers:
        line, _, (bars,) = container
        ((low, _), (high, _)) = bars.get_segments()[0]
        (mean,) = np.asarray(line.get_xdata(), dtype=float)
        found.append((mean, low, high))
    return found


def spreads(cells: list[str]) -> list[tuple[float, float, float]]:
    """Means with one deviation to either side."""
    found = [decimals(shown)[:2] for shown in cells]
    return [(mean, mean - std, mean + std) for mean, std in found]


def same(drawn: list[tuple[float, float, float]], expected: list[tuple[float, float, float]]) -> None:
    assert len(drawn) == len(expected)
    for one, other in zip(drawn, expected, strict=True):
        assert one == pytest.approx(other)


def test_the_page_is_what_its_command_writes() -> None:
    page = (DOCS / "findings.md").read_text()
    assert BLOCK.sub(EMPTY, page) == text(), "make findings"
    keys = [key for key, content in BLOCK.findall(page) if content]
    assert keys == [one.key for one in FIGURES]
    assert len(keys) == 6
    assert all((DOCS / "figures" / f"{key}.png").is_file() for key in keys)
    assert 1500 <= len(text().split()) <= 2600


def test_deviations_of_one_split_and_of_twenty() -> None:
    figure = findings.draw_splits()
    files = [rows_of("temporal_harsh_corrected_expected"), rows_of("temporal_splits_harsh")]
    for panel, group in enumerate(("COMPAS", "German Credit", "MEPS")):
        cells = [[row["mean utility ↑"] for row in rows if row["group"] == group][:5] for rows in files]
        same(intervals(figure, panel), spreads([*cells[0], *cells[1]]))


def test_printed_means_are_outside_where_the_table_says_so() -> None:
    figure = findings.draw_printed()
    for axes, policy in zip(figure.axes, ("harsh", "lenient"), strict=True):
        cells = [row["effective utility ↑"] for row in rows_of(f"printed_mean_{policy}_published_code")]
        drawn = [line for line in axes.get_lines() if line.get_marker() == "o"]
        bars = [patch for container in axes.containers for patch in container]
        for line, bar, shown in zip(drawn, bars, cells, strict=True):
            beside = shown[shown.rindex("(") :]
            printed, low, high = decimals(beside)
            assert (line.get_label() == "printed, inside") == ("inside" in beside)
            assert list(np.asarray(line.get_xdata())) == [printed]
            assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("panel", "key", "group", "column"),
    [
        (0, "ablation", "all data sets", "effective utility ↑"),
        (1, "ablation", "all data sets", "DPU ↓"),
        (2, "ablation_bias_effects", "", "ground-truth utility ↑"),
    ],
)
def test_effects_are_those_of_the_ablation(panel: int, key: str, group: str, column: str) -> None:
    head, _, *rows = lines_of("ablation.md", key)
    shown = {row[0]: row[head.index(column)] for row in rows if row[1] == group}
    expected = [tuple(decimals(shown[part])) for part in findings.PARTS if part in shown]
    assert len(expected) == (4 if panel == 2 else 7)
    same(intervals(findings.draw_parts(), panel), expected)  # type: ignore[arg-type]


def test_methods_are_compared_with_accepting_everybody() -> None:
    figure = findings.draw_credit()
    rows = {row["name"]: row for row in rows_of("leaderboard_credit")}
    methods = [row for row in rows.values() if row["CPU seconds"]]
    methods.sort(key=lambda row: int(decimals(row["rank by utility"].replace("*", ""))[0]))
    for panel, column in enumerate(("effective utility ↑", "test utility ↑")):
        base = float(rows["accept everybody"][column])
        expected = [
            (mean - base, low - base, high - base)
            for mean, low, high in spreads([row[column] for row in methods])
        ]
        same(intervals(figure, panel), expected)


def test_coverage_is_that_of_the_simulation() -> None:
    figure = findings.draw_audits()
    rows = {(row["group"], row["name"]): row for row in rows_of("scores")}
    panels = iter(figure.axes)
    for selection in ("selected by the score itself", "selected by another score"):
        for score in ("AUC", "KS", "label − score"):
            robust, alone, _ = next(panels).get_lines()
            for line, name in ((robust, score), (alone, f"{score}, accepted alone")):
                cells = [rows[selection, name][f"{size} rows"] for size in ("1,000", "2,000", "10,000")]
                shares = [re.search(r"([\d.]+) %", shown) for shown in cells]
                assert [float(share[1]) for share in shares if share] == list(np.asarray(line.get_ydata()))
            assert list(np.asarray(robust.get_xdata())) == [1000, 2000, 10000]


def test_answers_are_those_of_the_pages_of_the_questions() -> None:
    figure = findings.draw_questions()
    head, _, *rows = lines_of("questions_truth.md", "questions_truth")
    columns = head.index("CFU ↓"), head.index("ground-truth utility ↑")
    worlds = ("truth gap 0, label bias 1", "truth gap 0.4, label bias 1")
    shown = {tuple(row[:2]): tuple(decimals(row[k])[0] for k in columns) for row in rows}
    drawn = [(*line.get_xdata(), *line.get_ydata()) for line in figure.axes[0].get_lines()]  # type: ignore[misc]
    assert drawn == [shown[world, tool] for world in worlds for tool in findings.COLOURS]
    head, _, *rows = lines_of("questions_hidden.md", "questions_hidden")
    columns = head.index("utility after the warm-up ↑"), head.index("utility later ↑")
    cells = [row for row in rows if row[0] == "COMPAS, Γ = 3, exploration: none"]
    same(intervals(figure, 1), [tuple(decimals(row[k])) for k in columns for row in cells])  # type: ignore[misc]
    head, _, *rows = lines_of("questions_groups.md", "questions_groups_differences")
    utility = {tuple(row[:2]): decimals(row[head.index("utility ↑")].replace("*", "")) for row in rows}
    sets = [f"{name}, 4 groups" for name in ("COMPAS", "Adult", "MEPS", "Law school")] + ["COMPAS, 8 groups"]
    names = ("FairAll (I+II)", "FairAll (I+II), cut, memory of all")
    same(intervals(figure, 2), [tuple(utility[one, name]) for name in names for one in sets])  # type: ignore[misc]
    head, _, *rows = lines_of("questions_amounts.md", "questions_amounts_paired")
    money = [decimals(row[head.index("money per 100 test people ↑")].replace("*", "")) for row in rows]
    same(intervals(figure, 3), [tuple(one) for one in money])  # type: ignore[misc]


REAL_SETS = ("credit", "compas", "meps", "adult", "law", "fico")
SETS = (*REAL_SETS[:3], "synthetic", *REAL_SETS[3:])


def t_interval(values: list[float]) -> list[float]:
    """Mean and ends of Student's 95 % interval, as they are shown."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return [round(float(np.mean(values)) + side * half, 1) + 0.0 for side in (0, -1, 1)]


def on_same_pairs(fairness: str, column: str, names: tuple[str, ...]) -> list[float]:
    """Mean over both memories of the VAE's cut cells with a level of fairness, by data set."""
    found = []
    for name in names:
        head, _, *rows = lines_of("ablation.md", f"ablation_{name}")
        cells = {row[1]: decimals(row[head.index(column)])[0] for row in rows}
        found.append(float(np.mean([cells[f"VAE, {fairness}, cut, {memory}"] for memory in ("step", "all")])))
    return found


@pytest.mark.parametrize(
    ("effect", "expected"),
    [("cut − drawn", (1.0, 2.6)), ("all − step", (0.0, 1.6)), ("stacked − net", (0.4, 1.9))],
)
def test_intervals_for_other_data_sets_stand_beside_those_of_other_splits(
    effect: str, expected: tuple[float, float]
) -> None:
    head, _, *rows = lines_of("ablation.md", "ablation")
    means = [decimals(row[2])[0] for row in rows if row[0] == effect and row[1] != "all data sets"]
    assert head[2] == "effective utility ↑"
    assert len(means) == 7
    assert t_interval(means)[1:] == [*expected]
    (bullet,) = (line for line in text().split("\n- ") if line.startswith("**Utility comes from plain parts"))
    assert [*expected] in [decimals(part) for part in re.findall(r"\\\[(.*?)\\\]", bullet)]


def test_the_latent_and_thresholds_are_compared_on_the_same_pairs() -> None:
    utility, test, dpu = "effective utility ↑", "test utility ↑", "DPU ↓"
    (line,) = (part for part in text().split("\n- ") if part.startswith("**Fairness.**"))
    (said,) = re.findall(r"On the same pairs .*?intervals for other data sets", line, re.DOTALL)
    apart = {
        (column, names): np.array(
            [on_same_pairs(one, column, names) for one in ("none", "thresholds", "latent")]
        )
        for column in (utility, test, dpu)
        for names in (SETS, REAL_SETS)
    }
    expected = []
    for names in (SETS, REAL_SETS):
        none, thresholds, latent = apart[utility, names]
        expected += [t_interval([*(thresholds - none)]), t_interval([*(latent - none)])]
    for column, sign in ((utility, 1), (test, 1), (dpu, -1)):
        _, thresholds, latent = apart[column, SETS]
        expected.append(t_interval([*(sign * (thresholds - latent))]))
    numbers_said = decimals(said.replace("\\", ""))
    assert numbers_said == [number for of in expected for number in of]
    # Both cost less than the means over different pairs say; the difference is not owed to synthetic people.
    assert [of[0] for of in expected[:4]] == [-1.5, -2.4, -0.6, -1.6]


def test_drawn_decisions_are_not_fairer_everywhere() -> None:
    head, _, *rows = lines_of("ablation.md", "ablation")
    dpu = {row[1]: decimals(row[head.index("DPU ↓")]) for row in rows if row[0] == "cut − drawn"}
    less = {name for name, (_, low, _) in dpu.items() if low > 0} - {"all data sets"}
    greater = {name for name, (_, _, high) in dpu.items() if high < 0}
    assert less == {"COMPAS", "MEPS", "Law school", "FICO scores"}
    assert greater == {"Adult", "Synthetic"}
    said = "less on\n  COMPAS, MEPS, law school and FICO, greater by 2.4 on Adult and 1.4 on Synthetic"
    assert said in text()
    assert [dpu[name][0] for name in ("Adult", "Synthetic")] == [-2.4, -1.4]


def test_no_page_counts_other_claims_than_the_tables() -> None:
    verdicts = {}
    for policy in ("harsh", "lenient"):
        blocks = [
            lines_of("reproduction.md", f"claims_splits_{kind}_{policy}")[2:]
            for kind in ("real", "synthetic")
        ]
        rows = [row for block in blocks for row in block]
        assert len(rows) == 14
        verdicts[policy] = [
            (bool(re.search("no less|no greater", claim)), "**reproduced**" in shown)
            for _, claim, *cells in rows
            for shown in cells
        ]
    counts = {policy: sum(right for _, right in of) for policy, of in verdicts.items()}
    better = {policy: sum(right for weak, right in of if not weak) for policy, of in verdicts.items()}
    assert counts == {"harsh": 30, "lenient": 29}
    assert better == {"harsh": 24, "lenient": 23}
    for policy in counts:
        assert findings.reproduced(policy) == f"{counts[policy]} of 34"
        assert findings.reproduced(policy, kinds=[False]) == f"{better[policy]} of 27"
    assert "24 of 27 claims that one method is better than another" in text()
    known = {findings.reproduced(policy, splits) for policy in counts for splits in (True, False)}
    for page in DOCS.rglob("*.md"):
        said = re.findall(r"(\d+) of (?:the )?(?:paper's )?34\b", page.read_text())
        assert {f"{number} of 34" for number in said} <= known, page


def test_claims_of_no_worse_have_means_on_the_other_side() -> None:
    rows = {(row["group"], row["name"]): row["mean DPU ↓"] for row in rows_of("temporal_splits_harsh")}
    _, _, *claimed = lines_of("reproduction.md", "claims_splits_real_harsh")
    (shown,) = (row[2:] for row in claimed if "deployed, its unfairness is no greater" in row[1])
    sets = ("COMPAS", "German Credit", "MEPS")
    ours, theirs = (
        [decimals(rows[name, method])[0] for name in sets] for method in ("FairAll (I+II)", "FairLog")
    )
    assert shown == ["**reproduced**"] * 3
    assert [name for name, one, other in zip(sets, ours, theirs, strict=True) if one > other] == [
        "COMPAS",
        "MEPS",
    ]
    assert f"is {ours[0]} and {theirs[0]} on COMPAS, {ours[2]} and {theirs[2]} on MEPS" in text()


def test_more_data_make_some_intervals_miss_more_often() -> None:
    shares = [
        [float(re.search(r"([\d.]+) %", row[size])[1]) for size in ("1,000 rows", "10,000 rows")]
        for row in rows_of("scores")
        if row["name"].endswith("accepted alone") and row["10,000 rows"]
    ]
    rare = [few > many for few, many in shares if many < 90]
    assert len(shares) == 15
    assert len(rare) == 6
    assert all(rare)
    assert {93 <= many < 95.5 for _, many in shares if many >= 90} == {True}
    assert "so in 6 of 15 kinds of simulated audits" in text()


def test_the_first_tool_of_each_world_is_as_the_headline_says() -> None:
    _, _, *rows = lines_of("questions_truth.md", "questions_truth_first")
    first = {row[1]: row[2].strip("*").partition(",")[0] for row in rows}
    plain = {"no fairness term", "equal opportunity"}
    assert {first[f"truth gap 0, label bias {bias}"] for bias in ("0.5", "1")} == {"latent", "equal rates"}
    assert first["truth gap 0.2, label bias 1"] == "latent"
    others = [name for name in first if name not in {"truth gap 0.2, label bias 1"} and "gap 0," not in name]
    assert {first[name] for name in (*others, "truth gap 0, label bias 0")} <= plain


def test_a_table_is_read_from_its_file_or_from_its_block() -> None:
    assert cell("leaderboard_credit", "harsh initial policy", "accept everybody", "DPU ↓") == "0.0"
    assert cell("ablation", "cut − drawn", "MEPS", "pairs") == "8"
    assert numbers(INTERVAL, cell("ablation", "penalty − none", "MEPS", "DPU ↓"))[0] < 0


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        ("ablatio", "MEPS", "no table of results ablatio"),
        ("ablation", "MEP", r"the table ablation has no cell .*MEP"),
    ],
)
def test_what_is_not_there_is_one_line(key: str, name: str, said: str) -> None:
    with pytest.raises(FairAllError, match=said):
        cell(key, "cut − drawn", name, "pairs")


def test_a_cell_of_another_kind_is_one_line() -> None:
    with pytest.raises(FairAllError, match="'refused' is not a cell as in"):
        numbers(INTERVAL, "refused")


def test_a_changed_result_changes_page_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = text()
    changed = read_table("ablation").copy()
    changed.loc[("cut − drawn", "all data sets"), "effective utility ↑"] = "7.7 [7.6, 7.8]"
    monkeypatch.setattr(findings, "read_table", lambda key: changed if key == "ablation" else read_table(key))
    assert "7.7 \\[7.6, 7.8\\]" in text()
    assert "7.7 \\[7.6, 7.8\\]" not in before
    assert intervals(findings.draw_parts(), 0)[0] == pytest.approx((7.7, 7.6, 7.8))
