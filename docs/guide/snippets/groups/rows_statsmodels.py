import statsmodels.formula.api as smf

formula = "y ~ x0 + x1 + x2 + x3 + x4"
found = smf.mixedlm(formula, data, groups="group").fit()
