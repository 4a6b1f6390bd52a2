from skbayes_sgld import SGLDLogisticRegression

model = SGLDLogisticRegression(random_state=0).fit(X, y)

probability = model.predict_proba(X_new)[:, 1]
low, high = model.predict_proba_interval(X_new, coverage=0.9)[:, 1].T
