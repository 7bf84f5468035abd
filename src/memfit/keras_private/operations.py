"""Every call of a layer or operation, as it happens."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from memfit.keras_private.names import relies_on

# Is told an operation and what it returned.
Listener = Callable[[Any, Any], None]


@relies_on("keras.src.ops.operation.Operation")
@contextlib.contextmanager
def listening_to_calls(listen: Listener) -> Iterator[None]:
    """Tells `listen` of every operation that ends, the innermost first.

    Layers call `Operation.__call__` as well.
    """
    from keras.src.ops.operation import Operation

    original = Operation.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(self, *args, **kwargs)
        listen(self, outputs)
        return outputs

    Operation.__call__ = call
    try:
        yield
    finally:
        Operation.__call__ = original
