"""Family MF1, pipelines: stages in an order that makes a buffer larger than its number says."""

import ast
from collections.abc import Iterator

from memfit.fixes.pipelines import CACHED_STAYS
from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.constants import argument, number
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tf_data_chains import Pipeline, Stage

SHUFFLE_AFTER_BATCH = Rule(
    "MF101",
    "shuffle-after-batch",
    "buffer-too-large",
    "A shuffle after a batch keeps whole batches: its buffer is larger by the rows in a batch.",
)
CACHE_AFTER_REPEAT = Rule(
    "MF102",
    "cache-after-repeat",
    "buffer-too-large",
    "A cache after a repeat keeps every repetition of the data, without end if the repeat has "
    "none.",
)
PREFETCH_MANY = Rule(
    "MF105",
    "prefetch-many-batches",
    "buffer-too-large",
    "A prefetch after a batch counts batches, and a hundred or more of them wait in memory.",
)
SHUFFLE_DECODED = Rule(
    "MF106",
    "shuffle-decoded-images",
    "buffer-too-large",
    "A large shuffle after decoding keeps that many decoded images; file names are small.",
)
QUEUE_MANY = Rule(
    "MF107",
    "queue-many-batches",
    "buffer-too-large",
    "A queue of a PyDataset counts batches, and a hundred or more of them wait in memory.",
)
RULES = (SHUFFLE_AFTER_BATCH, CACHE_AFTER_REPEAT, PREFETCH_MANY, SHUFFLE_DECODED, QUEUE_MANY)

# Shuffling so few batches is done on purpose, to mix files or classes.
_FEW_BATCHES = 16
# Enough for any pipeline to hide its latency many times over.
_MANY_BATCHES = 100
# 10,000 images of 224 x 224 in float32 are 6 GB.
_MANY_IMAGES = 10_000
_DECODING = ("tensorflow.io.decode_", "tensorflow.image.decode_", "keras.utils.load_img")


def check(script: Script) -> Iterator[Match]:
    """Yields what is wrong with the pipelines of `script`."""
    for stage, pipeline in script.chains.ending_in("shuffle"):
        yield from _shuffle_after_batch(script, stage, pipeline)
        yield from _shuffle_decoded(script, stage, pipeline)
    for stage, pipeline in script.chains.ending_in("cache"):
        yield from _cache_after_repeat(script, stage, pipeline)
    for stage, pipeline in script.chains.ending_in("prefetch"):
        yield from _prefetch_many(script, stage, pipeline)
    for call in script.tree.calls:
        yield from _queue_many(script, call)


def _shuffle_after_batch(script: Script, stage: Stage, pipeline: Pipeline) -> Iterator[Match]:
    batching = script.chains.batching(pipeline)
    buffer = argument(stage.call, 0, "buffer_size")
    size = number(script.names, buffer)
    if batching is None or buffer is None or (size is not None and size <= _FEW_BATCHES):
        return
    if _is_cached(pipeline):
        return  # the buffer then holds what the cache holds anyway
    shuffle, batch = stage.text, batching.text
    yield Match(
        SHUFFLE_AFTER_BATCH,
        stage.call,
        f"{shuffle} comes after {batch} (line {batching.line}), so its buffer holds "
        f"{shown(buffer)} batches, not rows",
        f"leave the shuffling to {batch}, or write .unbatch(){shuffle}.batch(...)"
        if batching.name is None
        else f"shuffle rows, then batch them: {batch}{shuffle} -> {shuffle}{batch}",
    )


def _is_cached(pipeline: Pipeline) -> bool:
    stages = pipeline.after("cache")
    in_memory = bool(stages) and not stages[0].call.args and not stages[0].call.keywords
    return in_memory and not any(stage.name in ("map", "batch", "repeat") for stage in stages)


def _cache_after_repeat(script: Script, stage: Stage, pipeline: Pipeline) -> Iterator[Match]:
    stages = pipeline.after("repeat")
    if not stages or any(one.name in ("take", "take_while") for one in stages):
        return
    if argument(stage.call, 0, "filename") is not None:
        return
    count = argument(stages[0].call, 0, "count")
    times = number(script.names, count)
    if times == 1:
        return
    is_endless = count is None or times == -1 or ast.unparse(count) == "None"
    amount = "without end" if is_endless else f"{shown(count)} times" if count else ""
    repeat = stages[0].text
    yield Match(
        CACHE_AFTER_REPEAT,
        stage.call,
        f".cache() comes after {repeat} (line {stages[0].line}), so it keeps the data {amount}",
        f"keep one round, then repeat it: {repeat}.cache() -> .cache(){repeat}. {CACHED_STAYS}",
    )


def _prefetch_many(script: Script, stage: Stage, pipeline: Pipeline) -> Iterator[Match]:
    buffer = argument(stage.call, 0, "buffer_size")
    size = number(script.names, buffer)
    batching = script.chains.batching(pipeline)
    if batching is None or buffer is None or size is None or size < _MANY_BATCHES:
        return
    yield Match(
        PREFETCH_MANY,
        stage.call,
        f"{stage.text} comes after {batching.text}, so {size:.0f} batches wait in memory",
        f"{stage.text} -> .prefetch(tf.data.AUTOTUNE)",
    )


def _queue_many(script: Script, call: ast.Call) -> Iterator[Match]:
    for keyword in call.keywords:
        size = number(script.names, keyword.value)
        if keyword.arg == "max_queue_size" and size is not None and size >= _MANY_BATCHES:
            yield Match(
                QUEUE_MANY,
                call,
                f"{shown(call.func)} lets {size:.0f} batches wait in memory: its queue counts "
                "batches",
                f"max_queue_size={shown(keyword.value)} -> max_queue_size=10",
            )


def _shuffle_decoded(script: Script, stage: Stage, pipeline: Pipeline) -> Iterator[Match]:
    size = number(script.names, argument(stage.call, 0, "buffer_size"))
    if size is None or size < _MANY_IMAGES or script.chains.batching(pipeline) is not None:
        return
    maps = [one for one in pipeline.stages if one.name == "map" and one.call.args]
    decoding = next((one for one in maps if _decodes(script, one.call.args[0])), None)
    if decoding is None or _is_cached(pipeline):
        return
    yield Match(
        SHUFFLE_DECODED,
        stage.call,
        f"{stage.text} keeps {size:,.0f} decoded images: "
        f"{decoding.text} (line {decoding.line}) comes before it",
        f"shuffle what is small: {decoding.text}{stage.text} -> {stage.text}{decoding.text}",
    )


def _decodes(script: Script, node: ast.expr) -> bool:
    function = script.names.function(node)
    calls = script.tree.within(function, ast.Call) if function is not None else []
    return any((script.names.called(call) or "").startswith(_DECODING) for call in calls)
