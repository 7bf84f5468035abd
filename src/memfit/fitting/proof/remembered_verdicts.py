"""What was proved before in this process, so that a second `fit` pays nothing.

A verdict belongs to a model as it is compiled, or to any model that the same code built.
"""

import weakref
from dataclasses import dataclass, field
from typing import Any

from memfit.fitting.proof.fingerprint import fingerprint
from memfit.fitting.proof.proof import Lever
from memfit.fitting.proof.rows import leaves
from memfit.fitting.proof.verdict import Outcome, Verdict
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import loss_tracker


@dataclass(slots=True)
class _Proved:
    """The verdicts of a model since it was compiled; neither is kept alive."""

    model: weakref.ref[Any]
    compiled: weakref.ref[Any]
    verdicts: dict[Any, Verdict] = field(default_factory=dict)

    def is_of(self, model: Any) -> bool:
        return self.model() is model and self.compiled() is loss_tracker(model)


_of_models: dict[int, _Proved] = {}
_of_equal_models: dict[Any, Verdict] = {}


def find_verdict(model: Any, batch: Any, lever: Lever) -> Verdict | None:
    """Returns the verdict on this lever, if the model, or an equal one, was proved before."""
    case = _describe_case(model, batch, lever)
    proved = _of_models.get(id(model))
    if proved is not None and proved.is_of(model) and case in proved.verdicts:
        return proved.verdicts[case]
    mark = fingerprint(model)
    return None if mark is None else _of_equal_models.get((mark, case))


def remember_verdict(model: Any, batch: Any, lever: Lever, verdict: Verdict) -> None:
    """Keeps a verdict. One that another batch may change is not kept."""
    if verdict.outcome is Outcome.UNCLEAR or not lever.name:
        return
    case = _describe_case(model, batch, lever)
    proved = _of_models.get(id(model))
    if proved is None or not proved.is_of(model):
        for key in [key for key, one in _of_models.items() if one.model() is None]:
            del _of_models[key]
        proved = _Proved(weakref.ref(model), weakref.ref(loss_tracker(model)))
        _of_models[id(model)] = proved
    proved.verdicts[case] = verdict
    # A refusal names the layers of this very model.
    mark = fingerprint(model) if verdict.is_same else None
    if mark is not None:
        _of_equal_models[mark, case] = verdict


def _describe_case(model: Any, batch: Any, lever: Lever) -> Any:
    """What a verdict depends on besides how the model was built and compiled."""
    import keras

    shapes = tuple((tuple(one.shape), str(one.dtype)) for one in leaves(batch))
    structure = repr(keras.tree.map_structure(lambda _: 0, batch))
    layers = all_layers(model)
    places = {id(one): place for place, one in enumerate(layers)}
    frozen = tuple(places.get(id(one)) for one in lever.frozen)
    trainable = tuple(one.trainable for one in layers)
    return lever.name, lever.cuts, lever.is_plain, frozen, trainable, shapes, structure
