import jax
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
numpyro.set_host_device_count(4)
subject, labels = data["Subject"].factorize()
days, y = data["Days"].to_numpy(), data["Reaction"].to_numpy()
half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))


def program():
    level = numpyro.sample("level", dist.ImproperUniform(dist.constraints.real, (), ()))
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.5 * y.std() / days.std()))
    variance = numpyro.sample("variance", dist.InverseGamma(1e-3, 1e-3 * y.var()))
    with numpyro.plate("scales", 2):
        unit = numpyro.sample("unit", half_t)
    sd = numpyro.deterministic("sd", unit * np.array([y.std(), y.std() / days.std()]))
    factor = sd[:, None] * numpyro.sample("correlation", dist.LKJCholesky(2, 2.0))
    with numpyro.plate("subjects", len(labels)):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    effects = z @ factor.T
    mean = level + effects[subject, 0] + (slope + effects[subject, 1]) * days
    numpyro.sample("y", dist.Normal(mean, variance**0.5), obs=y)


mcmc = MCMC(NUTS(program), num_warmup=1000, num_samples=1000, num_chains=4, progress_bar=False)
mcmc.run(jax.random.key(0))
