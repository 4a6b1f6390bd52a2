from mapie.regression import SplitConformalRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

X_fit, X_kept, y_fit, y_kept = train_test_split(X, y, test_size=0.25, random_state=0)
model = SplitConformalRegressor(LinearRegression(), confidence_level=0.9, prefit=False)
model.fit(X_fit, y_fit).conformalize(X_kept, y_kept)

_, intervals = model.predict_interval(X_new)
low, high = intervals[:, :, 0].T
