"""NBA rookies: from a table of first seasons to decisions about careers
=====================================================================

1. classify: does the career last five years? Scores over folds, compared with other classifiers;
2. search: the step size and temperature of plain SGLD with the least held-out log loss, compared
   with the default settings, which have no step size to choose;
3. coefficients: means, intervals and diagnostics, as a table and a forest plot;
4. six rookies that the fit has not seen: probability, credible band and true outcome;
5. points, predicted from the columns that are not about shooting: the fit warns that its model is
   wrong, ``check_model`` says where and suggests another one, and folds show which model's 50, 80,
   90 and 95 % predictive intervals hold that share of rookies whom the fit has not seen.

Usage: ``python examples/nba_rookies.py [--output DIR] [--quick]``. It prints as it goes, takes
about a minute and writes its figures to DIR. It needs Matplotlib:
``pip install "skbayes-sgld[plot]"``.
"""

# sphinx_gallery_thumbnail_path = "figures/six_rookies.png"

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from _figure import parse, say, show, unconverged
from _nba import QUICK, Work, group_folds, load, pipeline
from _nba_careers import coefficients, six_rookies
from _nba_points import regress_points
from _plain_sgld import PLAIN
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.utils import Bunch

from skbayes_sgld import SGLDLogisticRegression

SCORES = {"accuracy": "accuracy", "log loss": "neg_log_loss", "Brier score": "neg_brier_score"}


# ---- 1. classify --------------------------------------------------------------------------------


def classify(rookies: Bunch, work: Work, output: Path) -> None:
    """Score the classifier beside two others, on the same folds."""
    models = {
        "SGLDLogisticRegression": pipeline(
            SGLDLogisticRegression(n_draws=work.n_draws, random_state=0)
        ),
        "LogisticRegression": pipeline(LogisticRegression()),
        "majority class": DummyClassifier(strategy="prior"),
    }
    scores = {name: fold_scores(model, rookies, work) for name, model in models.items()}
    say(
        f"Mean ± standard deviation over {work.n_folds} folds; the probability of the majority "
        "class is its share:"
    )
    show(
        pd.DataFrame(
            {
                name: [f"{m:.4f} ± {s:.4f}" for m, s in zip(table.mean(), table.std(), strict=True)]
                for name, table in scores.items()
            },
            index=list(SCORES),
        ).T
    )
    ours, theirs = (scores[name]["log loss"] for name in list(models)[:2])
    difference = ours - theirs
    say(
        "Fold by fold, the log loss of SGLDLogisticRegression less that of LogisticRegression is "
        f"{difference.mean():+.4f} ± {difference.std():.4f}. Both have the same prior: C=1 is a "
        "standard deviation of 1, so about equal scores are to be expected. What the posterior "
        "adds is intervals, from 3 on."
    )


def fold_scores(model: BaseEstimator, rookies: Bunch, work: Work) -> pd.DataFrame:
    """Scores of a model, one row a fold."""
    result = cross_validate(
        model,
        rookies.data,
        rookies.target,
        groups=rookies.names,
        cv=group_folds(work.n_folds),
        scoring=list(SCORES.values()),
    )
    scores = pd.DataFrame({name: result[f"test_{key}"] for name, key in SCORES.items()})
    return scores.abs()  # scikit-learn turns losses negative


# ---- 2. search ----------------------------------------------------------------------------------


def search(rookies: Bunch, work: Work, output: Path) -> None:
    """Search step size and temperature by the log loss of held-out folds."""
    half = work.n_plain_steps // 2
    lengths = {"batch_size": 30, "n_burnin": half, "n_draws": half}
    plain = SGLDLogisticRegression(**PLAIN | lengths, init="prior", random_state=0)
    default = SGLDLogisticRegression(n_draws=work.n_draws, random_state=0)
    grid = {"temperature": list(work.temperatures)}
    losses = pd.concat(
        [
            held_out_losses(plain, grid | {"step_size": list(work.step_sizes)}, rookies, work),
            held_out_losses(default, grid | {"step_size": ["auto"]}, rookies, work),
        ]
    )
    say(
        f"Log loss of held-out rookies, mean over {work.n_folds} folds ({losses.size} fits). Plain "
        f"SGLD is the published algorithm: chains start at draws from the prior and make "
        f"{2 * half:,} steps with batches of 30, of which the second half is kept. The last row is "
        "the default settings."
    )
    table = losses.mean(axis=1).unstack("temperature")
    table.index = [f"step size {step}" for step in table.index]
    table.columns = [f"temperature {value:g}" for value in table.columns]
    show(table.map("{:.4f}".format))
    say(judge_search(losses))


def held_out_losses(
    model: SGLDLogisticRegression, grid: dict[str, list], rookies: Bunch, work: Work
) -> pd.DataFrame:
    """Log losses by step size and temperature (rows), in every fold (columns)."""
    search = GridSearchCV(
        pipeline(model),
        {f"model__{name}": values for name, values in grid.items()},
        scoring="neg_log_loss",
        cv=group_folds(work.n_folds),
        refit=False,
    )
    with unconverged():
        search.fit(rookies.data, rookies.target, groups=rookies.names)
    cells = pd.DataFrame(search.cv_results_)
    losses = -cells.filter(regex=r"^split\d+_test_score$")
    names = ["param_model__step_size", "param_model__temperature"]
    losses.index = pd.MultiIndex.from_frame(cells[names], names=["step_size", "temperature"])
    return losses


def judge_search(losses: pd.DataFrame) -> str:
    """Results of the search, with differences fold by fold."""
    plain = losses.drop(index="auto", level="step_size")
    steps = plain.index.get_level_values("step_size")
    best = plain.loc[plain.mean(axis=1).idxmin()]

    def behind(row: Any) -> str:
        gap = row - best
        return f"{gap.mean():+.4f} ± {gap.sem():.4f}"

    by_step = {step: plain[steps == step] for step in (min(steps), max(steps))}
    smallest, largest = (rows.loc[rows.mean(axis=1).idxmin()] for rows in by_step.values())
    default = losses.loc[("auto", 1.0)]
    return (
        "Log loss above that of plain SGLD's best cell (± standard error, fold by fold): the "
        f"smallest step {behind(smallest)} at its best temperature, for it has hardly left its "
        f"start; the largest {behind(largest)}, for it jumps about; the default settings "
        f"{behind(default)}. They have no step size to choose, and temperature 1 is the posterior: "
        "what follows keeps both. The score judges probabilities, not how wide the credible bands "
        "are."
    )


# ---- all of it ----------------------------------------------------------------------------------

SECTIONS = {
    "Does the career last five years?": classify,
    "A search over step size and temperature": search,
    "What the coefficients say": coefficients,
    "Six rookies whom the fit has not seen": six_rookies,
    "Points from the other columns: do the intervals hold?": regress_points,
}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run every section."""
    start = time.perf_counter()
    options = parse(__doc__, arguments, Path(__file__).parent / "figures" / "nba_rookies")
    work = QUICK if options.quick else Work()
    print("NBA rookies\n", flush=True)
    rookies, found = load(), {}
    for number, (title, section) in enumerate(SECTIONS.items(), 1):
        print(f"\n[{time.perf_counter() - start:5.1f} s] {number}. {title}\n", flush=True)
        found[section.__name__] = section(rookies, work, options.output)
    print(f"\n[{time.perf_counter() - start:5.1f} s] Done.")
    return {"covered": found["regress_points"]}


if __name__ == "__main__":
    main()
