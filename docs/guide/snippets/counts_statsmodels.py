import statsmodels.api as sm

found = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0, maxiter=500)

predicted = found.get_distribution(sm.add_constant(X_new, has_constant="add"))
mean = predicted.mean()
low, high = predicted.interval(0.9)
