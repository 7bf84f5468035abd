"""`tf.function` under memfit behaves as without it, in every way people use it.

That the script passes without memfit too is in `wrappers_test.py`.
"""

from conftest import SCRIPTS


def test_a_tf_function_is_what_it_is_without_memfit(memfit):
    ran = memfit.run(SCRIPTS / "tf_function.py")

    assert ran.code == 0, ran.stderr
    assert ran.stdout == "error NameError\n"
    assert ran.recording.inside[-1].progress.calls >= 7
