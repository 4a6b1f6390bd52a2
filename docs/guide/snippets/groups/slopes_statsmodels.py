import statsmodels.formula.api as smf

model = smf.mixedlm("Reaction ~ Days", data, groups="Subject", re_formula="~Days")
found = model.fit()
