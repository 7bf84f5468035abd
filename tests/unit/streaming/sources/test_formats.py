"""One row a format, from which everything that lists formats is derived."""

import pytest

from memfit.errors import UsageError
from memfit.lint.suggest.file_columns import _ENDINGS as LINT_ENDINGS
from memfit.streaming.sources import open_source
from memfit.streaming.sources.formats import ENDINGS, FORMATS, find_format

OPENERS = {
    "file": ["open_file"],
    "folder": ["accepts_folder", "open_folder"],
    "object": ["accepts_object", "open_object"],
}


@pytest.mark.parametrize("found", FORMATS, ids=lambda found: found.name)
def test_the_module_of_a_format_has_what_opens_it(found):
    module = found.load()

    assert [name for name in OPENERS[found.kind] if not hasattr(module, name)] == []
    assert bool(found.endings) == (found.kind == "file")


def test_an_ending_belongs_to_one_format():
    assert len(set(ENDINGS)) == len(ENDINGS)
    assert find_format("data.CSV.gz").name == "CSV"
    assert find_format("notes.txt") is None


def test_a_file_of_another_format_is_refused_with_all_endings(tmp_path):
    (tmp_path / "notes.txt").write_text("x")

    with pytest.raises(UsageError, match=r"Cannot tell the format of .*\.npy, \.npz, .*\.hdf5\."):
        open_source(tmp_path / "notes.txt")


def test_lint_suggests_a_stream_only_for_files_that_can_be_streamed():
    assert {one for endings in LINT_ENDINGS.values() for one in endings} <= set(ENDINGS)
