"""What the functions of the frameworks give, by their full names."""

# What a call of this very name gives.
GIVES = {
    "keras.Sequential": "model",
    "keras.Model": "model",
    "keras.models.clone_model": "model",
    "keras.models.load_model": "model",
    "keras.saving.load_model": "model",
    "keras.ops.convert_to_numpy": "array",
    "torch.nn.Sequential": "module",
    "tensorflow.GradientTape": "tape",
    "tensorflow.summary.create_file_writer": "writer",
    "torch.utils.tensorboard.SummaryWriter": "writer",
    "tensorboardX.SummaryWriter": "writer",
    "jax.grad": "gradient function",
    "jax.value_and_grad": "gradient function",
    "torch.load": "other",
    "torch.device": "other",
    "torch.no_grad": "other",
    "torch.manual_seed": "other",
    "tensorflow.Variable": "other",
    "tensorflow.print": "other",
    "tensorflow.device": "other",
    "tensorflow.function": "other",
    "tensorflow.executing_eagerly": "other",
    "jax.numpy.dtype": "other",
    "jax.numpy.shape": "other",
    "keras.ops.shape": "other",
    "keras.ops.ndim": "other",
}
# What a call of a name inside this gives, for names that begin with a capital letter...
GIVES_OBJECT = (
    ("keras.applications.", "model"),
    ("keras.optimizers.", "optimizer"),
    ("keras.losses.", "loss function"),
    ("torch.optim.", "torch optimizer"),
    ("torch.nn.", "module"),
)
# ... and for names that begin with a small one.
GIVES_RESULT = (
    ("keras.losses.", "tensor"),
    ("keras.ops.", "tensor"),
    ("keras.random.", "tensor"),
    ("tensorflow.math.", "tensor"),
    ("tensorflow.nn.", "tensor"),
    ("tensorflow.linalg.", "tensor"),
    ("tensorflow.image.", "tensor"),
    ("tensorflow.random.", "tensor"),
    ("torch.nn.functional.", "tensor"),
    ("jax.numpy.", "tensor"),
    ("jax.nn.", "tensor"),
    ("optax.losses.", "tensor"),
)
# Functions right in these packages that give a tensor; others there do not.
GIVES_TENSOR = {
    f"{package}.{name}"
    for package in ("tensorflow", "torch")
    for name in (
        *("abs", "add", "argmax", "cast", "cat", "concat", "constant", "convert_to_tensor"),
        *("cosine_similarity", "einsum", "exp", "identity", "log", "matmul", "maximum", "mean"),
        *("minimum", "multiply", "norm", "ones", "ones_like", "reduce_max", "reduce_mean"),
        *("reduce_sum", "reshape", "sigmoid", "softmax", "sqrt", "square", "squeeze", "stack"),
        *("stop_gradient", "sub", "subtract", "sum", "tensor", "transpose", "zeros", "zeros_like"),
    )
}
# Classes whose objects these are, by the full name of a base class.
KIND_OF_CLASS = {
    "keras.Model": "model",
    "keras.Sequential": "model",
    "keras.Layer": "layer",
    "torch.nn.Module": "module",
    "keras.optimizers.Optimizer": "optimizer",
    "keras.losses.Loss": "loss function",
}
# What the name of a function that makes a model begins with.
BUILDING = ("build", "create", "make", "get", "load", "clone", "init")
# Kinds that are tensors.
TENSORS = {"tensor", "graph", "prediction"}


def kind_of_call(name: str) -> str | None:
    """Returns what a call of the full name `name` gives, or `None` if it is not known."""
    if name in GIVES:
        return GIVES[name]
    if name in GIVES_TENSOR:
        return "tensor"
    if name.startswith("torch.nn.") and name.endswith("Loss"):
        return "loss function"
    last = name.rpartition(".")[2]
    table = GIVES_OBJECT if last[:1].isupper() else GIVES_RESULT
    return next((kind for prefix, kind in table if name.startswith(prefix)), None)
