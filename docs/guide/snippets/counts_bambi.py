import bambi as bmb

formula = "y ~ " + " + ".join(X.columns)
model = bmb.Model(formula, X.assign(y=y), family="negativebinomial")
idata = model.fit(chains=4, random_seed=0)

model.predict(idata, kind="response", data=X_new, random_seed=0)
draws = idata.posterior_predictive["y"]
low, high = draws.quantile([0.05, 0.95], dim=["chain", "draw"]).to_numpy()
