"""Real data sets of installed packages, for ``benchmarks.real_data``: one line a set.

Preparation is the same for all: drop identifiers and rows with a missing value, one column for each
level of a string but the first. No column is transformed. A time series is predicted from its own
last values.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from typing import NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets

from skbayes_sgld.datasets import load_nba_rookies

PUBLIC = "public domain"
AUTHOR = "the author's permission"
BSD = "BSD-3-Clause, with the package"


class Data(NamedTuple):
    """Rows of a set: their kind, columns, target, and exposures or numbers of trials."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    size: np.ndarray | None

    def rows(self, chosen: np.ndarray) -> Data:
        """Some of the rows."""
        size = None if self.size is None else self.size[chosen]
        return Data(self.kind, self.X[chosen], self.y[chosen], size)


@dataclass(frozen=True)
class RealSet:
    """A data set, how to load it, and what of it is modelled.

    Attributes
    ----------
    kind : {"numbers", "counts", "totals", "classes", "ordered classes"}
    load : callable
        The frame, without arguments.
    target : str
    drop : str
        Columns that identify rows, or tell the target, separated by blanks.
    size : str
        Column of the exposure of a count, or of the number of trials of a total.
    source, licence : str
        Where the data are from, and the licence that the package with the data names.
    """

    kind: str
    load: Callable[[], pd.DataFrame]
    target: str
    drop: str = ""
    size: str = ""
    source: str = ""
    licence: str = BSD

    def data(self) -> Data:
        """Rows as the estimators take them."""
        frame = self.load().drop(columns=self.drop.split()).dropna()
        y = frame.pop(self.target)
        size = frame.pop(self.size).to_numpy(float) if self.size else None
        if y.dtype.kind not in "iuf":
            y = pd.Series(pd.factorize(y, sort=True)[0])
        X = pd.get_dummies(frame, drop_first=True, dtype=float).to_numpy(float)
        values = y.to_numpy(float if self.kind == "numbers" else int)
        return Data(self.kind, X[:, np.ptp(X, axis=0) > 0], values, size)


# ---- loaders -------------------------------------------------------------------------------------

Loader = Callable[[], pd.DataFrame]


def _sklearn(name: str, **options: object) -> Loader:
    """Frame of a set that scikit-learn loads, with the column "target"."""
    return lambda: getattr(sklearn.datasets, f"load_{name}")(as_frame=True, **options).frame


def _statsmodels(name: str) -> Loader:
    """Frame of a set of ``statsmodels.datasets``."""

    def load() -> pd.DataFrame:
        import statsmodels.api as sm  # noqa: PLC0415

        return getattr(sm.datasets, name).load_pandas().data

    return load


def _file(path: str, **options: object) -> Loader:
    """Frame of a table among the files of statsmodels."""

    def load() -> pd.DataFrame:
        with (files("statsmodels") / path).open("rb") as file:
            reader = pd.read_stata if path.endswith(".dta") else pd.read_csv
            return reader(file, **options)

    return load


def _openml(number: int, name: str) -> Loader:
    """Frame of a table that scikit-learn keeps for its tests, in ARFF."""

    def load() -> pd.DataFrame:
        folder = files("sklearn") / "datasets/tests/data/openml" / f"id_{number}"
        with (folder / f"data-v1-dl-{name}.arff.gz").open("rb") as file:
            text = gzip.decompress(file.read()).decode()
        head, rows = re.split(r"(?i)@data\s*", re.sub(r"(?m)^%.*\n", "", text))
        names = re.findall(r"(?im)^@attribute\s+'?([^'\s]+)", head)
        return pd.read_csv(StringIO(rows), names=names, na_values=["?", "_"], escapechar="\\")

    return load


def _rookies() -> pd.DataFrame:
    """Rookies without the columns about shooting, which tell the points."""
    frame = load_nba_rookies(duplicates="drop").frame
    shots = ("field_goal", "three_point", "free_throw")
    return frame[[name for name in frame if not name.startswith(shots)]]


def _games() -> pd.DataFrame:
    """Rookies with the 82 games of a season."""
    return _rookies().assign(season=82)


def _lagged(load: Loader, column: str, lags: int, *others: str) -> Loader:
    """A series beside its own last values and those of other series."""

    def lagged() -> pd.DataFrame:
        frame = load()
        columns = {column: frame[column]}
        for name in (column, *others):
            columns |= {
                f"{name} {lag} before": frame[name].shift(lag) for lag in range(1, lags + 1)
            }
        return pd.DataFrame(columns)

    return lagged


def _elnino() -> pd.DataFrame:
    """Temperatures of the sea, one row a month."""
    frame = _statsmodels("elnino")().drop(columns="YEAR")
    return pd.DataFrame({"temperature": frame.to_numpy().ravel()})


def _star98() -> pd.DataFrame:
    """School districts without interaction terms; trials are pupils."""
    frame = _statsmodels("star98")().iloc[:, :14]
    return frame.assign(pupils=frame["NABOVE"] + frame.pop("NBELOW"))


def _modes() -> pd.DataFrame:
    """Travellers, one row each, with the times and costs of every mode, and the chosen one."""
    frame = _statsmodels("modechoice")()
    wide = frame.pivot(index="individual", columns="mode", values=["ttme", "invc", "invt", "gc"])
    wide.columns = [f"{name} {mode:g}" for name, mode in wide.columns]
    about = frame.groupby("individual")[["hinc", "psize"]].first()
    chosen = frame[frame["choice"] == 1].set_index("individual")["mode"].rename("chosen")
    return pd.concat([wide, about, chosen], axis=1)


def _watching() -> pd.DataFrame:
    """Voters with the seven days of a week, of which they watch the news on some."""
    return _statsmodels("anes96")().assign(days=7)


def _affairs() -> pd.DataFrame:
    """Whether each woman of Fair's survey had an affair."""
    frame = _statsmodels("fair")()
    return frame.assign(any=(frame.pop("affairs") > 0).astype(int))


def _linnerud() -> pd.DataFrame:
    return _sklearn("linnerud")().drop(columns=["Waist", "Pulse"])


_RESULTS = {
    "autos": "gam/tests/results/autos.csv",
    "births": "treatment/tests/results/cataneo2.csv",
    "birth weights": "genmod/tests/results/stata_lbw_glm.csv",
    "framing": "stats/tests/results/framing.csv",
    "docvis": "sandbox/regression/tests/racd10data_with_transformed.csv",
}
_BIRTHS = "mbsmoke_ mmarried_ fbaby_ prenatal1_ mage2 lbweight"

SETS = {
    # ---- numbers
    "diabetes": RealSet(
        "numbers", _sklearn("diabetes"), "target", source="scikit-learn; Efron et al. 2004"
    ),
    "linnerud": RealSet("numbers", _linnerud, "Weight", source="scikit-learn; Tenenhaus 1998"),
    "rookies' points": RealSet(
        "numbers",
        _rookies,
        "points",
        drop="career_at_least_5_years",
        source="skbayes_sgld; NBA seasons",
    ),
    "stackloss": RealSet(
        "numbers",
        _statsmodels("stackloss"),
        "STACKLOSS",
        source="statsmodels; Brownlee 1965",
        licence=PUBLIC,
    ),
    "longley": RealSet(
        "numbers",
        _statsmodels("longley"),
        "TOTEMP",
        source="statsmodels; Longley 1967",
        licence=PUBLIC,
    ),
    "ccard": RealSet(
        "numbers",
        _statsmodels("ccard"),
        "AVGEXP",
        source="statsmodels; Greene",
        licence=AUTHOR,
    ),
    "engel": RealSet(
        "numbers",
        _statsmodels("engel"),
        "foodexp",
        source="statsmodels; Engel 1857",
        licence=PUBLIC,
    ),
    "scotland": RealSet(
        "numbers", _statsmodels("scotland"), "YES", source="statsmodels; Gill", licence=AUTHOR
    ),
    "copper": RealSet(
        "numbers",
        _statsmodels("copper"),
        "WORLDCONSUMPTION",
        source="statsmodels; Gill",
        licence=AUTHOR,
    ),
    "grunfeld": RealSet(
        "numbers",
        _statsmodels("grunfeld"),
        "invest",
        source="statsmodels; Grunfeld 1950",
        licence=PUBLIC,
    ),
    "statecrime": RealSet(
        "numbers",
        _statsmodels("statecrime"),
        "violent",
        drop="murder",
        source="statsmodels; US states 2009",
        licence=PUBLIC,
    ),
    "strikes": RealSet(
        "numbers",
        _statsmodels("strikes"),
        "duration",
        source="statsmodels; Kennan 1985",
        licence=PUBLIC,
    ),
    "danish money": RealSet(
        "numbers",
        _statsmodels("danish_data"),
        "lrm",
        source="statsmodels; Johansen and Juselius 1990",
        licence=PUBLIC,
    ),
    "inflation": RealSet(
        "numbers",
        _lagged(_statsmodels("macrodata"), "infl", 2, "unemp", "tbilrate"),
        "infl",
        source="statsmodels; US quarters 1959-2009",
        licence=PUBLIC,
    ),
    "nile": RealSet(
        "numbers",
        _lagged(_statsmodels("nile"), "volume", 2),
        "volume",
        source="statsmodels; Cobb 1978",
        licence=PUBLIC,
    ),
    "sunspots": RealSet(
        "numbers",
        _lagged(_statsmodels("sunspots"), "SUNACTIVITY", 3),
        "SUNACTIVITY",
        source="statsmodels; NOAA 1700-2008",
        licence=PUBLIC,
    ),
    "el nino": RealSet(
        "numbers",
        _lagged(_elnino, "temperature", 12),
        "temperature",
        source="statsmodels; NOAA 1950-2010",
        licence=PUBLIC,
    ),
    "co2": RealSet(
        "numbers",
        _lagged(_statsmodels("co2"), "co2", 3),
        "co2",
        source="statsmodels; Mauna Loa 1958-2001",
        licence=PUBLIC,
    ),
    "penguins' mass": RealSet(
        "numbers",
        _openml(42585, "21854866"),
        "body_mass_g",
        source="tests of scikit-learn; Gorman et al. 2014",
        licence="CC0",
    ),
    "cpu": RealSet(
        "numbers",
        _openml(561, "52739"),
        "class",
        drop="vendor",
        source="tests of scikit-learn; Ein-Dor and Feldmesser 1987",
    ),
    "autos": RealSet(
        "numbers",
        _file(_RESULTS["autos"]),
        "price",
        drop="loss make",
        source="tests of statsmodels; Schlimmer 1987",
    ),
    "motorcycle": RealSet(
        "numbers",
        _file("gam/tests/results/motorcycle.csv"),
        "accel",
        source="tests of statsmodels; Silverman 1985",
    ),
    "pigs' weight": RealSet(
        "numbers",
        _file("regression/tests/results/dietox.csv"),
        "Weight",
        drop="Pig Litter",
        source="tests of statsmodels; Lauridsen et al. 1999",
    ),
    "birth weight": RealSet(
        "numbers",
        _file(_RESULTS["birth weights"]),
        "bwt",
        drop="id low",
        source="tests of statsmodels; Hosmer and Lemeshow 1989",
    ),
    "birth weight, Pennsylvania": RealSet(
        "numbers",
        _file(_RESULTS["births"]),
        "bweight",
        drop=_BIRTHS,
        source="tests of statsmodels; Cattaneo 2010",
    ),
    "food and income": RealSet(
        "numbers",
        _file("othermod/tests/results/foodexpenditure.csv"),
        "food",
        source="tests of statsmodels; Griffiths et al. 1993",
    ),
    "wages": RealSet(
        "numbers",
        _file("sandbox/regression/tests/griliches76.dta"),
        "lw",
        drop="lw80 rns80 mrt80 smsa80 age80 s80 expr80 tenure80",
        source="tests of statsmodels; Griliches 1976",
    ),
    "feelings on immigration": RealSet(
        "numbers",
        _file(_RESULTS["framing"], index_col=0),
        "emo",
        drop="cond p_harm immigr anti_info cong_mesg english anx",
        source="tests of statsmodels; Brader et al. 2008",
    ),
    # ---- counts
    "randhie": RealSet(
        "counts",
        _statsmodels("randhie"),
        "mdvis",
        source="statsmodels; RAND Health Insurance Experiment",
        licence=PUBLIC,
    ),
    "cpunish": RealSet(
        "counts",
        _statsmodels("cpunish"),
        "EXECUTIONS",
        source="statsmodels; Gill",
        licence=AUTHOR,
    ),
    "committee": RealSet(
        "counts",
        _statsmodels("committee"),
        "BILLS104",
        source="statsmodels; Gill",
        licence=AUTHOR,
    ),
    "affairs": RealSet(
        "counts",
        _file("datasets/fair/fair_pt.csv"),
        "naffairs",
        drop="identifier constant",
        source="statsmodels; Fair 1978, Psychology Today",
        licence=AUTHOR,
    ),
    "ships": RealSet(
        "counts",
        _file("discrete/tests/results/ships.csv"),
        "accident",
        drop="yr_con yr_op",
        size="service",
        source="tests of statsmodels; McCullagh and Nelder 1989",
    ),
    "epilepsy": RealSet(
        "counts",
        _file("genmod/tests/results/epil.csv", index_col=0),
        "y",
        drop="subject lbase lage",
        source="tests of statsmodels; Thall and Vail 1990",
    ),
    "days in hospital": RealSet(
        "counts",
        _file("genmod/tests/results/stata_medpar1_glm.csv"),
        "los",
        source="tests of statsmodels; Hardin and Hilbe",
    ),
    "visits to doctors": RealSet(
        "counts",
        _file(_RESULTS["docvis"]),
        "docvis",
        drop="ldocvis ldocvisa docbin aget aget2 incomet age2 linc physician nonphysician",
        source="tests of statsmodels; Cameron and Trivedi 2009",
    ),
    "visits in pregnancy": RealSet(
        "counts",
        _file(_RESULTS["birth weights"]),
        "ftv",
        drop="id low bwt",
        source="tests of statsmodels; Hosmer and Lemeshow 1989",
    ),
    "prenatal visits": RealSet(
        "counts",
        _file(_RESULTS["births"]),
        "nprenatal",
        drop=f"{_BIRTHS} bweight prenatal prenatal1",
        source="tests of statsmodels; Cattaneo 2010",
    ),
    # ---- totals
    "star98": RealSet(
        "totals",
        _star98,
        "NABOVE",
        size="pupils",
        source="statsmodels; Gill",
        licence=AUTHOR,
    ),
    "news on TV": RealSet(
        "totals",
        _watching,
        "TVnews",
        drop="logpopul",
        size="days",
        source="statsmodels; American National Election Study 1996",
        licence=PUBLIC,
    ),
    "rookies' games": RealSet(
        "totals",
        _games,
        "games_played",
        drop="career_at_least_5_years",
        size="season",
        source="skbayes_sgld; NBA seasons",
    ),
    # ---- classes
    "iris": RealSet("classes", _sklearn("iris"), "target", source="scikit-learn; Fisher 1936"),
    "wine": RealSet("classes", _sklearn("wine"), "target", source="scikit-learn; Forina 1988"),
    "breast cancer": RealSet(
        "classes",
        _sklearn("breast_cancer"),
        "target",
        source="scikit-learn; Wolberg et al. 1995",
    ),
    "rookies' careers": RealSet(
        "classes", _rookies, "career_at_least_5_years", source="skbayes_sgld; NBA seasons"
    ),
    "spector": RealSet(
        "classes",
        _statsmodels("spector"),
        "GRADE",
        source="statsmodels; Spector and Mazzeo 1980",
        licence=AUTHOR,
    ),
    "vote": RealSet(
        "classes",
        _statsmodels("anes96"),
        "vote",
        drop="logpopul",
        source="statsmodels; American National Election Study 1996",
        licence=PUBLIC,
    ),
    "any affair": RealSet(
        "classes",
        _affairs,
        "any",
        source="statsmodels; Fair 1978, Redbook",
        licence=AUTHOR,
    ),
    "mode of travel": RealSet(
        "classes",
        _modes,
        "chosen",
        source="statsmodels; Greene and Hensher 1997",
        licence=PUBLIC,
    ),
    "penguins' species": RealSet(
        "classes",
        _openml(42585, "21854866"),
        "species",
        source="tests of scikit-learn; Gorman et al. 2014",
        licence="CC0",
    ),
    "titanic": RealSet(
        "classes",
        _openml(40945, "16826755"),
        "survived",
        drop="name ticket cabin boat body home.dest",
        source="tests of scikit-learn; Harrell and Cason",
        licence=PUBLIC,
    ),
    "glass": RealSet(
        "classes",
        _openml(40675, "4965250"),
        "class",
        source="tests of scikit-learn; Evett and Spiehler 1987",
    ),
    "chess endings": RealSet(
        "classes",
        _openml(3, "3"),
        "class",
        source="tests of scikit-learn; Shapiro 1983",
    ),
    "low birth weight": RealSet(
        "classes",
        _file(_RESULTS["birth weights"]),
        "low",
        drop="id bwt",
        source="tests of statsmodels; Hosmer and Lemeshow 1989",
    ),
    "constriction": RealSet(
        "classes",
        _file("stats/tests/results/binary_constrict.csv"),
        "constrict",
        drop="Case diagnosis const rate volumne",
        source="tests of statsmodels; Finney 1947",
    ),
    "digits 0 to 2": RealSet(
        "classes",
        _sklearn("digits", n_class=3),
        "target",
        source="scikit-learn; Alpaydin and Kaynak 1998",
    ),
    # ---- ordered classes
    "party": RealSet(
        "ordered classes",
        _statsmodels("anes96"),
        "PID",
        drop="logpopul vote",
        source="statsmodels; American National Election Study 1996",
        licence=PUBLIC,
    ),
    "rating of marriage": RealSet(
        "ordered classes",
        _statsmodels("fair"),
        "rate_marriage",
        source="statsmodels; Fair 1978, Redbook",
        licence=AUTHOR,
    ),
    "harm of immigration": RealSet(
        "ordered classes",
        _file(_RESULTS["framing"], index_col=0),
        "p_harm",
        drop="cond emo immigr anti_info cong_mesg english anx",
        source="tests of statsmodels; Brader et al. 2008",
    ),
}
