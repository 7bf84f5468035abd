"""A `fit` that is held at its first batch until it is known how to train within a budget."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from memfit.backends import load
from memfit.errors import BudgetError
from memfit.fitting.arguments_of_fit import (
    count_trained_bytes,
    count_validation_bytes,
    is_generator,
    watch_generator,
)
from memfit.fitting.executor import choose
from memfit.fitting.gauges import check_budget, check_first_peak, find_gauge
from memfit.fitting.headroom import Headroom
from memfit.fitting.request import Request
from memfit.fitting.throttle import (
    add_callback,
    count_queued,
    find_most_kept,
    make_pace,
    may_be_tight,
)
from memfit.fitting.trial_steps import probing
from memfit.heap.release import release
from memfit.messages import say
from memfit.user_code.own_calls import own_call

# Takes why a budget cannot be kept.
OnUncontrolled = Callable[[str], None]


class HeldFit:
    """Measures and chooses at the first batch of a `fit`; then that `fit` goes on.

    Args:
        model: A compiled model that was not changed by a lever.
        arguments: Those of `fit`, by name.
        request: What the user asks for.
        changes: Gets what undoes the changes.
        on_uncontrolled: Called if it cannot be known how to train; the `fit` then goes on as it
            is. Without it the error is raised.

    Attributes:
        arguments: What to call `fit` with.
        is_begun: Whether a batch was seen.

    Raises:
        BudgetError: The budget is taken before training.
        UsageError: The model cannot be held, and why.
    """

    def __init__(
        self,
        model: Any,
        arguments: dict[str, Any],
        request: Request,
        changes: contextlib.ExitStack,
        on_uncontrolled: OnUncontrolled | None = None,
    ) -> None:
        self._model = model
        self._given = arguments
        self._request = request
        self._changes = changes
        self._on_uncontrolled = on_uncontrolled
        self._gauge = find_gauge(request.budget)
        self._is_verbose = arguments.get("verbose") not in (0, "0")
        self._read_peak: Callable[[], int] | None = None
        check_budget(self._gauge, request.budget)
        self._pace = make_pace(self._gauge)
        self._is_free = threading.Event()
        self._is_free.set()
        self.arguments = dict(arguments)
        if may_be_tight(request.budget.size_bytes, self._gauge.read()):
            self.arguments = add_callback(arguments, self._pace)
        if is_generator(arguments.get("x")):
            self.arguments["x"] = watch_generator(arguments["x"], self._is_free)
        self.is_begun = False
        changes.callback(self._gauge.trim_compiled())
        changes.callback(load("first_step").hold(model, self._on_first))
        self._read_first_peak = changes.enter_context(self._gauge.watch())

    def read_peak(self) -> int | None:
        """Returns the most that the training took; `None` if it was not held."""
        return None if self._read_peak is None else self._read_peak()

    def _on_first(self, batch: Any) -> None:
        if self.is_begun:  # a nested `fit`, or one that goes on after its step was made anew
            return
        self.is_begun = True
        self._is_free.clear()
        try:
            with own_call():
                self._prepare(batch)
        except BudgetError:
            raise
        except Exception as error:
            if self._on_uncontrolled is None:
                raise
            self._on_uncontrolled(str(error) or type(error).__name__)
        finally:
            self._is_free.set()
        release()
        self._read_peak = self._changes.enter_context(self._gauge.watch())

    def _prepare(self, batch: Any) -> None:
        """Chooses how to train, and makes the model ready for it."""
        check_first_peak(self._read_first_peak(), self._request.budget)
        release()
        if self._is_verbose:
            budget = self._request.budget
            text = f"Measuring a few trial steps (they are undone) to stay within {budget}"
            say(text, wraps=True)
        with contextlib.ExitStack() as levers:
            with probing(self._model, batch, self._gauge) as prober:
                headroom = self._measure_headroom(prober.batch_bytes)
                plan = choose(prober, headroom, self._request, levers)
            self._changes.push(levers.pop_all())
        self._pace.most_kept_bytes = find_most_kept(headroom, plan, prober.batch_bytes)
        if self._is_verbose:
            say(str(plan), wraps=True)

    def _measure_headroom(self, batch_bytes: int) -> Headroom:
        """What is there while the `fit` is held: its data and the first batch among it."""
        trained_bytes = count_trained_bytes(self._given)
        is_whole_data = 0 < trained_bytes <= batch_bytes
        return Headroom(
            budget_bytes=self._request.budget.size_bytes,
            idle_bytes=self._gauge.read(),
            data_bytes=self._gauge.fit_copies * count_validation_bytes(self._given),
            queued_bytes=0 if is_whole_data else count_queued(trained_bytes) * batch_bytes,
        )
