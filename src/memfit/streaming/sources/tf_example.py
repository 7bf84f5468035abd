"""`tf.train.Example` messages as columns, without TensorFlow.

Features are found in the first records: one that has as many numbers in each becomes an array,
others become sequences. A feature of bytes is a picture or a text.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Array, Column, Values
from memfit.streaming.files.optional_packages import load
from memfit.streaming.sources.pictures import Pictures

_FLOATS, _INTS, _BYTES, _PICTURES, _TEXTS = "floats", "ints", "bytes", "pictures", "texts"
_KINDS = {"float_list": _FLOATS, "int64_list": _INTS, "bytes_list": _BYTES}
_LISTS = {kind: name for name, kind in _KINDS.items()}
_DTYPES: dict[str, np.dtype[Any]] = {
    _FLOATS: np.dtype(np.float32),
    _INTS: np.dtype(np.int64),
}

# A record with its number, from 0.
Record = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Feature:
    """What all records have in common in one feature.

    Attributes:
        name: Its name.
        kind: `"floats"`, `"ints"`, `"pictures"` or `"texts"`.
        count: How many values each record has; `None` if they differ.
        mean_count: How many on average.
    """

    name: str
    kind: str
    count: int | None
    mean_count: float

    @property
    def column(self) -> Column:
        """The column of a feature of numbers."""
        if self.count is None:
            return Column(self.name, _DTYPES[self.kind], (), self.mean_count)
        return Column(self.name, _DTYPES[self.kind], () if self.count == 1 else (self.count,))


class Examples:
    """The records of a file, decoded.

    Args:
        name: The file, for messages.
        first: Its first records, which tell the features.
        columns: The features to read; all of them if `None`.
        image_size: Height and width of pictures; `None` if they have the same size already.

    Raises:
        DataError: A feature is not there, or holds what cannot be streamed.
    """

    def __init__(
        self,
        name: str,
        first: Iterable[Record],
        columns: Sequence[str] | None = None,
        image_size: tuple[int, int] | None = None,
    ) -> None:
        self._name = name
        self._columns = columns
        self.features = self._find_features(first)
        self._known = {one.name for one in self.features}
        self.is_numbers = all(one.kind in _DTYPES for one in self.features)
        # Name, list, number of values and type of each, if all have a fixed number of values.
        self._quick = [
            (one.name, _LISTS[one.kind], one.count, _DTYPES[one.kind])
            for one in self.features
            if self.is_numbers and all(each.count is not None for each in self.features)
        ]
        has_pictures = any(one.kind == _PICTURES for one in self.features)
        self._pictures = Pictures(image_size) if has_pictures else None

    def decode(self, record: Record) -> list[Any]:
        """Returns the values of each feature of a record.

        Raises:
            DataError: It does not have these features.
        """
        found = self._decode_quickly(record)
        return self._decode_with_checks(record) if found is None else found

    def _decode_quickly(self, record: Record) -> list[Any] | None:
        """The numbers of a record that is as expected, as most are: to check each takes long."""
        if not self._quick:
            return None
        try:
            features = _example_class().FromString(record[1]).features.feature
        except _decode_error():
            return None
        if self._columns is None and len(features) != len(self._quick):
            return None
        found = []
        for name, kind, count, dtype in self._quick:
            # Of a feature of another kind this list is empty.
            listed = getattr(features[name], kind)
            values = listed.value
            if len(values) != count:
                return None
            if count == 1:
                found.append(values[0])
            elif dtype.kind == "f":
                # Written again, they are its last bytes: several times faster than one by one.
                data = listed.SerializeToString()
                found.append(np.frombuffer(data, "<f4", count, len(data) - 4 * count))
            else:
                found.append(np.array(values, dtype))
        return found

    def _decode_with_checks(self, record: Record) -> list[Any]:
        found = self._parse(record)
        if self._columns is None:
            for name in found:
                if name not in self._known:
                    self._refuse(record, f"has a feature {name!r} that the first records lack")
        return [
            self._decode_one(one, record, *found.get(one.name, (None, ()))) for one in self.features
        ]

    def stack(self, rows: Sequence[list[Any]]) -> dict[str, Values]:
        """Returns the columns of decoded records."""
        by_feature = zip(*rows, strict=True) if rows else ((),) * len(self.features)
        return {
            one.name: _stack(one, values)
            for one, values in zip(self.features, by_feature, strict=True)
        }

    def _find_features(self, records: Iterable[Record]) -> tuple[Feature, ...]:
        kinds: dict[str, str] = {}
        counts: dict[str, list[int]] = {}
        others: set[str] = set()
        num_records = 0
        for record in records:
            num_records += 1
            for name, (kind, values) in self._parse(record).items():
                if self._columns is not None and name not in self._columns:
                    others.add(name)
                    continue
                exact = self._find_kind(record, name, values) if kind == _BYTES else kind
                if kinds.setdefault(name, exact) != exact:
                    self._refuse_kind(record, name, kind, kinds[name])
                counts.setdefault(name, []).append(len(values))
        self._check_found(counts, others)
        return tuple(
            _summarise(name, kinds[name], counts[name], num_records)
            for name in self._columns or sorted(counts)
        )

    def _check_found(self, counts: Mapping[str, Any], others: set[str]) -> None:
        missing = [one for one in self._columns or () if one not in counts]
        if missing:
            raise DataError(
                f"There is no column {missing[0]!r} in the first records of {self._name}. Found: "
                f"{', '.join(sorted({*counts, *others}))}."
            )
        if not counts:
            raise DataError(
                f"{self._name} has no features: its first records are empty. Leave it out."
            )

    def _parse(self, record: Record) -> dict[str, tuple[str, Any]]:
        number, data = record
        try:
            features = _example_class().FromString(data).features.feature
        except _decode_error() as error:
            raise DataError(
                f"Record {number + 1} of {self._name} is not a tf.train.Example: {error}. Write or "
                "copy the file again."
            ) from None
        found = {}
        for name, feature in features.items():
            kind = feature.WhichOneof("kind")
            if kind is not None:
                found[name] = (_KINDS[kind], getattr(feature, kind).value)
        return found

    def _find_kind(self, record: Record, name: str, values: Sequence[bytes]) -> str:
        """What the bytes of a feature are."""
        if len(values) == 1 and _is_picture(values[0]):
            return _PICTURES
        if len(values) == 1 and _is_text(values[0]):
            return _TEXTS
        what = "that are neither a picture (JPEG, PNG, WebP) nor UTF-8 text"
        if len(values) != 1:
            what = f"in {len(values)} values; only one per record can be streamed"
        raise DataError(
            f"Feature {name!r} of {self._name} (record {record[0] + 1}) holds bytes {what}. Write "
            "what they stand for as a float_list or an int64_list, or leave the feature out: name "
            "the others in columns=[...]."
        )

    def _decode_one(self, feature: Feature, record: Record, kind: str | None, values: Any) -> Any:
        expected = feature.kind if feature.kind in _DTYPES else _BYTES
        if kind is not None and kind != expected:
            self._refuse_kind(record, feature.name, kind, expected)
        if feature.count is not None and len(values) != feature.count:
            self._refuse(
                record,
                f"has {len(values)} values of feature {feature.name!r}; the first records have "
                f"{feature.count}",
            )
        if feature.kind == _PICTURES and self._pictures is not None:
            name = f"Feature {feature.name!r} of record {record[0] + 1} of {self._name}"
            return self._pictures.decode(name, values[0])
        if feature.kind == _TEXTS:
            if not _is_text(values[0]):
                self._refuse(record, f"has bytes in {feature.name!r} that are not UTF-8 text")
            return values[0].decode()
        return values[0] if feature.count == 1 else np.array(values, _DTYPES[feature.kind])

    def _refuse(self, record: Record, reason: str) -> NoReturn:
        raise DataError(
            f"Record {record[0] + 1} of {self._name} {reason}. Expected the same features in every "
            "record. Leave it out, or write it again."
        )

    def _refuse_kind(self, record: Record, feature: str, kind: str, expected: str) -> NoReturn:
        self._refuse(record, f"has {kind} in feature {feature!r}; records before have {expected}")


def _summarise(name: str, kind: str, counts: list[int], num_records: int) -> Feature:
    is_same = len(set(counts)) == 1 and len(counts) == num_records and counts[0] > 0
    is_number = kind in _DTYPES
    count = (counts[0] if is_same else None) if is_number else 1
    return Feature(name, kind, count, sum(counts) / num_records)


def _stack(feature: Feature, values: Sequence[Any]) -> Values:
    if feature.kind == _PICTURES:
        return np.stack(values)
    if feature.kind == _TEXTS:
        return np.array(values, np.str_)
    dtype = _DTYPES[feature.kind]
    if feature.count is None:
        steps: Array = np.concatenate([np.empty(0, dtype), *values])
        return Ragged(steps, np.cumsum([0, *map(len, values)]))
    return np.array(values, dtype).reshape(-1, *feature.column.shape)


def _is_picture(data: bytes) -> bool:
    is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    return data.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n")) or is_webp


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@functools.cache
def _example_class() -> Any:
    """Returns the class of `tf.train.Example`, made without the code that TensorFlow generates."""
    descriptor_pb2 = _load_protobuf("descriptor_pb2")
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="memfit_example.proto", package="m", syntax="proto3"
    )

    def add(message: Any, name: str, number: int, kind: int, **options: Any) -> None:
        options.setdefault("label", field.LABEL_OPTIONAL)
        message.field.add(name=name, number=number, type=kind, **options)

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    lists = {"bytes_list": field.TYPE_BYTES, "float_list": field.TYPE_FLOAT}
    for number, (name, kind) in enumerate((*lists.items(), ("int64_list", field.TYPE_INT64)), 1):
        values = file.message_type.add(name=name)
        add(values, "value", 1, kind, label=field.LABEL_REPEATED)
        add(feature, name, number, field.TYPE_MESSAGE, type_name=f".m.{name}", oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field.TYPE_STRING)
    add(entry, "value", 2, field.TYPE_MESSAGE, type_name=".m.Feature")
    by_name = {"type_name": ".m.Features.FeatureEntry", "label": field.LABEL_REPEATED}
    add(features, "feature", 1, field.TYPE_MESSAGE, **by_name)
    example = file.message_type.add(name="Example")
    add(example, "features", 1, field.TYPE_MESSAGE, type_name=".m.Features")
    # A pool of its own: TensorFlow, if it is loaded, has a message of this name in the common one.
    pool = _load_protobuf("descriptor_pool").DescriptorPool()
    pool.Add(file)
    return _load_protobuf("message_factory").GetMessageClass(
        pool.FindMessageTypeByName("m.Example")
    )


@functools.cache
def _decode_error() -> type[Exception]:
    return _load_protobuf("message").DecodeError  # type: ignore[no-any-return]  # protobuf's


def _load_protobuf(module: str) -> Any:
    return load(f"google.protobuf.{module}", "TFRecord files", "tfrecord", package="protobuf")
