"""Parts of docstrings that several estimators share, each written once."""

from __future__ import annotations

from textwrap import indent
from typing import TypeVar

_PARTS = {
    "prior_regression": """\
prior : str or CoefficientPrior, default="conjugate_normal"
    Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``,
    ``"conjugate_normal"`` (its scale is in units of the noise), ``"laplace"``, ``"student_t"``,
    ``"cauchy"``, ``"flat"``, or an instance such as ``Laplace(scale=0.5)``; where the posterior is
    sampled also ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name
    its scale is in
    the units of each column and of y, so that no prediction depends on them. The default, on
    standardised columns, is the normal-inverse-gamma model of the lecture, beta | sigma^2 ~
    N(0, 100 sigma^2 I);
    ``ConjugateNormal(covariance=V)`` is that of a matrix V. With fewer than about ten rows a
    column that model takes the noise to be too small: choose ``"normal"`` there. The intercept
    has a prior of its own.
noise_prior : str or NoisePrior, default="inverse_gamma"
    Prior of the noise: ``"inverse_gamma"`` on its variance, ``"flat"`` on its standard
    deviation, or an instance. The default has next to no weight and follows the units of y.
noise_variance : "infer" or float, default="infer"
    A number fixes the noise variance, in squared units of y.""",
    "noise_model": """\
noise_model : {"constant", "log_linear"} or NoiseModel, default="constant"
    Whether the noise is the same in every row, or its log standard deviation is linear in the
    columns of X; ``LogLinearNoise(columns=["age"])`` chooses columns. ``noise_prior`` is then of
    the noise at their mean.""",
    "fitted_noise": """\
noise_coef_ : ndarray of shape (n_noise_columns,)
noise_intercept_ : float
    Slopes and intercept of the log standard deviation of the noise, in place of
    ``noise_variance_``, under ``noise_model="log_linear"``.""",
    "prior_classification": """\
prior : str or CoefficientPrior, default="normal"
    Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
    ``"flat"``, or an instance such as ``Normal(scale=2.5)``; where the posterior is sampled also
    ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name its scale is in
    the units of each column, ``1 / sd(x_j)``, so that no prediction depends on them; on
    standardised columns the posterior mode of the default is the fit of
    ``LogisticRegression(C=1)``. The intercept has a prior of its own; over more than two classes
    each has it, and their common shift, which no data see, is left out of what is reported.""",
    "prior_counts": """\
prior : str or CoefficientPrior, default="normal"
    Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
    ``"flat"``, or an instance such as ``Normal(scale=2.5)``; where the posterior is sampled also
    ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name its scale is in
    the units of each column, ``1 / sd(x_j)``. With a scale of s the posterior mode is the fit of
    ``PoissonRegressor(alpha=1 / (s**2 * W))``, W being the sum of the weights (times exposures).
    The intercept has a prior of its own.""",
    "fit_intercept": """\
fit_intercept : bool, default=True
    Whether the model has an intercept.
intercept_prior : str or CoefficientPrior, default="flat"
    Prior of the intercept: any that ``prior`` takes, of one number, such as
    ``Normal(scale=10.0)``. It acts on the intercept at X = 0.""",
    "class_weight": """\
class_weight : dict, "balanced" or None, default=None
    Weights of the classes, 0 or more, multiplied into ``sample_weight``. A class whose rows all
    have weight zero stays in ``classes_``. Under a proper prior of the intercepts its posterior is
    that of the model; where their prior is flat, as by default, its probability is 0, the limit of
    ever wider priors, and of two classes both must have weight.""",
    "sampling": """\
sampler : str or Sampler, default="auto"
    ``"auto"`` is Leimkuhler-Matthews SGLD, or HMC where a pilot finds an error in it; any other
    is itself and nothing else: ``"sgld"``, ``"psgld"``, ``"sghmc"``, ``"sgnht"``, or, exact and
    from all rows at every step, ``"hmc"``, ``"mala"``, ``"random_walk"``,
    ``"parallel_tempering"``; or an instance such as ``SGLD(integrator="euler")``.
step_size : float or "auto", default="auto"
    eta of the recursion, in the preconditioned space: with the curvature preconditioner it has
    no unit (0.2 moves a fifth of the way to the mode), without one it is in raw units. The
    default is the largest at which a pilot finds no mean or standard deviation off by more than
    1 % of a standard deviation.
schedule : str or Schedule, default="constant"
    How the step size changes: ``"constant"``, ``"harmonic"``, ``"polynomial"``,
    ``"flat_decay_flat"``, ``"cyclical"`` or an instance.
temperature : float, str or Schedule, default=1.0
    tau; the distribution sampled is the posterior density to the power 1 / tau. A schedule that
    settles, such as ``"cooling"`` or ``Cooling(high=20.0)``, is tau at every step: chains that
    start hot cross from mode to mode. The draws are of its last value: the automatic burn-in
    covers what comes before.
batch_size : int or "auto", default="auto"
    Rows of a minibatch. By default so many that their noise adds less than 0.5 % to any standard
    deviation, or all rows where that costs no more.
gradient : str or Gradient, default="auto"
    ``"full"``, ``"minibatch"``, ``"control_variate"``, ``"svrg"``, ``"saga"`` or an instance. By
    default the cheapest without visible noise.
preconditioner : str, Preconditioner, array-like or None, default="auto"
    G of the recursion. ``"auto"`` chooses ``"curvature"``, the inverse curvature at the mode;
    None is the plain recursion; an array of shape (n_params, n_params) or (n_params,) is a
    matrix or a diagonal of your own. With None, a given ``step_size`` and a full or minibatch
    gradient the fit is the published algorithm: no mode is looked for, and no matrix formed.
parameterization : {"auto", "centered", "noncentered", "row_space"}, default="auto"
    The coordinates that are sampled: the model's own; those in which noise and coefficients are
    independent (a normal likelihood whose noise is inferred); or the space of the rows (a normal
    prior and fewer rows than columns). The posterior is the same. ``"auto"`` leaves the model's
    own only in the metric of the curvature, with all rows at every step.
init : {"auto", "mode", "prior", "zeros"} or array-like, default="auto"
    Starting points of the chains: overdispersed around the mode; draws from the prior, or zeros
    where that is flat, with the noise variance at that of y; zeros; or an array of shape
    (n_params,) or (n_chains, n_params), in the order and the units of ``summary()``. ``"auto"`` is
    the mode in the metric of the curvature, or, of HMC and MALA, the last positions of the pilot's
    chains where the prior is log-concave; and the prior otherwise, as published.
clip : str, Clip or None, default=None
    Bound on the gradient: ``"norm"``, ``"value"`` or an instance such as
    ``NormClip(threshold=100.0)``. Clipping biases the posterior.
n_draws : int, default=1000
    Draws to keep from each chain.
n_burnin : int or "auto", default="auto"
    Steps before the first draw.
thin : int or "auto", default="auto"
    Steps from draw to draw; by default so many that neighbours are nearly independent.
n_chains : int, default=4
    Chains. They start apart, so that R-hat can tell whether they have mixed.
warm_start : bool, default=False
    Start the chains where those of the last ``fit`` stopped, without burn-in.
forgetting : float, default=1.0
    Factor by which ``partial_fit`` multiplies the weights of all earlier rows, in (0, 1]; below 1
    the model follows a drift.
n_jobs : int or None, default=None
    Processes to share the chains between, as joblib counts them. They are started once a run has
    shown that it will take more than a minute, since they take seconds to start; a shorter one
    stays in one process. The draws do not depend on it.
random_state : int, RandomState, Generator or None, default=None
    Seed of the pilots and the chains.
verbose : int, default=0
    1 shows progress on standard error: a bar if tqdm is installed, else lines of text.
{long_run}
target_ess : float or None, default=None
    Draws are made until the least bulk effective sample size of any parameter is this large, from
    a tenth of ``n_draws`` to ten times as many.""",
    "climbing": """\
optimizer : str or Optimizer, default="sgd"
    ``"sgd"``, ``"gd"`` (all rows at every step), ``"momentum"``, ``"svrg"`` (batches with
    variance reduction: the choice for a small ``tol``), ``"adagrad"``, ``"rmsprop"``, ``"adam"``
    or an instance; or ``"newton"``, which finds the mode itself.
step_size : float or "auto", default="auto"
    eta of the recursion. The default gives each parameter a step size of its own, from the
    curvature at the start, and follows the steepest curvature on the way: columns may be in any
    units. A number is taken as it is: in raw units without a preconditioner.
schedule : str or Schedule, default="polynomial"
    How the step size changes: ``"constant"``, ``"harmonic"``, ``"polynomial"`` or an instance.
    It counts steps where ``batch_size`` is given, and passes over the rows where it is not.
temperature : float, default=1.0
    tau; ``posterior_`` approximates the posterior density to the power 1 / tau. The mode is the
    same.
batch_size : int or "auto", default="auto"
    Rows of a minibatch. By default each pass goes along a shuffled order in contiguous batches;
    they are small while many steps a pass bring the mode nearer, and all rows in the end.
replacement : bool, default=True
    Whether batches of a given size are drawn with replacement; otherwise a pass takes each row
    once at the most.
projection : str, Projection or None, default=None
    A set that every step ends in: ``"box"`` (no negative coefficients), ``"ball"`` (a vector of
    length 1 at the most) or an instance such as ``Box(low=-1.0, high=[1.0, 2.0])`` or
    ``Ball(radius=3.0)``. It is of the coefficients of the X that ``fit`` sees, not of the
    intercept; what is found is the mode among the coefficients in the set. Not for more than two
    classes.
average : bool or int, default=False
    Report the mean of the iterates, from the first pass or from this one on, in place of the
    last one (Polyak & Juditsky 1992): under a constant step size it is nearer to the mode, once
    the path has come near. What was far off is averaged too: start later than that.
preconditioner : str, Preconditioner, array-like or None, default=None
    ``"auto"`` and ``"curvature"`` are the inverse curvature at the start, which undoes the
    correlation of the columns; an array is a matrix or a diagonal of your own.
init : {"auto", "zeros", "prior"} or array-like of shape (n_params,), default="auto"
    Starting point: by default no effects, with the intercept and the noise of y; zeros; a draw
    from the prior, with zeros where it is flat; or a point in the order of ``posterior_.names``.
clip : str, Clip or None, default=None
    Bound on the gradient: ``"norm"``, ``"value"`` or an instance.
max_iter : int, default=2000
    Passes over the rows at the most.
tol : float, default=0.1
    The path stops when ``distance_`` is at most this. A fit that ends further away says how far in
    a ``ConvergenceWarning``.
random_state : int, RandomState, Generator or None, default=None
    Fixes the minibatches.
verbose : int, default=0
    1 shows progress on standard error: a bar if tqdm is installed, else lines of text.""",
    "fitted_regression": """\
coef_ : ndarray of shape (n_features,), or (n_outputs, n_features) where y has columns
intercept_, noise_variance_ : float, or ndarray of shape (n_outputs,)
estimators_, output_names_ : list
    Where y has columns: the model of each, and their names. What follows is then theirs, except
    ``posterior_``, the draws of all.""",
    "fitted_counts": """\
coef_ : ndarray of shape (n_features,)
intercept_ : float""",
    "fitted_classification": """\
classes_ : ndarray of shape (n_classes,)
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
intercept_ : ndarray of shape (1,) or (n_classes,)""",
    "fitted_sampling": """\
posterior_ : PosteriorDraws
    The draws, ``(chain, draw, parameter)``, with the parameters' names. ``coef_`` and the like
    are their means, weighted by step size where the schedule decays.
result_ : SamplingResult
    As :func:`~skbayes_sgld.sample` returns it; ``print(result_.plan)`` is a table of every setting
    and the reason for it.
sampler_, step_size_, batch_size_, gradient_, preconditioner_ : object
    Values that were used; ``batch_size_`` is None where every step takes all rows.
parameterization_, init_, n_burnin_, thin_ : object
    Values that were used.
prior_ : CoefficientPrior
    The prior, with its scale as a number or one for each column.
intercept_prior_, noise_prior_ : CoefficientPrior, NoisePrior
    Those of intercept and noise, with numbers for scales; None without one to infer.
clipped_fraction_ : float
    Share of the steps on which the gradient was clipped.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features,)
    Where X had names.""",
    "fitted_climbing": """\
posterior_ : PosteriorDraws
    4,000 draws from the Laplace approximation where the path ended, in pairs about ``coef_``:
    normal, with the inverse curvature there times the temperature. Under a projection 1,000, each
    taken to the nearest point of the set in that metric (Dunson & Neelon 2003).
distance_ : float
    Largest distance of a parameter from the posterior mode, in the parameter's posterior standard
    deviations: over ``coef_``, ``intercept_`` and the logarithm of the noise variance. Gradient and
    curvature measure it (by Newton's step and the Laplace approximation); under a projection it is
    the distance from the mode among the coefficients in the set.
path_iter_ : ndarray of shape (n_points,)
    The passes after which the path was recorded.
log_posterior_path_ : ndarray of shape (n_points,)
    The log posterior density along the path, up to a constant.
coef_path_, intercept_path_ : ndarray of shape (n_points, ...)
    The parameters along the path; their averages where ``average``.
prior_ : CoefficientPrior
    The prior, with its scale as a number or one for each column.
intercept_prior_, noise_prior_ : CoefficientPrior, NoisePrior
    Those of intercept and noise, with numbers for scales; None without one to infer.
n_iter_ : int
    Passes made over the rows.
step_size_, batch_size_ : object
    Values at the end; ``batch_size_`` is None where the optimizer takes all rows.
clipped_fraction_ : float
    Share of the steps on which the gradient was clipped.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features,)
    Where X had names.""",
    "how_sampled": """\
Every chain is trained by Adam from random weights of its own and samples from there, so the
draws are an ensemble of several modes. A diagonal metric, the equilibration of Dauphin, de Vries &
Bengio (2015), is measured during the burn-in and then kept. A classifier of tanh units whose steps
take all rows is sampled by the underdamped recursion of :class:`skbayes_sgld.sampling.SGHMC` with
little friction: its momentum crosses in tens of steps what takes thousands without. Momentum
multiplies the noise of minibatches, and the kinks of relu heat it; there, and in regressions, the
recursion is that of :class:`skbayes_sgld.sampling.SGLD`. Both have Leimkuhler & Matthews'
integrator.

Units can change places without changing the function, so weights of different chains are
never comparable: convergence is judged by R-hat and effective sample size of the *predictions*
at training rows, with wider limits than for a linear model (1.2 and 20).""",
    "how_approximated": """\
The posterior is approximated by independent normal weights, by Bayes by Backprop (Blundell,
Cornebise, Kavukcuoglu & Wierstra 2015), beginning at a network that Adam has trained from random
weights.

The approximation holds one mode and no correlation. Its intervals hardly widen between clusters
of data (Foong, Burt, Li & Turner 2020) and are too wide among the points: in
``examples/plot_network_gap.py`` they widen 1.9 times, those of sampled networks 5.2 times. Units
that bring less evidence than they cost are switched off (Trippe & Turner 2018): with many units
and few rows little is fitted.""",
    "network": """\
activation : {"tanh", "relu"}, default="tanh"
    Activation of the hidden units.
prior : str or CoefficientPrior, default="normal"
    Prior of weights and biases, for standardised X and y: ``"normal"``, ``"laplace"``,
    ``"student_t"`` or an instance. The scale of a weight's is divided by the root of the inputs
    to its unit and, with hidden layers, multiplied by the activation's gain (5/3 for tanh,
    sqrt(2) for relu); of classifiers that of the first layer by 1/2, that of the outputs by
    20.""",
    "noise": """\
noise_prior : str or NoisePrior, default="inverse_gamma"
    Prior of the noise, as in :class:`SGLDLinearRegression`.
noise_variance : "infer" or float, default="infer"
    A number fixes the noise variance, in squared units of y.""",
    "network_sampling": """\
step_size : float or "auto", default="auto"
    eta, in a metric in which the steepest direction has curvature 1. The default is 0.25, or
    less where minibatches would add more than 20 % to a variance.
temperature : float, default=1.0
    tau; the posterior density to the power 1 / tau is sampled. On data whose labels are
    beyond doubt, such as curated images, values below 0.1 predict better (Aitchison 2021).
batch_size : int or "auto", default="auto"
    Rows of a minibatch, drawn without replacement. By default all of up to 2,000 rows, and of
    more 2,000 or a twentieth.
n_draws : int, default=250
    Draws to keep from each chain.
n_burnin : int or "auto", default="auto"
    Steps of Adam to a mode, and as many of Langevin dynamics before the first draw: 500 with
    momentum, 2,000 without.
thin : int or "auto", default="auto"
    Steps from draw to draw: 12 with momentum, 40 without.
n_chains : int, default=4
    Chains, each from random weights of its own.
n_jobs : int or None, default=None
    Processes to share the chains between, once a run has shown that it will take more than a
    minute. The draws do not depend on it.
random_state : int, RandomState, Generator or None, default=None
    Seed of the pilots and the chains.
verbose : int, default=0
    1 shows progress on standard error: a bar if tqdm is installed, else lines of text.
{long_run}
target_ess : float or None, default=None
    Draws are made until 95 % of the predictions at up to 50 training rows have an effective sample
    size of at least this, as ``diagnose`` measures it, from a tenth of ``n_draws`` to ten times as
    many.""",
    "long_run": """\
checkpoint : str, path or None, default=None
    File that the run is written to at intervals, from which ``resume_from`` goes on. One file a
    fit: it is a parameter, as ``memory`` is a pipeline's, so that pipelines and ``clone`` pass it
    on. A file of a run that has not come to its end is not replaced.
resume_from : str, path or None, default=None
    Checkpoint to go on from, to the draws of a run that was never stopped. Data and settings must
    be as they were; ``n_draws`` may be larger.
max_time : float or None, default=None
    Seconds after which no more draws are made, what comes before them included.""",
    "network_variational": """\
step_size : float, default=0.2
    Step size of Adam at the start, in units of the standard deviations that the approximation
    begins with.
max_iter : int, default=3000
    Steps of Adam.
n_particles : int, default=4
    Draws of the weights a step; even.
batch_size : int or "auto", default="auto"
    Rows of a minibatch, drawn without replacement. By default all of up to 2,000 rows, and of
    more 200.
n_draws : int, default=1000
    Draws to keep from the approximation.
random_state : int, RandomState, Generator or None, default=None
    Seed of the pilots and the chains.
verbose : int, default=0
    1 shows progress on standard error: a bar if tqdm is installed, else lines of text.""",
    "fitted_network": """\
posterior_ : PosteriorDraws
    The draws, ``(chain, draw, parameter)``, of the weights for X and y in the units that ``fit``
    saw, with the parameters' names.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features,)
    Where X had names.""",
    "fitted_network_sampling": """\
step_size_, batch_size_, n_burnin_, thin_ : float, int
    Values that were used.
prior_ : CoefficientPrior
    The prior, with its scale as a number or one for each column.
clipped_fraction_ : float
    Share of the steps on which the gradient was ten times as long as usual, and was bounded.""",
    "fitted_network_variational": """\
elbo_, elbo_steps_ : ndarray of shape (n_points,)
    The learning curve: the evidence lower bound, up to the prior's constant.
n_iter_ : int
    Steps made.""",
}

C = TypeVar("C", bound=type)


def shared_docs(cls: C) -> C:
    """Put the shared parts into the docstring of an estimator, where it says ``{name}``."""
    doc = cls.__doc__ or ""
    for name, part in _PARTS.items():
        doc = doc.replace("    {" + name + "}", indent(part, "    "))
    cls.__doc__ = doc
    return cls
