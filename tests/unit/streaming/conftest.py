"""What all tests of streams have in common."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """What is read once from front to back is kept here, not in the cache of who runs the tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
