"""A user's own statement comes back fixed, or not at all."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.fixes.statement import closing, fix_statement

CODES = (
    "held-graph",
    "held-tensors",
    "accumulating-models",
    "accumulating-figures",
    "accumulating-files",
    "buffer-too-large",
    "uncollected-garbage",
    "retracing",
    "killed",
)
WHERE_NOTHING_IS_ADDED = (
    "loss = step(x)",
    "x",
    "import torch",
    "@tf.function",
    "def f(x): return x",
    "hidden = rnn(x, hidden)",
    "state = update(state, x)",
)
FORMS = (
    "{0}.append({1})",
    "{0} += {1}",
    "{0} = {0} + {1}",
    "{0} = {0} + {1} - {2}",
    "{0}[{1}] = {2}",
    "{0}.append(({1}, {2}))",
    "{0}.update({{'a': {1}}})",
    "{0}.extend([{1}, {2}])",
)
NAMES = st.sampled_from(["loss", "total", "logits", "x", "step", "thing", "self.loss", "losses"])


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("losses.append(loss)", "losses.append(loss.detach())"),
        ("self.losses.append(self.loss)", "self.losses.append(self.loss.detach())"),
        ("queue.appendleft(loss)", "queue.appendleft(loss.detach())"),
        ("losses.insert(0, loss)", "losses.insert(0, loss.detach())"),
        (
            "log.setdefault('loss', []).append(loss)",
            "log.setdefault('loss', []).append(loss.detach())",
        ),
        ("losses.append(criterion(net(x), y))", "losses.append(criterion(net(x), y).detach())"),
        ("losses.extend([a, b])", None),
        (
            "losses.extend([first_loss, loss])",
            "losses.extend([first_loss.detach(), loss.detach()])",
        ),
        ("losses.extend(f(x) for x in xs)", "losses.extend((f(x).detach() for x in xs))"),
        ("losses.extend(more)", None),
        ("losses[step] = loss", "losses[step] = loss.detach()"),
        ("losses += [loss]", "losses += [loss.detach()]"),
        ("losses = losses + [loss]", "losses = losses + [loss.detach()]"),
        ("total += loss", "total += loss.detach()"),
        ("total -= loss", "total -= loss.detach()"),
        ("self.total += loss", "self.total += loss.detach()"),
        ("total = total + loss", "total = total + loss.detach()"),
        ("total = loss + total", "total = loss.detach() + total"),
        ("total = total + a + 2 * b", "total = total + a.detach() + (2 * b).detach()"),
        ("mean = 0.9 * mean + 0.1 * loss", "mean = 0.9 * mean + (0.1 * loss).detach()"),
        ("running['loss'] += loss", "running['loss'] += loss.detach()"),
        ("running['n'] = running['n'] + loss", "running['n'] = running['n'] + loss.detach()"),
        ("total += loss * len(x)", "total += (loss * len(x)).detach()"),
    ],
)
def test_a_tensor_is_kept_without_its_graph(statement, fixed):
    assert fix_statement("held-graph", statement, item_kind="graph") == fixed


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("outputs.append(logits)", "outputs.append(logits.detach())"),
        ("outputs.append(y_pred)", "outputs.append(y_pred.detach())"),
        ("outputs.append(self.model(x))", "outputs.append(self.model(x).detach())"),
        ("outputs.append(torch.cat(parts))", "outputs.append(torch.cat(parts).detach())"),
        ("kept.append(thing[:10])", "kept.append(thing[:10].detach())"),
        ("kept.append(logits * 2)", "kept.append((logits * 2).detach())"),
        ("kept.append(logits.mean())", "kept.append(logits.mean().detach())"),
    ],
)
def test_a_tensor_that_is_clearly_no_scalar_is_detached(statement, fixed):
    assert fix_statement("held-graph", statement) == fixed


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("log.append((epoch, loss))", "log.append((epoch, loss.detach()))"),
        ("log.append((epoch, thing))", "log.append((epoch, thing.detach()))"),
        ("log.append((loss, logits))", "log.append((loss.detach(), logits.detach()))"),
        ("log.append({'step': i, 'loss': loss})", "log.append({'step': i, 'loss': loss.detach()})"),
        ("log.append({'a': [loss, 1], 'b': 2})", "log.append({'a': [loss.detach(), 1], 'b': 2})"),
        ("log.append((loss, thing))", None),
        ("log.append((thing, other))", None),
        ("log.append({**more, 'loss': loss})", None),
        ("log.append([*losses])", None),
    ],
)
def test_of_several_values_each_is_fixed_or_none_is(statement, fixed):
    assert fix_statement("held-graph", statement) == fixed


@pytest.mark.parametrize(
    "value",
    ["loss.item()", "float(loss)", "loss.detach()", "out.detach().cpu().mean()", "loss.data", "1"],
)
def test_what_already_let_go_of_its_graph_is_left(value):
    assert fix_statement("held-graph", f"total += {value}") is None


@pytest.mark.parametrize("value", ["losses", "batch_losses", "things", "results"])
def test_a_name_for_several_things_is_not_made_a_number(value):
    assert fix_statement("held-graph", f"kept.append({value})") is None


def test_a_tape_has_no_local_remedy():
    assert fix_statement("held-graph", "tapes.append(tape)", item_kind="tape") is None


def test_of_several_additions_the_one_to_the_holder_is_fixed():
    statement = "total += loss; losses.append(other)"

    fixed = [
        fix_statement("held-graph", statement, holder=holder)
        for holder in ("total (global of train.py)", "local losses of train()", "")
    ]

    assert fixed == [
        "total += loss.detach()\nlosses.append(other)",
        "total += loss\nlosses.append(other.detach())",
        None,
    ]


@pytest.mark.parametrize(
    "holder",
    ["losses of Trainer", "self.losses['train'] of Trainer", "losses['a'] (global of a.py)"],
)
def test_a_holder_is_known_by_its_name_however_it_is_said(holder):
    statement = "self.losses['train'].append(loss); n += step"

    fixed = fix_statement("held-graph", statement, holder=holder)

    assert fixed == "self.losses['train'].append(loss.detach())\nn += step"


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("losses.append(loss)", "losses.append(float(loss))"),
        ("self.losses.append(val_loss)", "self.losses.append(float(val_loss))"),
        ("kept.append(self.test_acc)", "kept.append(float(self.test_acc))"),
        (
            "kept.append((epoch, trainloss, score))",
            "kept.append((epoch, float(trainloss), float(score)))",
        ),
        ("kept.append(logs['loss'])", "kept.append(float(logs['loss']))"),
        ("kept.append(-loss / 2)", "kept.append(float(-loss / 2))"),
        ("kept[step] = mse", "kept[step] = float(mse)"),
        ("kept.append(tf.reduce_mean(x))", "kept.append(float(tf.reduce_mean(x)))"),
        ("kept.append(loss_fn(y, p))", "kept.append(float(loss_fn(y, p)))"),
        ("kept.append(tf.reduce_mean(x, axis=1))", None),
        ("kept.append(x.sum(axis))", None),
        ("kept.append(F.mse_loss(y, p, reduction='none'))", None),
        ("self.predictions.append(pred)", None),
        ("kept.append((loss, y))", None),
        ("kept.append((y_true, y_pred))", None),
        ("kept.append(model.predict(x))", None),
        ("kept.append(net.get_weights())", None),
        ("kept.append(loss_per_sample)", None),
        ("kept.append(loss_fn)", None),
        ("kept.append(losses)", None),
        ("kept.append(accumulated)", None),
        ("kept.append(logits)", None),
        ("memo[key] = augment(image, epoch)", None),
        ("bank = torch.cat([bank, keys])", None),
    ],
)
def test_of_a_loss_the_number_is_kept_and_of_the_rest_nothing_is_promised(statement, fixed):
    assert fix_statement("held-tensors", statement, item_kind="tensor") == fixed


@pytest.mark.parametrize(
    ("statement", "kind", "fixed"),
    [
        ("kept.append(batch[0])", "view", "kept.append(batch[0].copy())"),
        ("kept.append(batch[0])", "torch view", "kept.append(batch[0].clone())"),
        ("kept.append(row)", "view", "kept.append(row.copy())"),
        ("kept.append((step, batch[0]))", "view", "kept.append((step, batch[0].copy()))"),
        ("kept.append((label, batch[0]))", "view", "kept.append((label, batch[0].copy()))"),
        ("S[n] = (x[rows], y[rows])", "view", "S[n] = (x[rows].copy(), y[rows].copy())"),
        ("kept.append(out.numpy())", "view", "kept.append(out.numpy().copy())"),
        ("kept.append(batch[0].copy())", "view", None),
        ("kept.append(a + b)", "view", None),
    ],
)
def test_of_a_view_a_copy_is_kept(statement, kind, fixed):
    assert fix_statement("held-tensors", statement, item_kind=kind) == fixed


def test_text_is_left():
    assert fix_statement("held-tensors", "lines.append(loss)", item_kind="text") is None


def test_models_need_more_than_one_line():
    statement = "hs.append(model.fit(x, y))"

    assert fix_statement("accumulating-models", statement, item_kind="history") is None


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("ds = ds.batch(b).shuffle(n)", "ds = ds.shuffle(n).batch(b)"),
        (
            "ds = ds.map(f).batch(8).map(g).shuffle(99, seed=1).take(3)",
            "ds = ds.map(f).shuffle(99, seed=1).batch(8).map(g).take(3)",
        ),
        (
            "return self.data.padded_batch(8).shuffle(99)",
            "return self.data.shuffle(99).padded_batch(8)",
        ),
        ("fit(a.batch(8).shuffle(99), b)", "fit(a.shuffle(99).batch(8), b)"),
        (
            "ds = zip_((a.batch(8).shuffle(9), b.batch(8).shuffle(9))).map(f)",
            "ds = zip_((a.shuffle(9).batch(8), b.shuffle(9).batch(8))).map(f)",
        ),
        ("ds = ds.shuffle(9).batch(8)", None),
        ("ds = ds.shuffle(9)", None),
    ],
)
def test_rows_are_shuffled_before_they_are_batched(statement, fixed):
    assert fix_statement("buffer-too-large", statement) == fixed


@pytest.mark.parametrize(
    "between", ["skip(10)", "take(10)", "shard(2, i)", "unbatch()", "window(3)"]
)
def test_a_shuffle_is_not_moved_past_what_it_would_change(between):
    assert fix_statement("buffer-too-large", f"ds = ds.batch(8).{between}.shuffle(99)") is None


def test_a_shuffle_is_not_moved_before_a_cache_that_would_freeze_its_order():
    moved = fix_statement("buffer-too-large", "ds = ds.batch(8).cache().shuffle(99)")

    assert moved == "ds = ds.cache().shuffle(99).batch(8)"
    assert fix_statement("buffer-too-large", "ds = ds.batch(8).map(f).cache().shuffle(99)") is None


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("ds = ds.repeat(3).cache()", "ds = ds.cache().repeat(3)"),
        ("ds = ds.repeat().map(f).map(g).cache()", "ds = ds.cache().repeat().map(f).map(g)"),
        ("return rows.repeat().cache().batch(64)", "return rows.cache().repeat().batch(64)"),
        ("ds = ds.cache().repeat()", None),
        ("ds = ds.repeat().cache('on-disk')", None),
    ],
)
def test_one_round_is_cached_and_then_repeated(statement, fixed):
    assert fix_statement("buffer-too-large", statement) == fixed


@pytest.mark.parametrize(
    ("statement", "stage", "fixed"),
    [
        ("ds = ds.batch(8).prefetch(200)", "", "ds = ds.batch(8).prefetch(2)"),
        ("ds = ds.prefetch(buffer_size=200)", "", "ds = ds.prefetch(buffer_size=2)"),
        ("ds = ds.prefetch(2)", "", None),
        ("ds = ds.prefetch(tf.data.AUTOTUNE)", "prefetch", None),
        ("ds = ds.prefetch(-1)", "prefetch", None),
        ("ds = ds.prefetch(size)", "", None),
        ("ds = ds.prefetch(size)", "prefetch", "ds = ds.prefetch(2)"),
        ("d = D(2, max_queue_size=100)", "", "d = D(2, max_queue_size=10)"),
        ("super().__init__(max_queue_size=100)", "", "super().__init__(max_queue_size=10)"),
        ("d = D(2, max_queue_size=n)", "queue", "d = D(2, max_queue_size=10)"),
        ("d = D(2, max_queue_size=10)", "queue", None),
    ],
)
def test_fewer_batches_wait(statement, stage, fixed):
    assert fix_statement("buffer-too-large", statement, item_kind=stage) == fixed


def test_only_the_stage_that_was_found_is_fixed():
    statement = "ds = ds.repeat().cache().batch(8).shuffle(99).prefetch(99)"

    fixed = {
        stage: fix_statement("buffer-too-large", statement, item_kind=stage)
        for stage in ("cache", "shuffle", "prefetch", "queue")
    }

    assert fixed == {
        "cache": "ds = ds.cache().repeat().batch(8).shuffle(99).prefetch(99)",
        "shuffle": "ds = ds.repeat().cache().shuffle(99).batch(8).prefetch(99)",
        "prefetch": "ds = ds.repeat().cache().batch(8).shuffle(99).prefetch(2)",
        "queue": None,
    }


@pytest.mark.parametrize(
    ("statement", "fixed"),
    [
        ("gc.disable()", ""),
        ("gc.disable()  # pauses spoil the timing", ""),
        ("gc.set_threshold(0)", ""),
        ("gc.set_threshold(0, 10, 10)", ""),
        ("gc.freeze()", ""),
        ("import gc; gc.disable()", "import gc"),
        ("gc.set_threshold(700)", None),
        ("gc.collect()", None),
        ("screen.disable()", None),
        ("if quick: gc.disable()", None),
    ],
)
def test_a_line_that_stops_the_collector_is_deleted(statement, fixed):
    assert fix_statement("uncollected-garbage", statement) == fixed


@pytest.mark.parametrize(
    ("statement", "argument", "fixed"),
    [
        ("loss = step(x, y, rate)", "rate", "loss = step(x, y, tf.constant(rate))"),
        ("step(x, rate=rate)", "rate", "step(x, rate=tf.constant(rate))"),
        ("step(x, rate=lr)", "rate", "step(x, rate=tf.constant(lr))"),
        ("step(x, self.rate)", "rate", "step(x, tf.constant(self.rate))"),
        ("step(x, self.rate)", "self.rate", "step(x, tf.constant(self.rate))"),
        ("step(x, rate=0.1)", "rate", None),
        ("step(x, rate=f(i))", "rate", None),
        ("step(x, lr)", "rate", None),
        ("step(x, **rate)", "rate", None),
        ("step(x, rate)", "", None),
    ],
)
def test_a_python_number_is_made_a_tensor(statement, argument, fixed):
    assert fix_statement("retracing", statement, argument=argument, compiler="tf.function") == fixed


@pytest.mark.parametrize("compiler", ["jax.jit", "torch.compile", "XLA", ""])
def test_other_compilers_have_no_local_remedy(compiler):
    assert fix_statement("retracing", "step(x, rate)", argument="rate", compiler=compiler) is None


def test_the_function_that_is_retraced_shows_which_call_is_meant():
    statement = "print(self.step(x, rate), rate)"

    def fixed(function):
        how = {"argument": "rate", "compiler": "tf.function", "holder": function}
        return fix_statement("retracing", statement, **how)

    assert fixed("") is None
    assert fixed("Trainer.step") == "print(self.step(x, tf.constant(rate)), rate)"


@pytest.mark.parametrize(
    ("code", "statement"),
    [
        ("accumulating-figures", "fig, ax = plt.subplots()"),
        ("accumulating-files", "log = open('log.txt')"),
        ("killed", "total += loss"),
        ("no-such-code", "total += loss"),
    ],
)
def test_what_has_no_local_remedy_is_left(code, statement):
    assert fix_statement(code, statement) is None


def test_a_statement_over_several_lines_is_fixed():
    statement = """
        self.losses.append(
            criterion(net(x), y),  # of this batch
        )
    """

    assert (
        fix_statement("held-graph", statement)
        == "self.losses.append(criterion(net(x), y).detach())"
    )


def test_a_chain_over_several_lines_is_fixed():
    statement = "ds = (\n    ds\n    .batch(8)  # rows\n    .shuffle(99)\n)"

    assert fix_statement("buffer-too-large", statement) == "ds = ds.shuffle(99).batch(8)"


def test_the_line_that_opens_a_block_is_fixed_without_a_body():
    statement = "for x, y in ds.batch(8).shuffle(99):"

    assert fix_statement("buffer-too-large", statement) == "for x, y in ds.shuffle(99).batch(8):"


def test_a_statement_inside_another_is_fixed():
    statement = "callback = Call(on_end=lambda epoch, logs: kept.append(logs['loss']))"

    assert fix_statement("held-tensors", statement) == statement.replace(
        "append(logs['loss'])", "append(float(logs['loss']))"
    )


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    "statement",
    [
        "",
        "   ",
        ":",
        "losses.append(",
        "else:",
        "total += ",
        "\x00",
        "é = ‽",
        "(" * 500,
        "x = '\\d'",
    ],
)
def test_what_is_not_python_is_left(code, statement):
    assert fix_statement(code, statement) is None
    assert closing(statement) is None


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("statement", WHERE_NOTHING_IS_ADDED)
def test_a_statement_without_the_fault_is_left(code, statement):
    assert fix_statement(code, statement) is None


@given(text=st.text(), code=st.sampled_from(CODES))
def test_no_text_makes_it_fail(text, code):
    fixed = fix_statement(code, text)

    assert fixed is None or ast.parse(fixed) is not None


@given(
    code=st.sampled_from(CODES),
    form=st.sampled_from(FORMS),
    names=st.tuples(NAMES, NAMES, NAMES),
    kind=st.sampled_from(["", "graph", "tensor", "view", "history"]),
)
def test_a_fixed_statement_parses_differs_and_needs_no_more_fixing(code, form, names, kind):
    statement = form.format(*names)

    fixed = fix_statement(code, statement, item_kind=kind)

    if fixed is not None:
        assert ast.dump(ast.parse(fixed)) != ast.dump(ast.parse(statement))
        assert kind == "history" or fix_statement(code, fixed, item_kind=kind) is None


@given(
    st.lists(
        st.sampled_from(
            ["batch(8)", "shuffle(99)", "repeat()", "cache()", "map(f)", "take(3)", "prefetch(99)"]
        )
    )
)
def test_a_fixed_pipeline_has_the_same_stages(stages):
    statement = ".".join(["ds = ds", *stages])

    fixed = fix_statement("buffer-too-large", statement) or statement

    found = sorted(fixed.replace("prefetch(2)", "prefetch(99)").split(".")[1:])
    assert found == sorted(stages)


@pytest.mark.parametrize(
    ("statement", "closed"),
    [
        ("fig, ax = plt.subplots(1, 2, figsize=(12, 6))", "plt.close(fig)"),
        ("fig, (left, right) = plt.subplots(2)", "plt.close(fig)"),
        ("figure = plt.figure(figsize=(8, 8))", "plt.close(figure)"),
        ("figure: Figure = plt.figure()", "plt.close(figure)"),
        ("self.fig = pyplot.figure()", "pyplot.close(self.fig)"),
        ("fig = matplotlib.pyplot.figure()", "matplotlib.pyplot.close(fig)"),
        ("plt.figure()", "plt.close()"),
        ("plt.imshow(image)", "plt.close()"),
        ("_, ax = plt.subplots()", "plt.close()"),
        ("fig = go.Figure()", None),
        ("figures.append(fig)", None),
        ("plt.close(fig)", None),
        ("fig = subplots()", None),
        ("x = 1", None),
    ],
)
def test_a_figure_is_closed_by_the_users_own_names(statement, closed):
    assert closing(statement) == closed
