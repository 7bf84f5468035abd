"""What `jax.jit` returns under memfit behaves as without it, in every way people use it.

That the script passes without memfit too is in `wrappers_test.py`.
"""

from conftest import SCRIPTS


def test_a_jitted_function_is_what_it_is_without_memfit(memfit):
    ran = memfit.run(SCRIPTS / "jax_jit.py")

    assert ran.code == 0, ran.stderr
    assert "wrapped by CountedFunction" in ran.stdout
