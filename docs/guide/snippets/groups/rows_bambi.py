import bambi as bmb

formula = "y ~ x0 + x1 + x2 + x3 + x4 + (1 | group)"
model = bmb.Model(formula, data, family="gaussian")
idata = model.fit(chains=4, random_seed=0)
