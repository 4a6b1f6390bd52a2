from skbayes_sgld import SGLDNegativeBinomialRegressor

model = SGLDNegativeBinomialRegressor(random_state=0).fit(X, y)

low, high = model.predict_interval(X_new, coverage=0.9).T
