import gpboost as gpb
import numpy as np

X = np.column_stack([np.ones(len(data)), data.filter(like="x")])
model = gpb.GPModel(group_data=data["group"], likelihood="gaussian")
model.fit(y=data["y"], X=X)
