"""The proof: what is the same is told so, what couples samples is named, and nothing is changed.

Run by tests/backends/test_each_backend.py. What Keras itself has is tried in enumerated_test.py.
"""

import random

import keras
import numpy as np
import pytest
from keras import layers, ops

from conftest import compile_options
from memfit.fitting.levers.micro_batches import describe_split
from memfit.fitting.proof.proof import Lever, prove
from memfit.fitting.proof.verdict import Outcome

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)
ROWS = 20


def once_elsewhere(test):
    """Where JAX runs nothing else than the others do: compiling takes it some seconds."""
    return pytest.mark.long(test) if BACKEND == "jax" else test


def noise(*shape, rows=ROWS):
    return RNG.standard_normal((rows, *shape)).astype("float32")


def compiled(model, loss="mse", **options):
    model.compile(options.pop("optimizer", "adam"), loss, **compile_options(**options))
    return model


def chain(*between, units=2, **options):
    """Dense layers, and what is given between them."""
    parts = [keras.Input((4,)), layers.Dense(9, "tanh"), *between, layers.Dense(units)]
    return compiled(keras.Sequential(parts), **options)


def proved(model, x=None, y=None, weights=None, **how):
    batch = (noise(4) if x is None else x, noise(2) if y is None else y, weights)
    return prove(model, batch, describe_split(model, None), **how)


def assert_same(*args, **how):
    verdict = proved(*args, **how)
    assert verdict.outcome is Outcome.SAME, verdict.why
    return verdict


def assert_refused(culprit, *args, outcome=Outcome.DIFFERENT, **how):
    verdict = proved(*args, **how)
    assert verdict.outcome is outcome, str(verdict)
    assert culprit in verdict.why
    return verdict


class MinusMean(layers.Layer):
    """Takes the mean of the batch away, times a share."""

    def __init__(self, share=1.0, **how):
        super().__init__(**how)
        self.share = share

    def call(self, x):
        return x - self.share * ops.mean(x, axis=0, keepdims=True)


class Shuffled(layers.Layer):
    """Gives each sample half of its neighbour."""

    def call(self, x):
        return 0.5 * (x + ops.roll(x, 1, axis=0))


class Adds(layers.Layer):
    """Adds a loss."""

    def __init__(self, function, **how):
        super().__init__(**how)
        self.function = function

    def call(self, x):
        self.add_loss(self.function(x))
        return x


class Counts(layers.Layer):
    """Counts its calls in a variable."""

    def build(self, shape):
        self.seen = self.add_weight(name="seen", initializer="zeros", trainable=False)

    def call(self, x, training=False):
        if training:
            self.seen.assign(self.seen + 1.0)
        return x


# ---- the same


def test_a_model_that_treats_each_sample_by_itself_is_the_same():
    verdict = assert_same(chain(layers.LayerNormalization(), metrics=["mae"]))

    assert verdict.num_rows == ROWS
    assert str(verdict).startswith("proved on 20 rows of the first batch in ")


def test_what_a_training_has_traced_is_not_taken_for_the_steps_of_a_proof():
    """JAX finds traces by the form of the state; here the optimizer has that of its stand-in."""
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    model = chain(layers.Dropout(0.5), optimizer=optimizer)
    x, y = noise(4), noise(2)
    model.fit(x, y, batch_size=ROWS, verbose=0)

    assert_same(model, x, y)


def test_a_training_takes_nothing_of_what_a_proof_has_traced():
    losses = []
    for proves in (False, True):
        keras.utils.set_random_seed(2)
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        model = chain(layers.Dropout(0.5), optimizer=optimizer)
        x, y = (np.random.default_rng(1).standard_normal((ROWS, n)) for n in (4, 2))
        model.evaluate(x, y, verbose=0)
        if proves:
            assert_same(model, x, y)
        history = model.fit(x, y, batch_size=ROWS, epochs=3, shuffle=False, verbose=0)
        losses.append(history.history["loss"])

    assert losses[0] == losses[1]


@once_elsewhere
def test_weights_of_samples_and_of_losses_are_the_same():
    assert_same(chain(loss_weights=0.3), weights=np.abs(noise())[:, None][:, 0])


@once_elsewhere
def test_keys_of_attention_and_biases_before_a_norm_have_no_gradient_and_are_the_same():
    x = keras.Input((5, 4))
    h = layers.MultiHeadAttention(2, 2)(x, x)
    h = layers.LayerNormalization()(layers.Dense(3)(h))
    model = compiled(keras.Model(x, layers.Dense(2)(layers.Flatten()(h))))

    assert_same(model, noise(5, 4))


def test_added_means_and_regularizers_are_the_same():
    dense = layers.Dense(6, kernel_regularizer="l2", activity_regularizer="l2")

    assert_same(chain(dense, Adds(lambda x: ops.mean(ops.square(x)))))


def test_random_layers_draw_the_same_for_a_sample_whole_and_cut():
    assert_same(chain(layers.Dropout(0.4), layers.GaussianNoise(0.3), layers.GaussianDropout(0.2)))


class DropsOnce(layers.Layer):
    """Drops the same for all samples of a batch."""

    def __init__(self):
        super().__init__()
        self.generator = keras.random.SeedGenerator(3)

    def call(self, x):
        return x * keras.random.uniform((), seed=self.generator)


def test_a_draw_that_is_one_for_the_batch_is_the_same_and_said():
    verdict = assert_same(chain(DropsOnce()))

    assert verdict.draws_once
    assert "drawn once a batch are drawn once a micro-batch" in str(verdict)


@once_elsewhere
def test_what_is_no_number_in_both_is_the_same():
    some, all_ = noise(4), noise(4)
    some[3, 1] = np.nan
    all_[:, 1] = np.nan

    assert_same(chain(metrics=["mae"]), some)
    assert_refused("MinusMean", chain(MinusMean()), some)
    assert_same(chain(metrics=["mae"]), all_)


@once_elsewhere
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_proved_in_full_precision(policy):
    model = chain(layers.Dense(5, "relu", dtype=policy), layers.LayerNormalization(dtype=policy))

    assert_same(model)

    assert model.layers[1].compute_dtype == policy.removeprefix("mixed_")


@once_elsewhere
@pytest.mark.parametrize("rows", [2, 3, 5])
def test_batches_of_few_rows(rows):
    x, y = noise(4, rows=rows), noise(2, rows=rows)

    assert assert_same(chain(), x, y).num_rows == rows
    assert_refused("MinusMean", chain(MinusMean()), x, y)


def test_a_batch_of_one_row_cannot_be_cut():
    assert_same(chain(MinusMean()), noise(4, rows=1), noise(2, rows=1))


# ---- coupled


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_a_layer_that_uses_the_mean_of_the_batch_is_named(share):
    assert_refused("'centre' (MinusMean)", chain(MinusMean(share, name="centre")))


@once_elsewhere
def test_a_layer_that_mixes_samples_is_named_inside_others():
    inner = keras.Sequential([layers.Dense(6), Shuffled(name="mixer"), layers.Dense(6)])

    assert_refused("'mixer' (Shuffled)", chain(inner))


def test_a_functional_operation_over_the_batch_is_named():
    x = keras.Input((4,))
    h = layers.Dense(6)(x)
    model = compiled(keras.Model(x, layers.Dense(2)(h - ops.mean(h, axis=0, keepdims=True))))

    verdict = assert_refused("(Mean) mixes the samples of a batch", model)
    assert "the operation 'mean" in verdict.why


def contrastive(y_true, y_pred):
    """Compares all samples of a batch with each other."""
    likeness = ops.matmul(y_pred, ops.transpose(y_pred))
    return ops.logsumexp(likeness, axis=-1) - ops.diagonal(likeness)


def spread(y_true, y_pred):
    """A number for the batch."""
    return ops.mean(ops.square(y_pred - y_true)) / (1.0 + ops.var(y_true))


@pytest.mark.parametrize("loss", [contrastive, spread], ids=lambda one: one.__name__)
def test_a_loss_that_compares_samples_is_named(loss):
    assert_refused(f"the loss '{loss.__name__}'", chain(loss=loss))


@once_elsewhere
def test_the_loss_of_one_of_several_outputs_is_named_with_its_output():
    x = keras.Input((4,))
    h = layers.Dense(6, "tanh")(x)
    outputs = {name: layers.Dense(2, name=name)(h) for name in ("first", "second")}
    model = compiled(keras.Model(x, outputs), {"first": "mse", "second": spread})

    assert_refused("of the output 'second'", model, y={"first": noise(2), "second": noise(2)})


class OwnLoss(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(contrastive(y, y_pred)) + ops.mean(ops.square(y - y_pred))


@once_elsewhere
def test_compute_loss_that_compares_samples_is_named():
    model = compiled(OwnLoss(), None)
    model(noise(4))

    assert_refused("compute_loss() of OwnLoss", model)


def balance(x):
    """As mixtures of experts balance their load."""
    share = ops.mean(ops.softmax(x), axis=0)
    return 0.01 * ops.sum(share * share) * share.shape[0]


@pytest.mark.parametrize(
    "function", [lambda x: ops.sum(ops.square(x)), balance], ids=["sum", "balance"]
)
def test_an_added_loss_that_is_no_mean_over_samples_is_named(function):
    assert_refused("'extra' (Adds)", chain(Adds(function, name="extra")))


def test_an_added_loss_is_found_by_its_gradient_where_its_value_hardly_differs():
    assert_refused("'extra' (Adds)", chain(Adds(lambda x: balance(0.01 * x), name="extra")))


def test_a_layer_that_counts_its_calls_is_named_with_its_variable():
    assert_refused("'tally' (Counts) with its variable 'seen'", chain(Counts(name="tally")))


class HoldsAnother(layers.Layer):
    """Counts in a variable that Keras takes no note of: it is inside an object of the user's."""

    class Memory:
        pass

    def build(self, shape):
        self.memory = self.Memory()
        self.memory.total = keras.Variable(0.0, name="total", trainable=False)

    def call(self, x):
        self.memory.total.assign(self.memory.total + ops.sum(ops.square(x)) * 0.0 + 1.0)
        return x


@pytest.mark.skipif(BACKEND == "jax", reason="JAX knows the variables of the model only")
def test_a_variable_that_keras_does_not_know_of_is_found():
    assert_refused("with its attribute 'memory'", chain(HoldsAnother()))


class CountsNatively(layers.Layer):
    """Counts in a variable of the framework's own."""

    def build(self, shape):
        if BACKEND == "torch":
            import torch

            self.native = torch.zeros(())
        else:
            import tensorflow as tf

            self.native = tf.Variable(0.0)

    def call(self, x):
        if BACKEND == "torch":
            self.native += 1
        else:
            self.native.assign_add(1.0)
        return x


@pytest.mark.skipif(BACKEND == "jax", reason="JAX has no variables")
def test_a_variable_of_the_framework_is_found():
    assert_refused("with its attribute 'native'", chain(CountsNatively()))


class CountsInPython(layers.Layer):
    calls = 0

    def call(self, x):
        self.calls = self.calls + 1
        self.last_rows = x.shape[0]
        return x


def test_calls_counted_in_an_attribute_are_found_where_each_step_runs_the_code():
    model = chain(CountsInPython(), run_eagerly=True)
    model.layers[1].calls = 0

    assert_refused("with its attribute 'calls'", model)


class LargestSum(keras.metrics.Metric):
    """Sums the largest error of each batch."""

    def __init__(self, name="largest"):
        super().__init__(name=name)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(ops.max(ops.abs(y_true - y_pred)))

    def result(self):
        return ops.convert_to_tensor(self.total)


def test_a_metric_that_is_no_mean_over_samples_is_told_of_the_batch_at_once():
    assert assert_same(chain(metrics=[LargestSum()])).collects
    assert assert_same(chain(metrics=[keras.losses.dice])).collects
    assert not assert_same(chain(metrics=["mae"])).collects


class Quadratic(layers.Layer):
    """An order-dependent layer: each sample is scaled by its place in the batch."""

    def call(self, x):
        places = ops.cumsum(ops.ones_like(x), axis=0)
        return x * (1.0 + 0.1 * places)


@once_elsewhere
def test_a_layer_by_the_place_in_the_batch_is_named():
    assert_refused("(Quadratic)", chain(Quadratic()))


class MixesSometimes(layers.Layer):
    """Mixes samples by a share that is mostly none."""

    def __init__(self):
        super().__init__()
        self.generator = keras.random.SeedGenerator(1)

    def call(self, x):
        drawn = keras.random.uniform((), seed=self.generator)
        mixes = ops.cast(drawn < 0.4, x.dtype)
        return x - mixes * ops.mean(x, axis=0, keepdims=True)


def test_what_couples_with_some_random_numbers_only_is_found():
    assert_refused("(MixesSometimes)", chain(MixesSometimes()))


# ---- not clear


class DrawsByItself(layers.Layer):
    def call(self, x):
        if BACKEND == "torch":
            import torch

            return x + torch.randn_like(x)
        if BACKEND == "tensorflow":
            import tensorflow as tf

            return x + tf.random.normal(tf.shape(x))
        return x + np.random.default_rng().standard_normal(x.shape[-1]).astype("float32")


@pytest.mark.skipif(BACKEND == "jax", reason="JAX draws while it compiles, once for all steps")
def test_numbers_that_keras_does_not_draw_are_not_clear_and_the_layer_is_named():
    assert_refused(
        "the layer 'own' (DrawsByItself) draws random numbers",
        chain(DrawsByItself(name="own")),
        outcome=Outcome.UNCLEAR,
    )


@once_elsewhere
def test_gradients_that_are_zero_are_not_clear():
    model = compiled(keras.Sequential([keras.Input((4,)), layers.Dense(2, use_bias=False)]))

    verdict = assert_refused(
        "all gradients of 20 rows of the first batch are zero",
        model,
        np.zeros((ROWS, 4), "float32"),
        outcome=Outcome.UNCLEAR,
    )

    assert 'allow=("unverified",)' in verdict.why


# ---- inputs of all kinds


@once_elsewhere
def test_nested_inputs_and_outputs_some_without_a_loss():
    left, right = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    both = layers.Concatenate()([layers.Dense(5)(left), layers.Dense(5)(right)])
    outputs = [layers.Dense(2)(both), layers.Dense(3)(both)]
    by_name = compiled(keras.Model({"left": left, "right": right}, outputs), ["mse", None])
    listed = compiled(keras.Model([left, right], outputs), ["mse", "mae"])
    y = [noise(2), noise(3)]

    assert_same(by_name, {"left": noise(4), "right": noise(3)}, y)
    assert_same(listed, [noise(4), noise(3)], y, [np.abs(noise()), np.abs(noise())])


@once_elsewhere
def test_whole_numbers_and_truth_values():
    numbers, truths = keras.Input((3,), dtype="int32"), keras.Input((3,), dtype="bool")
    embedded = layers.Flatten()(layers.Embedding(9, 2)(numbers))
    out = layers.Dense(4)(layers.Concatenate()([embedded, ops.cast(truths, "float32")]))
    model = compiled(
        keras.Model([numbers, truths], out),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    x = [RNG.integers(0, 9, (ROWS, 3)).astype("int32"), noise(3) > 0]

    assert_same(model, x, RNG.integers(0, 4, ROWS))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow has text")
def test_text():
    x = keras.Input((), dtype="string")
    found = layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")(x)
    model = compiled(keras.Model(x, layers.Dense(2)(found)))

    assert_same(model, np.array(["a", "b", "c", "a"] * 5))


class Autoencoder(keras.Model):
    """Has its loss of its own, no targets, and no configuration to be made from."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.dense = layers.Dense(4)

    def call(self, x):
        out = self.dense(x)
        self.add_loss(self.function(ops.square(out - x)))
        return out


def test_a_model_without_targets():
    models = [compiled(Autoencoder(one), None) for one in (ops.mean, ops.sum)]
    x = noise(4)
    for one in models:
        one(x)

    verdicts = [prove(one, (x, None, None), describe_split(one, None)) for one in models]

    assert verdicts[0].is_same, verdicts[0].why
    assert "(Autoencoder)" in verdicts[1].why


@once_elsewhere
def test_weights_for_each_step_of_a_sequence():
    model = compiled(keras.Sequential([keras.Input((5, 4)), layers.GRU(3, return_sequences=True)]))

    assert_same(model, noise(5, 4), noise(5, 3), np.abs(noise(5)))


class FailsEagerly(layers.Layer):
    def call(self, x):
        if BACKEND == "tensorflow":
            import tensorflow as tf

            if tf.executing_eagerly():
                raise RuntimeError("not made for eager steps")
        return x


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only there proofs run otherwise than `fit`")
def test_a_model_that_cannot_run_eagerly_is_proved_in_a_graph():
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2)(layers.Dropout(0.3)(FailsEagerly()(x))))
    model.compile("adam", "mse", run_eagerly=False)

    assert_same(model)


class NeedsWholeBatches(layers.Layer):
    def call(self, x):
        return ops.reshape(ops.reshape(x, (4, -1, x.shape[-1])), (-1, x.shape[-1]))

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


def test_a_model_that_raises_when_batches_are_cut_is_refused_with_its_error():
    verdict = assert_refused("", chain(NeedsWholeBatches()))

    assert "cannot be cut" in verdict.why


def test_on_jax_models_may_run_eagerly():
    if BACKEND != "jax":
        pytest.skip("there it is the usual way")

    assert_same(chain(run_eagerly=True))


class LastRow(keras.metrics.Metric):
    """Tells of the last sample only."""

    def __init__(self):
        super().__init__(name="last")
        self.value = self.add_weight(name="value", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.value.assign(ops.sum(ops.abs(y_true - y_pred)[-1]))

    def result(self):
        return ops.convert_to_tensor(self.value)


@once_elsewhere
def test_a_metric_that_depends_on_the_order_of_samples_is_no_reason_to_refuse():
    assert_same(chain(metrics=[LastRow()]))


@pytest.mark.skipif(BACKEND != "torch", reason="modules of torch")
def test_modules_of_torch():
    import torch

    def wrapped(*modules):
        wrapper = layers.TorchModuleWrapper(torch.nn.Sequential(*modules), output_shape=(None, 5))
        return chain(wrapper)

    assert_same(wrapped(torch.nn.Linear(9, 5), torch.nn.LayerNorm(5)))
    assert_refused("TorchModuleWrapper", wrapped(torch.nn.Linear(9, 5), torch.nn.BatchNorm1d(5)))
    assert_refused(
        "TorchModuleWrapper",
        wrapped(torch.nn.Linear(9, 5), torch.nn.Dropout(0.5)),
        outcome=Outcome.UNCLEAR,
    )


# ---- the model is as it was


class HasMuch(keras.Model):
    """Keeps an optimizer, variables and Python objects of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(6, "tanh"), layers.Dense(2)
        self.noise, self.drop = layers.GaussianNoise(0.1), layers.Dropout(0.2)
        self.other_optimizer = keras.optimizers.Adam()
        self.seen, self.names = [], {"calls": 0}

    def call(self, x, training=False):
        self.seen.append(1)
        self.names["calls"] += 1
        hidden = self.first(x)
        self.add_loss(ops.mean(hidden))
        return self.second(self.drop(self.noise(hidden, training=training), training=training))


def everything(model):
    """All that one can see of a model and of what it draws from."""
    variables = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    variables += [*model.other_optimizer.variables]
    return {
        "values": [ops.convert_to_numpy(one).tolist() for one in variables],
        "attributes": {name: id(value) for name, value in vars(model).items()},
        "layers": [sorted(vars(one)) for one in model.layers],
        "trainable": [one.trainable for one in model.layers],
        "kept": (list(model.seen), dict(model.names)),
        "python": random.getstate(),
        "numpy": str(np.random.get_state()),
        "framework": str(framework_state()),
        "functions": (model.train_function, model.test_function, model.predict_function),
        "losses": len(model.losses),
        "settings": (model.run_eagerly, model.steps_per_execution, model.stop_training),
    }


def framework_state():
    if BACKEND == "torch":
        import torch

        return torch.get_rng_state().tolist()
    return None


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_as_it_was(fails):
    model = compiled(HasMuch(), metrics=["mae", keras.metrics.AUC()], optimizer="rmsprop")
    x, y = noise(4), (noise(2) > 0).astype("float32")
    model.fit(x, y, batch_size=ROWS, verbose=0)
    model.other_optimizer.build(model.trainable_variables)
    before = everything(model)

    if fails:
        assert "KeyError" in prove(model, (x, y, None), Lever(raising)).why
    else:
        proved(model, x, y)

    after = everything(model)
    assert {key for key in before if before[key] != after[key]} == set()


def raising(size, collects):
    raise KeyError("what the model does with a micro-batch")


def test_the_next_steps_are_those_of_a_model_that_was_never_proved():
    def train(is_proved):
        keras.utils.set_random_seed(2)
        model = compiled(HasMuch(), metrics=["mae"])
        model.fit(x, y, batch_size=ROWS, verbose=0)
        if is_proved:
            assert_same(model, x, y) if BACKEND == "jax" else proved(model, x, y)
        model.fit(x, y, batch_size=7, verbose=0)
        return [ops.convert_to_numpy(one) for one in model.variables]

    x, y = noise(4), noise(2)

    for one, other in zip(train(is_proved=True), train(is_proved=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_that_was_never_trained_has_no_metrics_and_no_optimizer_variables_afterwards():
    model = chain(metrics=["mae"])

    assert_same(model)

    assert not model.optimizer.built
    assert model.metrics_variables == [] or all(
        float(ops.sum(one)) == 0 for one in model.metrics_variables
    )
