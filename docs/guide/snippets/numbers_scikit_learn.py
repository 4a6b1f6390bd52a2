from scipy.stats import norm
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)

mean, sd = model.predict(X_new, return_std=True)
low, high = norm.interval(0.9, mean, sd)
