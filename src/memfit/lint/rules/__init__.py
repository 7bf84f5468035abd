"""One module a family of rules, and the list of them.

A family has its `RULES`, and `check(script)`, which gives the matches.
"""

from memfit.lint.rules import (
    compiled_in_loop,
    file_loads,
    folklore,
    garbage_collector,
    gradient_accumulation,
    gradient_tapes,
    growing_state,
    held_tensors,
    models_in_loop,
    open_resources,
    pipelines,
    retracing,
)

FAMILIES = (
    pipelines,
    file_loads,
    held_tensors,
    growing_state,
    compiled_in_loop,
    retracing,
    models_in_loop,
    open_resources,
    gradient_tapes,
    gradient_accumulation,
    folklore,
    garbage_collector,
)
