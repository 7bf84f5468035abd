"""Under `memfit run` objects of the script run no code that they would not run without it."""

import pytest

from conftest import BACKENDS, SCRIPTS
from memfit.record.evidence import Look


@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_that_count_calls_of_their_code_count_none(memfit, backend):
    ran = memfit.run(SCRIPTS / "spies.py", backend=backend)

    assert ran.stdout.splitlines()[0] == "{}"
    assert ran.recording.of(Look)
