from mapie.classification import SplitConformalClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X_fit, X_kept, y_fit, y_kept = train_test_split(X, y, test_size=0.25, random_state=0)
logistic = make_pipeline(StandardScaler(), LogisticRegression())
model = SplitConformalClassifier(logistic, confidence_level=0.9, prefit=False)
model.fit(X_fit, y_fit).conformalize(X_kept, y_kept)

_, sets = model.predict_set(X_new)
