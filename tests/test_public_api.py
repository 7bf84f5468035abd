"""What is public is listed, and what is listed is there."""

import memfit


def test_all_is_sorted_and_importable():
    assert memfit.__all__ == sorted(memfit.__all__)
    for name in memfit.__all__:
        assert getattr(memfit, name).__module__.startswith("memfit.")


def test_everything_public_in_the_namespace_is_listed():
    from memfit import errors

    own = {name for name in vars(errors) if name.endswith("Error")}

    assert own <= set(memfit.__all__)
    assert set(dir(memfit)) == set(memfit.__all__)


def test_an_unknown_name_is_an_attribute_error():
    import pytest

    with pytest.raises(AttributeError, match="no attribute 'Monitor'"):
        memfit.Monitor  # noqa: B018
