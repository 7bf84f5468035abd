"""What cannot be streamed is refused with its name, what was expected and what to do."""

import json
import os
import zipfile

import numpy as np
import pytest

from memfit.errors import BudgetError, DataChangedError, DataError, DataNotFoundError, UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data

MB = 1_000_000


def save(path, array, **options):
    np.save(path, array, **options)
    return path


def make_loader(value, **settings):
    return Loader(
        *open_data(value), LoaderSettings(**{"batch_size": 8, "budget_bytes": 8 * MB, **settings})
    )


def test_a_missing_file_is_named_with_what_is_there(tmp_path):
    save(tmp_path / "train.npy", np.zeros((4, 2)))

    with pytest.raises(DataNotFoundError, match=r"no file .*tain\.npy.*holds train\.npy"):
        open_data(tmp_path / "tain.npy")


def test_a_pattern_without_a_match_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"No file matches .*\*\.npy"):
        open_data(str(tmp_path / "*.npy"))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "x.npy").touch()

    with pytest.raises(DataError, match=r"x\.npy is empty: 0 bytes"):
        open_data(tmp_path / "x.npy")


def test_a_truncated_file_is_refused_with_both_numbers_of_rows(tmp_path):
    path = save(tmp_path / "x.npy", np.zeros((100, 4), "float32"))
    os.truncate(path, path.stat().st_size - 40 * 16)

    with pytest.raises(DataError, match=r"x\.npy is truncated: .*says 100 rows.*file holds 60"):
        open_data(path)


def test_a_file_that_is_no_array_is_refused(tmp_path):
    (tmp_path / "x.npy").write_text("label,value\n1,2\n")

    with pytest.raises(DataError, match=r"Expected what numpy.save writes"):
        open_data(tmp_path / "x.npy")


def test_pickled_objects_are_never_loaded(tmp_path):
    path = save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)

    with pytest.raises(DataError, match=r"pickled Python objects.*can run any code"):
        open_data(path)


def test_rows_scattered_over_a_file_are_refused(tmp_path):
    path = save(tmp_path / "x.npy", np.asfortranarray(np.ones((5, 3))))

    with pytest.raises(DataError, match="ascontiguousarray"):
        open_data(path)


def test_an_array_without_rows_is_refused(tmp_path):
    path = save(tmp_path / "x.npy", np.zeros((0, 3)))

    with pytest.raises(DataError, match=r"has no rows: its shape is \(0, 3\)"):
        open_data(path)
    with pytest.raises(DataError, match="has no rows"):
        open_data(np.zeros((0, 3)))


def test_files_that_differ_are_refused_with_both_schemas(tmp_path):
    save(tmp_path / "a.npy", np.zeros((5, 3), "float32"))
    save(tmp_path / "b.npy", np.zeros((5, 4), "float32"))

    with pytest.raises(DataError, match=r"a\.npy has .*\(3,\), .*b\.npy has .*\(4,\)"):
        open_data(str(tmp_path / "*.npy"))


def test_features_and_labels_of_different_length_are_refused_with_both_numbers():
    with pytest.raises(DataError, match="x has 10, y has 9"):
        open_data((np.zeros((10, 2)), np.zeros(9)))


def test_a_compressed_archive_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "d.npz", x=np.zeros((5, 3)))

    with pytest.raises(DataError, match=r"d\.npz\[x\] is compressed.*numpy\.savez instead"):
        open_data(tmp_path / "d.npz")


def test_a_damaged_archive_is_refused(tmp_path):
    (tmp_path / "d.npz").write_bytes(b"PK nothing")

    with pytest.raises(DataError, match=r"not an .npz file"):
        open_data(tmp_path / "d.npz")


def test_an_archive_with_extra_fields_is_read_at_the_right_place(tmp_path):
    """The header in front of a member may be longer than its entry in the index says."""
    save(tmp_path / "x.npy", np.arange(12.0).reshape(4, 3))
    entry = zipfile.ZipInfo("x.npy")
    entry.extra = b"\xfe\xca\x04\x00abcd"
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr(entry, (tmp_path / "x.npy").read_bytes())

    source, _ = open_data(tmp_path / "d.npz")

    assert source.read(1, 2)["x"].tolist() == [[3, 4, 5]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = save(tmp_path / "x.npy", np.zeros((5, 3)))
    path.chmod(0)

    with pytest.raises(DataError, match="permission denied"):
        open_data(path)


@pytest.mark.parametrize("value", [0, -1, 2.5, "8", True])
def test_a_batch_size_that_is_no_number_of_rows_is_refused(value):
    with pytest.raises(UsageError, match=r"`batch_size` must be a whole number, 1 or more"):
        make_loader(np.zeros((5, 3)), batch_size=value)


def test_a_batch_size_that_leaves_no_batch_is_refused():
    with pytest.raises(UsageError, match="No batch is left"):
        make_loader(np.zeros((5, 3)), drop_remainder=True)


def test_what_is_no_data_is_refused():
    with pytest.raises(UsageError, match="Received: a float"):
        open_data(3.5)
    with pytest.raises(UsageError, match="empty list"):
        open_data([])
    with pytest.raises(UsageError, match="a tuple of 4"):
        open_data((np.zeros(3),) * 4)
    with pytest.raises(UsageError, match=r"ends in \.npy"):
        open_data("notes.docx")


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    np.savez(tmp_path / "d.npz", age=np.zeros(4), price=np.zeros(4))

    with pytest.raises(DataError, match=r"no column 'prize'. Found: age, price"):
        open_data(tmp_path / "d.npz", ReadOptions(label="prize"))


def test_a_budget_that_is_too_small_names_the_smallest_that_works():
    wide = np.zeros((100, 50_000), "float32")
    with pytest.raises(BudgetError, match="The smallest that works is ") as caught:
        make_loader(wide, budget_bytes=2 * MB)

    least = float(str(caught.value).split("that works is ")[1].split(" MB")[0])

    make_loader(wide, budget_bytes=int(least * MB))
    with pytest.raises(BudgetError):
        make_loader(wide, budget_bytes=int(0.97 * least * MB))


def test_a_file_that_is_cut_while_it_is_read_is_noticed(tmp_path):
    path = save(tmp_path / "x.npy", np.zeros((4000, 100), "float32"))
    loader = make_loader(path, budget_bytes=4 * MB)
    batches = loader.run()
    next(batches)

    os.truncate(path, 10_000)

    with pytest.raises(DataChangedError, match=r"x\.npy ends at byte"):
        list(batches)


def test_a_state_of_other_arguments_is_refused():
    state = make_loader(np.zeros((50, 3))).state().to_dict()

    with pytest.raises(UsageError, match="made with batch_size=8; this stream has batch_size=4"):
        make_loader(np.zeros((50, 3)), batch_size=4).restore(state)
    with pytest.raises(UsageError, match="made with shuffle=False"):
        make_loader(np.zeros((50, 3)), seed=1).restore(state)
    with pytest.raises(UsageError, match="Cannot restore from this"):
        make_loader(np.zeros((50, 3))).restore(json.loads("{}"))


def test_a_state_of_larger_windows_is_refused_by_a_smaller_budget():
    data = np.zeros((200_000, 10))
    state = make_loader(data, seed=1, budget_bytes=12 * MB).state().to_dict()

    with pytest.raises(BudgetError, match="continue in the same order"):
        make_loader(data, seed=1, budget_bytes=5 * MB).restore(state)
    make_loader(data, seed=1, budget_bytes=64 * MB).restore(state)


def test_a_split_without_rows_on_one_side_is_refused():
    for share in (0, 1, 1.5, 0.001):
        with pytest.raises(UsageError, match="rows on both sides"):
            make_loader(np.zeros((50, 3))).split(share)


def test_nan_is_passed_on():
    x, y = np.array([[1.0, np.nan]] * 9), np.full(9, np.nan)

    batches = list(make_loader((x, y), seed=1).run())

    assert sum(np.isnan(one).sum() for batch in batches for one in batch) == 18


def test_foreign_byte_order_is_turned(tmp_path):
    save(tmp_path / "x.npy", np.arange(20, dtype=">f4").reshape(10, 2))

    ((x,),) = make_loader(tmp_path / "x.npy", batch_size=10).run()

    assert x.dtype == np.dtype("=f4")
    assert x.tolist() == np.arange(20.0).reshape(10, 2).tolist()
