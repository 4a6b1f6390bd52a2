"""Modules loaded by a process that imports the package, and then every module of it.

A process of its own, since this one has imported most of it; one for all tests that ask, since
imports cost seconds.
"""

import json
import subprocess
import sys
from functools import cache

CODE = """
import importlib, json, pkgutil, sys
# which take others along by themselves, such as arviz_base and pyarrow
import arviz_stats.base, pandas, sklearn.linear_model

class Note:
    tried = set()  # attempts are noted too, since a library need not be installed here
    def find_spec(self, name, path=None, target=None):
        self.tried.add(name.partition(".")[0])

def registries():
    return sorted({(id(value), *sorted(value)) for module in list(sys.modules.values())
                   if module.__name__.startswith("skbayes_sgld")
                   for value in vars(module).values() if isinstance(value, Registry)})

before = set(sys.modules)
sys.meta_path.insert(0, Note())
import skbayes_sgld
from skbayes_sgld._components import Registry
found = {"loaded": sorted(set(sys.modules) - before), "registries": registries()}
public = "datasets diagnostics likelihoods metrics plotting posterior priors sampling".split()
found["public"] = [name for name in public if vars(getattr(skbayes_sgld, name))]
for module in pkgutil.walk_packages(skbayes_sgld.__path__, "skbayes_sgld."):
    importlib.import_module(module.name)
found |= {"all loaded": sorted(Note.tried | set(sys.modules) - before)}
print(json.dumps(found | {"all registries": registries()}))
"""


@cache
def imports():
    """Modules and registries after the package's import, and after that of all its modules.

    ``loaded`` and ``all loaded`` are names of modules, the latter also of what was looked for;
    ``public`` those of modules that are attributes of the package, asked for after its import;
    ``registries`` and ``all registries`` lists of an identity and the names in it.
    """
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
