import bambi as bmb

formula = "y ~ " + " + ".join(X.columns)
model = bmb.Model(formula, X.assign(y=y), family="bernoulli")
idata = model.fit(chains=4, random_seed=0)

model.predict(idata, data=X_new)
draws = idata.posterior["p"]
probability = draws.mean(["chain", "draw"]).to_numpy()
low, high = draws.quantile([0.05, 0.95], dim=["chain", "draw"]).to_numpy()
