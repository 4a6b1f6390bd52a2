from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

formula, term = "y ~ x0 + x1 + x2 + x3 + x4", {"group": "0 + C(group)"}
found = BinomialBayesMixedGLM.from_formula(formula, term, data).fit_vb()
