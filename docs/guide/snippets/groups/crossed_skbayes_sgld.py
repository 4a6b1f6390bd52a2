from skbayes_sgld import SGLDLinearRegression

terms = {"group": "intercept", "item": "intercept"}
model = SGLDLinearRegression(group_effects=terms, random_state=0)
model.fit(data.drop(columns="y"), data["y"])
