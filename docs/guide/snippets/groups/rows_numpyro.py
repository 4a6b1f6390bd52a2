import jax
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
numpyro.set_host_device_count(4)
group, labels = data["group"].factorize()
X, y = data.filter(like="x").to_numpy(), data["y"].to_numpy()
half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))


def program():
    level = numpyro.sample("level", dist.ImproperUniform(dist.constraints.real, (), ()))
    with numpyro.plate("columns", X.shape[1]):
        coef = numpyro.sample("coef", dist.Normal(0.0, 2.5 * y.std() / X.std(axis=0)))
    variance = numpyro.sample("variance", dist.InverseGamma(1e-3, 1e-3 * y.var()))
    sd = numpyro.deterministic("sd", y.std() * numpyro.sample("unit", half_t))
    with numpyro.plate("groups", len(labels)):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    effects = sd * z
    mean = level + X @ coef + effects[group]
    numpyro.sample("y", dist.Normal(mean, variance**0.5), obs=y)


mcmc = MCMC(NUTS(program), num_warmup=1000, num_samples=1000, num_chains=4, progress_bar=False)
mcmc.run(jax.random.key(0))
