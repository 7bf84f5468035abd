"""What an expression of the user's most likely is, judged by its names alone."""

import ast

# Methods that end what a tensor holds: what they give is a number or a copy outside.
RELEASING_METHODS = frozenset(
    {"item", "numpy", "detach", "tolist", "result", "shape", "size", "backward"}
)
_SCALARS = ("loss", "cost", "error", "accuracy", "metric", "score", "perplexity")
_SHORT_SCALARS = frozenset({"acc", "auc", "err", "mae", "mse", "rmse", "total"})
# With one of these in it, a name is not that of one number: loss_fn, loss_per_sample.
_NOT_ONE = frozenset(
    {"array", "by", "curve", "dict", "each", "example", "fn", "func", "function", "history"}
    | {"list", "log", "map", "mask", "matrix", "per", "sample", "tensor", "values", "vector"}
)
# As often an exception as a number.
_EXCEPTIONS = frozenset({"err", "error"})
_COUNTERS = frozenset(
    {"count", "epoch", "fold", "i", "idx", "index", "iteration", "j", "k", "key", "n", "name"}
    | {"number", "seed", "step", "t", "trial"}
)
_TENSORS = frozenset(
    {"activation", "attention", "batch", "embedding", "feature", "gradient", "hat", "hidden"}
    | {"image", "latent", "logit", "out", "output", "pred", "prediction", "prob", "state"}
    | {"x", "y", "z"}
)
_MODELS = frozenset({"decoder", "encoder", "layer", "model", "net", "network"})
_PLAIN = frozenset({"bool", "float", "int", "len", "round", "str"})
_REDUCING = frozenset({"mean", "sum"})
_REDUCING_FUNCTIONS = frozenset({"reduce_max", "reduce_mean", "reduce_min", "reduce_sum"})
# Modules whose functions get what they reduce as their one argument: np.mean(x).
_MODULES = frozenset({"jnp", "np", "numpy", "ops", "tf", "math", "torch"})
# What a function that compares outputs with labels, and gives one number, is called.
_LOSSES = frozenset({"criterion", "loss"})
_JOINING = frozenset({"cat", "concat", "concatenate", "stack"})


def kind_of(node: ast.expr) -> str:
    """Returns what `node` most likely is.

    That is `"plain"` (a number or text), `"scalar"` (a tensor of one number), `"tensor"` (of
    many), `"many"` (several things of some kind) or `"unknown"`.

    Example:
    >>> [kind_of(ast.parse(text, mode="eval").body) for text in ("val_loss", "logits", "thing")]
    ['scalar', 'tensor', 'unknown']
    """
    if isinstance(node, ast.Constant | ast.JoinedStr) or _is_released(node):
        return "plain"
    match node:
        case ast.Name() | ast.Attribute():
            return _kind_of_name(last_name(node))
        case ast.Subscript(slice=key):
            return _kind_of_item(key)
        case ast.Call():
            return _kind_of_call(node)
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    is_arithmetic = isinstance(node, ast.UnaryOp | ast.BinOp)
    return _kind_of_all({kind_of(one) for one in parts}) if is_arithmetic else "unknown"


def last_name(node: ast.expr) -> str:
    """Returns the last name of `a.b.c`; empty for what is no name.

    Example:
    >>> last_name(ast.parse("self.net.loss", mode="eval").body)
    'loss'
    """
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _kind_of_name(name: str) -> str:
    words = [word.rstrip("0123456789") for word in name.lower().split("_") if word]
    last = words[-1] if words else ""
    is_many = last.endswith("s") and not last.endswith("ss")
    if last in _TENSORS or (is_many and last[:-1] in _TENSORS):
        return "tensor"
    if is_many:
        return "many"
    if not _NOT_ONE.isdisjoint(words):
        return "unknown"
    if name in _EXCEPTIONS:
        return "unknown"
    if any(word in _SHORT_SCALARS or word.endswith(_SCALARS) for word in words):
        return "scalar"
    return "plain" if last in _COUNTERS else "unknown"


def _kind_of_item(key: ast.expr) -> str:
    match key:
        case ast.Constant(value=str() as name):
            return _kind_of_name(name)
        case ast.Slice():
            return "tensor"
    return "unknown"


def _kind_of_call(call: ast.Call) -> str:
    name = last_name(call.func)
    if isinstance(call.func, ast.Name) and name in _PLAIN:
        return "plain"
    if name in _REDUCING and isinstance(call.func, ast.Attribute) and not call.args:
        return "unknown" if call.keywords else "scalar"
    if _reduces(call):
        return "scalar"
    if name[:1].isupper():  # a class: what it makes is the user's own affair
        return "many"
    words = name.lower().split("_")
    if not _LOSSES.isdisjoint(words) and len(call.args) > 1 and not call.keywords:
        return "scalar"
    return "tensor" if name in _JOINING or words[-1] in _MODELS else "unknown"


def _reduces(call: ast.Call) -> bool:
    """Whether a function makes one number of all of its argument: no axis is given to it."""
    name = last_name(call.func)
    if call.keywords or len(call.args) != 1:
        return False
    in_module = isinstance(call.func, ast.Attribute) and last_name(call.func.value) in _MODULES
    return name in _REDUCING_FUNCTIONS or (in_module and name in _REDUCING)


def _kind_of_all(kinds: set[str]) -> str:
    if "tensor" in kinds:
        return "tensor"
    if kinds <= {"plain", "scalar"}:
        return "scalar" if "scalar" in kinds else "plain"
    return "unknown"


def _is_released(node: ast.expr) -> bool:
    """Whether a method in the chain, such as `detach()`, already ended what a tensor holds."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call):
            node = node.func
            continue
        if isinstance(node, ast.Attribute) and node.attr in RELEASING_METHODS | {"data"}:
            return True
        node = node.value
    return False
