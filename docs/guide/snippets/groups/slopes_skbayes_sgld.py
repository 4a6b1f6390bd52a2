from skbayes_sgld import SGLDLinearRegression

terms = {"Subject": ["intercept", "Days"]}
model = SGLDLinearRegression(group_effects=terms, random_state=0)
model.fit(data[["Days", "Subject"]], data["Reaction"])
