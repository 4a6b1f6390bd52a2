import statsmodels.api as sm

found = sm.Logit(y, sm.add_constant(X)).fit(disp=0)

predicted = found.get_prediction(sm.add_constant(X_new, has_constant="add"))
table = predicted.summary_frame(alpha=0.1)
probability, low, high = table["predicted"], table["ci_lower"], table["ci_upper"]
