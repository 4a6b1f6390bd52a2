import gpboost as gpb
import numpy as np

X = np.column_stack([np.ones(len(data)), data["Days"]])
slopes = {"group_rand_coef_data": X[:, 1], "ind_effect_group_rand_coef": [1]}
model = gpb.GPModel(group_data=data["Subject"], **slopes)
model.fit(y=data["Reaction"], X=X)
