"""Mixed models: effects that vary by group, and smooth curves, whose scales are learned.

Words: a *term* is a block of effects with one learned covariance, for the groups of one column
(:mod:`groups`) or for the bend of a curve (:mod:`smooth`). It has q *effects*, such as an intercept
and a slope, for each of L *labels*. Hyperparameters ``h`` are the coordinates of scales and
correlations (:mod:`skbayes_sgld.priors.group`). Columns of X are *numbers*, which have
coefficients, or labels, which become *codes* (:mod:`labels`).

Read in the order of a fit:

1. :mod:`rows`: an estimator with ``group_effects`` or ``smooth_effects`` reads rows here.
   :mod:`columns` knows what each column is. :mod:`blocks`, :mod:`dask_labels` and :mod:`stream` do
   this for rows out of memory and batches, and :mod:`pooled` keeps fewer of them.
2. :mod:`bind` makes the posterior of :mod:`posterior`: a linear model with the columns of the
   effects (:mod:`label_design`), and the density of the effects given their scales.
   :mod:`cautions` warns of terms about which the rows say nothing.
3. :mod:`parameterization` chooses what is sampled:

   * ``integrated``, for normal noise: h and the noise variance alone (:mod:`collapsed`, on the sums
     over rows of :mod:`working` and :mod:`gram`). Several large terms are :mod:`crossed`, and
     :mod:`crossed_fit` finds their polynomials.
   * ``by_label``, for one term and any other likelihood: all but the effects. :mod:`by_label` is
     the quadrature label by label, over :mod:`label_rows`, :mod:`by_label_polynomial` stands for it
     in the run, and :mod:`by_label_fit` finds that.
   * ``standardised``, else: all parameters, in :mod:`coordinates` about the :mod:`mode`; with few
     of them in those of :mod:`given_scales`. :mod:`cubic` may stand for the rows.

   Where effects are integrated out (:mod:`integrated`), a draw of them is made from a generator
   that is seeded by the other parameters. :mod:`polynomial` is what the polynomials share.
4. :mod:`predictor`: predictions, in which a new label draws its effects from the population.
   :mod:`report`, :mod:`shrinkage` and :mod:`group_density` are tables, displays, and groups that
   are left out.
"""
