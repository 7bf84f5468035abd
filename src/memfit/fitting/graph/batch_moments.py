"""BatchNormalization in two halves: moments of a micro-batch, a call with those of the batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memfit.fitting.graph.flatten import FlatCall
from memfit.keras_private.graph import LayerStandIn
from memfit.keras_private.layers import batch_moments, get_mask, moments_given


@dataclass(frozen=True, eq=False, slots=True)
class Normalisation:
    """One call of a BatchNormalization layer.

    Attributes:
        call: The call.
        of_micro_batches: What names the weights, means and variances of the micro-batches, a row
            for each.
        of_batch: What names mean and variance of the whole batch.
    """

    call: FlatCall
    of_micro_batches: tuple[object, object, object] = field(
        default_factory=lambda: (object(), object(), object())
    )
    of_batch: tuple[object, object] = field(default_factory=lambda: (object(), object()))

    @property
    def layer(self) -> Any:
        """The layer that is called."""
        return self.call.operation

    def first_half(self) -> FlatCall:
        """Returns a call that makes the moments of a micro-batch."""
        call = self.call
        return FlatCall(
            _Moments(self.layer), call.arguments, call.input_tensors, self.of_micro_batches
        )

    def second_half(self) -> FlatCall:
        """Returns a call that normalises a micro-batch by the moments of the batch."""
        call = self.call
        arguments = _WithMoments(call.arguments, self.of_batch)
        return FlatCall(
            _Normalise(self.layer), arguments, (*call.input_tensors, *self.of_batch), call.outputs
        )

    def join(self, tensors: dict[int, Any]) -> None:
        """Makes the moments of the batch from those of the micro-batches."""
        from keras import ops

        count, means, variances = (tensors[id(one)] for one in self.of_micro_batches)
        share = ops.divide_no_nan(count, ops.sum(count))
        mean = ops.sum(share * means, axis=0)
        # Sums of squares would lose digits; so each micro-batch counts from its own mean.
        variance = ops.sum(share * (variances + ops.square(means - mean)), axis=0)
        for name, value in zip(self.of_batch, (mean, variance), strict=True):
            tensors[id(name)] = value

    def move_statistics(self, tensors: Mapping[int, Any]) -> None:
        """Moves the layer's statistics by the batch, as a call with the whole batch would."""
        one_sample = tensors[id(self.call.input_tensors[0])][:1]
        with moments_given(self.layer, *(tensors[id(one)] for one in self.of_batch)):
            self.layer.call(one_sample, training=True)


class _Moments:
    """The first half of a layer: it reads no variables."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def __call__(self, inputs: Any, mask: Any = None, **_: Any) -> tuple[Any, Any, Any]:
        import keras
        from keras import ops

        layer = self._layer
        if mask is None:
            mask = get_mask(inputs)
        # As the layer sees it: in its own precision first, then in enough for sums.
        inputs = layer.dtype_policy.convert_input(inputs, layer.autocast, layer.input_dtype)
        inputs = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        mean, variance = batch_moments(layer, inputs, mask)
        counted = ops.shape(inputs)[0] if mask is None else ops.sum(ops.cast(mask, inputs.dtype))
        count = ops.cast(counted, inputs.dtype)
        return (
            ops.reshape(count, (1, 1)),
            ops.reshape(mean, (1, -1)),
            ops.reshape(variance, (1, -1)),
        )


class _Normalise(LayerStandIn):
    """The second half of a layer: all that it does, with moments that it is told."""

    def __call__(self, inputs: Any, *args: Any, moments: tuple[Any, Any], **kwargs: Any) -> Any:
        with moments_given(self.layer, *moments):
            return self.layer(inputs, *args, **kwargs)


class _WithMoments:
    """The arguments of a call, and the moments of the batch."""

    def __init__(self, arguments: Any, of_batch: tuple[object, object]) -> None:
        self._arguments = arguments
        self._of_batch = of_batch

    def fill_in(self, tensors: Mapping[int, Any]) -> Any:
        args, kwargs = self._arguments.fill_in(tensors)
        mean, variance = self._of_batch
        return args, {**kwargs, "moments": (tensors[id(mean)], tensors[id(variance)])}
