"""What grows and who holds it, on a module that grows in every way people write."""

import importlib.util
import sys

import pytest

from memfit.agent import examiner as examiner_module
from memfit.agent.examiner import Examiner, MemoryRise
from memfit.record.evidence import Holding

MB = 1_000_000
SOURCE = """
import functools, queue
from collections import deque
import numpy as np

kept = []
by_name = {"train": [], "test": []}
whole = np.zeros(0)
bounded = deque(maxlen=2)
numbers = []
sliced = []

class Logger:
    everything = []
    def __init__(self):
        self.outputs = []
    def log(self):
        self.outputs.append(np.ones(12_500))
        Logger.everything.append({"y": np.ones(12_500)})

logger = Logger()

@functools.lru_cache(maxsize=None)
def load(index):
    return np.ones(12_500)

@functools.lru_cache(maxsize=1000)
def load_bounded(index):
    return np.ones(12_500)

def make():
    memo = {}
    def remember(index):
        memo[index] = np.ones(12_500)
    return remember

remember = make()

def collect(value, into=[]):
    into.append(value)

def count(value):
    count.seen.append(value)
count.seen = []

waiting = queue.Queue()

def step(index):
    global whole
    collect(np.ones(12_500))
    count(np.ones(12_500))
    waiting.put(np.ones(12_500))
    kept.append(np.ones(12_500))
    by_name["train"].append(np.ones(12_500))
    whole = np.concatenate([whole, np.ones(12_500)])
    bounded.append(np.ones(12_500))
    numbers.append(0.5)
    sliced.append(np.ones((125, 100))[:1])
    logger.log()
    load(index)
    load_bounded(index)
    remember(index)
"""


@pytest.fixture(autouse=True, scope="module")
def enough_time():
    """Here all modules of the tests are the user's own: more than a look may take otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examiner_module, "_MOST_S", 60.0)
        yield


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Holdings by owner, after twenty steps of the module above; each keeps 0.1 MB a step."""
    pytest.importorskip("numpy")
    path = tmp_path_factory.mktemp("user") / "growing.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("growing", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["growing"] = module
    spec.loader.exec_module(module)
    found = []
    examiner = Examiner(found.append)
    module.step(0)
    examiner.examine()
    for index in range(1, 21):
        module.step(index)
        if index % 10 == 0:
            examiner.examine()
    del sys.modules["growing"]
    return {one.owner: one for one in found if isinstance(one, Holding)}


def line_of(text):
    lines = SOURCE.splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        ("kept (global of growing.py)", "kept.append"),
        ("by_name['train'] (global of growing.py)", 'by_name["train"].append'),
        ("whole (global of growing.py)", "whole = np.concatenate"),
        ("outputs of Logger", "self.outputs.append"),
        ("everything of class Logger", "Logger.everything.append"),
        ("memo in the closure of remember()", "memo[index] ="),
        ("sliced (global of growing.py)", "sliced.append"),
        ("into, a default argument of collect()", "into.append"),
        ("seen of function count()", "count.seen.append"),
        ("queue inside waiting (global of growing.py)", "waiting.put"),
    ],
)
def test_what_grows_is_named_with_its_line_and_bytes(grown, owner, text):
    holding = grown[owner]

    assert holding.line == line_of(text)
    assert holding.growth_bytes == pytest.approx(2 * MB, rel=0.01)
    assert holding.item_kind == ("view" if owner.startswith("sliced") else "array")


@pytest.mark.parametrize("name", ["load", "load_bounded"])
def test_a_cache_is_named_with_its_function(grown, name):
    holding = grown[f"{name} (global of growing.py)"]

    assert holding.container == "lru_cache"
    assert (holding.length_before, holding.length) == (1, 21)
    assert holding.line == line_of(f"def {name}(") - 1
    assert holding.growth_bytes == pytest.approx(2 * MB, rel=0.01)


def test_what_is_bounded_or_small_is_not_named(grown):
    assert not any(owner.startswith(("bounded", "numbers")) for owner in grown)


def test_what_is_filled_and_emptied_is_not_named_until_it_is_fuller_than_ever():
    found = []
    examiner = Examiner(found.append)
    waiting = []

    def fill(*sizes):
        for size in sizes:
            waiting[:] = [bytearray(MB) for _ in range(size)]
            examiner.examine()
        return [(one.length_before, one.length) for one in found if isinstance(one, Holding)]

    assert fill(1, 6, 2, 4, 6) == []
    assert fill(8, 10) == [(6, 10)]


class Block:
    """Something that can be referred to weakly."""

    def __init__(self):
        self.data = bytearray(MB)


def test_a_list_that_is_copied_and_extended_is_named():
    found = []
    examiner = Examiner(found.append)
    blocks = []

    for _ in range(6):
        blocks = [*blocks, Block()]
        examiner.examine()

    assert [one.length for one in found if isinstance(one, Holding)][-1] == 6


def test_a_list_that_is_made_anew_is_not_named_though_it_is_fuller_than_ever():
    found = []
    examiner = Examiner(found.append)

    for size in range(1, 9):
        blocks = [Block() for _ in range(size)]
        examiner.examine()

    assert len(blocks) == 8
    assert not [one for one in found if isinstance(one, Holding)]


def test_arrays_can_still_be_resized_in_place():
    np = pytest.importorskip("numpy")
    examiner = Examiner([].append)
    arrays = [np.ones(MB) for _ in range(3)]

    examiner.examine()

    for array in arrays:
        array.resize(256, refcheck=False)


def test_items_of_a_named_container_are_not_named_again(grown):
    assert not any(owner.startswith("kept[") for owner in grown)


def test_a_local_of_a_running_function_is_named():
    found = []
    examiner = Examiner(found.append)

    def train():
        outputs = [bytearray(MB)]
        examiner.examine()
        for size in (MB, MB, MB, MB, MB):
            block = bytearray(size)
            outputs.append(block)
            examiner.examine()

    train()

    held = [one for one in found if isinstance(one, Holding)]
    assert {one.owner for one in held} == {"local outputs of train()"}
    assert held[0].statement == "outputs.append(block)"


def test_errors_that_are_kept_keep_what_their_functions_had(tmp_path):
    found = []
    examiner = Examiner(found.append)
    failed = []
    source = "block = bytearray(1_000_000)\nfail()\n"
    places = []

    def fail():
        raise ValueError

    def train():
        examiner.examine()
        for _ in range(6):
            names = {"fail": fail}
            places.append(names)
            try:
                exec(compile(source, str(tmp_path / "part.py"), "exec"), names)
            except ValueError as error:
                failed.append(error)
            examiner.examine()

    train()

    held = [one for one in found if isinstance(one, Holding) and "failed" in one.owner]
    assert held[-1].growth_bytes >= 4 * MB
    assert held[-1].statement == "failed.append(error)"
    assert all("block" in names for names in places)  # nobody's globals were emptied


def test_something_large_that_is_made_once_is_not_named():
    found = []
    examiner = Examiner(found.append)

    def train():
        examiner.examine()
        table = [bytearray(MB) for _ in range(5)]
        for _ in range(5):
            examiner.examine()
        return table

    train()

    assert not [one for one in found if isinstance(one, Holding)]


def test_looking_at_a_running_function_keeps_nothing_alive():
    import gc
    import weakref

    class Large:
        pass

    def train():
        large = Large()
        Examiner(print).examine()
        gone = weakref.ref(large)
        del large
        gc.collect()
        return gone() is None

    assert train()


def test_a_look_is_due_at_a_bounded_share_of_time():
    now_s = 0.0
    examiner = Examiner(print, clock=lambda: now_s)
    assert examiner.is_due(is_rising=False)
    examiner.examine()
    examiner._last_cost_s = 0.01
    examiner._num_looks = 8

    due = {}
    for now_s in (0.1, 0.3, 2.0, 4.0):
        due[now_s] = examiner.is_due(is_rising=False), examiner.is_due(is_rising=True)

    assert due == {
        0.1: (False, False),
        0.3: (False, True),
        2.0: (False, True),
        4.0: (True, True),
    }


def test_memory_keeps_rising_with_a_leak():
    rise = MemoryRise()

    rising = []
    for second in range(2000):
        rise.add(float(second), 300 * MB + second * MB)
        rising.append(rise.is_rising)

    assert all(rising[10:])


def test_memory_rises_only_for_a_while_during_warm_up():
    rise = MemoryRise()

    rising = []
    for second in range(100):
        rise.add(float(second), min(300 + 20 * second, 500) * MB)
        rising.append(rise.is_rising)

    assert rising[5]
    assert not any(rising[25:])
