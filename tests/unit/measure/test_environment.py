import pytest

from memfit.measure.environment import read_settings


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "MALLOC_TRIM_THRESHOLD_",
        "PYTHONMALLOC",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TF_CPU_ALLOCATOR_USE_BFC",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_MKL_ALLOC_MAX_BYTES",
        "TF_USE_LEGACY_KERAS",
        "TF_XLA_FLAGS",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    ],
)
def test_what_sets_an_allocator_is_kept(name):
    assert read_settings({name: "1"}) == {name: "1"}


def test_only_what_bears_on_memory_is_kept_in_order_of_names():
    environment = {
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5",
        "HOME": "/root",
        "MALLOC_ARENA_MAX": "2",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "MY_TF_GPU_NAME": "mine",
        "KERAS_BACKEND": "jax",
        "TF_GPU_ALLOCATOR": "cuda_malloc_async",
    }

    settings = read_settings(environment)

    assert list(settings.items()) == [
        ("KERAS_BACKEND", "jax"),
        ("MALLOC_ARENA_MAX", "2"),
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5"),
    ]
