import bambi as bmb

model = bmb.Model("Reaction ~ Days + (Days | Subject)", data)
idata = model.fit(chains=4, random_seed=0)
