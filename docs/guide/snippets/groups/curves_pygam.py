from pygam import LinearGAM, l, s

terms = s(0, n_splines=12) + s(1, n_splines=12) + l(2) + l(3) + l(4)
model = LinearGAM(terms)
model.gridsearch(data.drop(columns="y").to_numpy(), data["y"].to_numpy(), progress=False)
