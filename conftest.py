"""A home of its own for every process that runs tests, from before the first import."""

import atexit
import os
import shutil
import tempfile

collect_ignore = ["tests/maintainer"]  # runs where it is named, as by `make test-maintainer`
collect_ignore_glob = ["docs/guide/snippets/*"]  # code of a page, which needs the reader's data

# Libraries keep caches below the user's home: ArviZ a stamp of the day, for which two processes
# race, and Matplotlib its fonts. Processes that tests start inherit these variables.
_HOME = tempfile.mkdtemp(prefix="skbayes_sgld-tests-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ.update(HOME=_HOME, USERPROFILE=_HOME, LOCALAPPDATA=_HOME, APPDATA=_HOME)
for name in [name for name in os.environ if name.startswith("XDG_") or name == "MPLCONFIGDIR"]:
    os.environ.pop(name, None)
