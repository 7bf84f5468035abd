"""NumPy's archives: `.npz` as `numpy.savez` writes them, without compression; a column an array."""

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

from memfit.errors import DataError
from memfit.streaming.data.reading import pick
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.npy import ArrayLocation, Npy, read_header

_LOCAL_HEADER = struct.Struct("<26xHH")
_ENDING = ".npy"


def open_file(path: Path, columns: Sequence[str] | None = None) -> Npy:
    """Returns the arrays of an archive, which must have the same number of rows.

    Args:
        path: The archive.
        columns: The arrays to read; others may be of any kind and length. All of them if `None`.

    Raises:
        DataError: It is compressed, damaged, or its arrays differ in rows.
    """
    file = DataFile(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                one.filename.removesuffix(_ENDING): one
                for one in archive.infolist()
                if one.filename.endswith(_ENDING)
            }
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(
            f"{path} is not an .npz file that can be read: {error}. Write or copy it again."
        ) from None
    if not members:
        raise DataError(f"{path} holds no arrays. Expected what numpy.savez writes.")
    names = pick(columns, list(members), str(path))
    found = {name: _find(file, members[name]) for name in names}
    rows = {name: stored.shape[0] for name, stored in found.items()}
    if len(set(rows.values())) > 1:
        each = ", ".join(f"{name} has {number}" for name, number in rows.items())
        raise DataError(
            f"The arrays in {path} differ in rows: {each}. Expected the same number. "
            "Name those that belong together: columns=[...]."
        )
    return Npy({name: (file, stored) for name, stored in found.items()})


def _find(file: DataFile, member: zipfile.ZipInfo) -> ArrayLocation:
    name = f"{file.path}[{member.filename.removesuffix(_ENDING)}]"
    if member.compress_type != zipfile.ZIP_STORED:
        raise DataError(
            f"{name} is compressed, so that its rows cannot be found. Write the file with "
            "numpy.savez instead of numpy.savez_compressed."
        )
    # The header in front of a member may differ in length from the one in the index.
    header = bytearray(_LOCAL_HEADER.size)
    file.read_at([(member.header_offset, len(header))], memoryview(header))
    offset = member.header_offset + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack(header))
    return read_header(file, offset, name, offset + member.file_size)
