from skbayes_sgld import SGLDLinearRegression

model = SGLDLinearRegression(group_effects={"group": "intercept"}, random_state=0)
model.fit(data.drop(columns="y"), data["y"])
