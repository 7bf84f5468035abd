"""Why memory grows: one module a family, each a pure check over a recording."""

from collections.abc import Callable

from memfit.diagnose.causes.accumulating import (
    find_accumulating,
    find_files,
    find_long_tape,
    find_pinned_data,
    find_registry,
)
from memfit.diagnose.causes.allocator import find_pool, find_retained, find_retained_too
from memfit.diagnose.causes.buffers import find_large_buffers
from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.data import find_data_in_memory
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.causes.garbage import find_garbage, find_late_garbage
from memfit.diagnose.causes.held import find_held, find_views
from memfit.diagnose.causes.pages import find_file_pages
from memfit.diagnose.causes.retracing import (
    find_executables,
    find_many_executables,
    find_retracing,
)
from memfit.diagnose.causes.unexplained import (
    find_allocations,
    find_constants,
    find_seeded,
    find_unexplained,
)
from memfit.diagnose.causes.workers import find_workers

Check = Callable[[Case], list[Finding]]

# What names what keeps the memory, the surest first; all of these may be found together.
CAUSES: tuple[Check, ...] = (
    find_held,
    find_retained,
    find_large_buffers,
    find_workers,
    find_garbage,
    find_registry,
    find_pinned_data,
    find_retracing,
    find_many_executables,
    find_long_tape,
    find_accumulating,
    find_seeded,
)
# Asked one after another until one answers, where the causes leave much unexplained.
LAST_RESORTS: tuple[Check, ...] = (
    find_executables,
    find_constants,
    find_late_garbage,
    find_retained_too,
    find_views,
    find_pool,
    find_allocations,
    find_files,
    find_unexplained,
)
# Found whether memory grows or not.
ALWAYS: tuple[Check, ...] = (find_data_in_memory, find_file_pages)
