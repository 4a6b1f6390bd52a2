"""Choosing the temperature: the log predictive density can, R^2 cannot
====================================================================

Each of 60 subjects is measured ten times, and what sets a subject apart from the others is the same
in all ten. A model of independent rows takes them for 600 subjects: its posterior is too narrow.
The posterior at temperature 10 counts ten rows as one, and is the right one. The posterior mean,
and with it every prediction, is the same at all temperatures, so R^2 has nothing to choose by;
the log predictive density and the interval score of subjects left out find the temperature. To see:
their curves against the flat one, and the share of new subjects that intervals hold.

Usage: ``python examples/plot_choose_temperature.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_choose_temperature.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import ORANGE, RIGHT, misfit, new_figure, parse, save, say, tidy, unconverged
from _numbers import share
from sklearn.model_selection import GridSearchCV, GroupKFold

from skbayes_sgld import SGLDLinearRegression, predict_interval
from skbayes_sgld.metrics import get_scorer, interval_coverage
from skbayes_sgld.plotting import CoverageDisplay

N_SUBJECTS, N_REPEATS, N_COLUMNS = 60, 10, 15
TEMPERATURES = (1.0, 2.0, 4.0, 7.0, 10.0, 14.0, 20.0)
SCORES = {
    "log_predictive_density": "log predictive density, in nats",
    "neg_interval_score": "interval score with a minus, in units of y",
    "r2": "R²",
}


def make_subjects(n: int, repeats: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Rows, targets and numbers of subjects, each measured ``repeats`` times."""
    subject = rng.standard_normal((n, N_COLUMNS))
    y = subject[:, :3].sum(axis=1) + rng.standard_normal(n)
    rows = np.repeat(np.arange(n), repeats)
    X = subject[rows] + 0.01 * rng.standard_normal((len(rows), N_COLUMNS))
    return X, y[rows] + 0.01 * rng.standard_normal(len(rows)), rows


def draw_scores(axes: Any, search: GridSearchCV) -> None:
    """Draw each score by temperature, with the standard error of its differences from the best."""
    table = search.cv_results_
    splits, temperatures = range(search.n_splits_), table["param_temperature"].astype(float)
    for panel, (name, label) in zip(axes, SCORES.items(), strict=True):
        by_split = np.array([table[f"split{k}_test_{name}"] for k in splits])
        mean = by_split.mean(axis=0)
        best = int(mean.argmax())
        error = (by_split - by_split[:, [best]]).std(axis=0, ddof=1) / np.sqrt(len(splits))
        color = ORANGE if name == "r2" else RIGHT
        panel.errorbar(temperatures, mean, error, fmt="o-", color=color, markersize=4, capsize=2)
        panel.axvline(N_REPEATS, color="0.45", linewidth=1.0, linestyle=(0, (4, 3)))
        panel.set(xscale="log", xlabel="temperature", title=label)
        panel.set_xticks(temperatures, [f"{t:g}" for t in temperatures])
        panel.minorticks_off()
        if name == "r2":
            panel.set_ylim(0.0, 1.0)
        panel.title.set_fontsize(10)
        tidy(panel)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Search, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    rng = np.random.default_rng(1)
    X, y, subject = make_subjects(N_SUBJECTS, N_REPEATS, rng)
    X_new, y_new, _ = make_subjects(2000, 1, rng)
    search = GridSearchCV(
        SGLDLinearRegression(prior="flat", n_draws=100 if options.quick else 500, random_state=0),
        {"temperature": TEMPERATURES[::4] if options.quick else TEMPERATURES},
        scoring={name: name if name == "r2" else get_scorer(name) for name in SCORES},
        refit="log_predictive_density",
        cv=GroupKFold(3 if options.quick else 10),
    )
    with unconverged(options.quick), misfit():  # too few independent rows for the tests of a fit
        search.fit(X, y, groups=subject)
        models = {
            f"temperature {t}": SGLDLinearRegression(
                prior="flat", temperature=float(t), random_state=0
            ).fit(X, y)
            for t in (1, N_REPEATS)
        }

    figure = new_figure(9.0, 8.0)
    panels = figure.subplots(2, 2).ravel()
    draw_scores(panels[:3], search)
    for (name, model), color in zip(models.items(), (ORANGE, RIGHT), strict=True):
        CoverageDisplay.from_estimator(model, X_new, y_new, name=name, ax=panels[3], color=color)
    panels[3].set_title("2,000 new subjects; bands: 90 % credible", loc="left", fontsize=10)
    note = "Scores of subjects left out, and standard errors of the differences from the best."
    dashed = "Dashed: the temperature at which the ten rows of a subject count as one"
    figure.suptitle(f"{note}\n{dashed}", fontsize=11)
    save(figure, options.output, "choose_temperature.png", panels[3])

    r2 = search.cv_results_["mean_test_r2"]
    shares = [
        float(interval_coverage(y_new, predict_interval(model, X_new, 0.9)))
        for model in models.values()
    ]
    say(
        f"To see: R^2 is {r2.min():.2f} to {r2.max():.2f} at all temperatures; the log predictive "
        f"density chooses {search.best_params_['temperature']:g}, beside the {N_REPEATS} at which "
        f"the rows of a subject count as one. The 90 % intervals of temperature 1 hold "
        f"{100 * shares[0]:.0f} % of new subjects, those of {N_REPEATS} {100 * shares[1]:.0f} %."
    )
    # which of two neighbouring temperatures scores best is chance, and is not kept
    return {
        f"covered at {t}": share(value, len(y_new))
        for t, value in zip((1, N_REPEATS), shares, strict=True)
    }


if __name__ == "__main__":
    main()
