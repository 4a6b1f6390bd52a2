from skbayes_sgld import SGLDLinearRegression

model = SGLDLinearRegression(smooth_effects={"x0": 10, "x1": 10}, random_state=0)
model.fit(data.drop(columns="y"), data["y"])
