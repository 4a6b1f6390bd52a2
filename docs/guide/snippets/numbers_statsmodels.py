import statsmodels.api as sm

found = sm.OLS(y, sm.add_constant(X)).fit()

predicted = found.get_prediction(sm.add_constant(X_new, has_constant="add"))
table = predicted.summary_frame(alpha=0.1)
mean, low, high = table["mean"], table["obs_ci_lower"], table["obs_ci_upper"]
