"""How near each implementation comes to its tolerance, and how far planted faults go beyond."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from tiled_attention.plots.style import INK, looks, new_figure, say_instead

FLOOR = 1e-2  # where a case without any error is drawn


def errors(cases: pd.DataFrame, mutants: pd.DataFrame) -> Figure:
    """Error as a share of the tolerance; right of 1 is rejected."""
    names = sorted(cases["implementation"].unique())
    faults = list(dict.fromkeys(mutants["mutant"]))
    figure, axes = new_figure(height=1.6 + 0.45 * (len(names) + len(faults)))
    ratio = (cases["max_abs_error"] / cases["tolerance"]).where(cases["tolerance"] > 0, 0.0)
    judged = cases.assign(ratio=ratio.clip(lower=FLOOR))[cases["max_abs_error"].notna()]
    worst = (mutants["max_abs_error"] / mutants["tolerance"]).groupby(mutants["mutant"]).max()
    if judged.empty and worst.dropna().empty:
        say_instead(axes, "No case was judged.")
        return figure
    palette = {name: look["color"] for name, look in looks(names).items()}
    sns.stripplot(
        judged, x="ratio", y="implementation", hue="implementation", order=names, hue_order=names,
        palette=palette, size=3.5, alpha=0.55, jitter=False, legend=False, ax=axes,
    )  # fmt: skip
    for index, fault in enumerate(faults):
        axes.plot(max(worst[fault], FLOOR), len(names) + index, "X", color=INK, markersize=9)
    axes.set_yticks(
        range(len(names) + len(faults)), [*names, *(f"fault: {fault}" for fault in faults)]
    )
    axes.set_ylim(len(names) + len(faults) - 0.5, -0.5)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(f"error / tolerance (no error at all is drawn at {FLOOR})")
    axes.set_ylabel("")
    axes.set_title("Right of 1 is rejected")
    return figure
