import gpboost as gpb
import numpy as np

X = np.column_stack([np.ones(len(data)), data.filter(like="x")])
model = gpb.GPModel(group_data=data[["group", "item"]], likelihood="gaussian")
model.fit(y=data["y"], X=X)
