"""What every process that runs tests does once."""

import gc


def pytest_collection_finish(session):
    """Keep modules and tests, which stay to the end, from every search for garbage."""
    gc.collect()
    gc.freeze()
