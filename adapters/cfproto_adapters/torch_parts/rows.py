"""What stands for rows while a forward method is read, and the operations on rows that are known.

Every operation is noted as a step. A step that works in place changes what other names stand for, too: whatever shares
its memory may not be used any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_MOST_STEPS = 1000  # a loop in a method may never end


class Unread(Exception):  # noqa: N818 nothing went wrong
    """There is doubt about what a module computes."""


class Step(NamedTuple):
    """A stock layer, or an operation by its name."""

    sources: tuple[int, ...]  # what it takes: 0 is the rows, i what the i-th step gives
    layer: Any = None
    name: str = ""
    # slope, alpha, approximation or ends of a function; shift, divisor, factor and offset of scale, numbers, tensors or
    # None; start, stop and step of columns
    numbers: tuple[Any, ...] = ()


class Opaque:
    """What can be handed on, not looked at."""

    def _unread(self, *_: object) -> Any:
        raise Unread

    __bool__ = __eq__ = __ne__ = __hash__ = __repr__ = __str__ = __format__ = __setattr__ = _unread
    __class__ = property(_unread)


class Count(Opaque):
    """Stands for the number of rows."""


class Weights(Opaque):
    """Stands for a parameter or buffer."""

    tensor: Any

    def __init__(self, tensor: Any) -> None:
        vars(self).update(tensor=tensor)


class Memory:
    """What several rows share, and whether a step has changed it in place."""

    changed = False


class Tape:
    """The steps of one run of a forward method, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def use(self, rows: Any) -> Rows:
        """The rows, if they are some and nothing has changed them since."""
        if type(rows) is not Rows or rows.memory.changed:
            raise Unread
        return rows

    def add(
        self,
        rows: Sequence[Any],
        columns: int,
        name: str = "",
        numbers: tuple[Any, ...] = (),
        *,
        layer: Any = None,
        shares: bool = False,
        in_place: Any = False,
    ) -> Rows:
        """What a step gives for rows. shares: the memory of the first of them; in_place: it is written there."""
        used = [self.use(each) for each in rows]
        if len(self.steps) == _MOST_STEPS or type(columns) is not int or columns < 1:
            raise Unread
        self.steps.append(Step(tuple(each.at for each in used), layer, name, numbers))
        memory = used[0].memory if shares else Memory()
        if in_place is not False:
            used[0].memory.changed = True
        return Rows(self, len(self.steps), columns, memory)


def _written(operator: Callable[[Any, Any], Rows]) -> Callable[[Any, Any], Rows]:
    """The operator that writes what it gives into the memory of the first rows."""

    def written(rows: Rows, other: Any) -> Rows:
        found = operator(rows, other)
        rows.memory.changed = True
        return found

    return written


class Rows(Opaque):
    """Stands for rows (n, columns): what step `at` gives, or 0 for the rows themselves."""

    tape: Tape
    at: int
    columns: int
    memory: Memory

    def __init__(self, tape: Tape, at: int, columns: int, memory: Memory) -> None:
        vars(self).update(tape=tape, at=at, columns=columns, memory=memory)

    def __getattr__(self, name: str) -> Any:
        if name in FUNCTIONS:
            return lambda *args, **options: FUNCTIONS[name](self.tape, self, *args, **options)
        raise Unread(name)

    @property
    def shape(self) -> tuple[Any, Any]:
        return _N, self.columns

    @property
    def ndim(self) -> int:
        return 2

    def dim(self) -> int:
        return 2

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def contiguous(self) -> Rows:
        return self.tape.use(self)

    def view(self, *shape: Any) -> Rows:
        """Rows as they are: (n, -1), (n, columns) or (-1, columns)."""
        n, columns = shape[0] if len(shape) == 1 else shape
        if not (n is _N or n == -1) or not (columns == self.columns or (n is _N and columns == -1)):
            raise Unread
        return self.tape.use(self)

    reshape = view

    def __getitem__(self, key: Any) -> Rows:
        """Some columns: [:, start:stop]."""
        rows, columns = key
        if type(rows) is not slice or type(columns) is not slice:
            raise Unread
        if not (rows.start is rows.stop is rows.step is None):
            raise Unread
        return _columns(self.tape, self, range(*columns.indices(self.columns)))

    def __add__(self, other: Any) -> Rows:
        return _add(self.tape, self, other)

    def __sub__(self, other: Any) -> Rows:
        return _sub(self.tape, self, other)

    def __rsub__(self, other: Any) -> Rows:
        return _scale(self.tape, self, factor=-1, offset=other)

    def __mul__(self, other: Any) -> Rows:
        return _mul(self.tape, self, other)

    def __truediv__(self, other: Any) -> Rows:
        return _scale(self.tape, self, divisor=other)

    def __neg__(self) -> Rows:
        return _scale(self.tape, self, factor=-1)

    __radd__, __rmul__ = __add__, __mul__

    __iadd__, __isub__ = _written(__add__), _written(__sub__)
    __imul__, __itruediv__ = _written(__mul__), _written(__truediv__)


_N = Count()


def _scale(tape: Tape, rows: Any, **by: Any) -> Rows:
    """(rows - shift) / divisor * factor + offset, numbers or weights of as many columns or one; only what is given."""
    columns = tape.use(rows).columns
    values = {name: _value(value, columns) for name, value in by.items()}
    return tape.add([rows], columns, "scale", tuple(map(values.get, ("shift", "divisor", "factor", "offset"))))


def _value(value: Any, columns: int) -> Any:
    """The number, or the tensor of weights."""
    if type(value) is Weights:
        shape = tuple(value.tensor.shape)
        if shape not in {(), (1,), (columns,), (1, 1), (1, columns)}:
            raise Unread
        return value.tensor
    if type(value) not in {int, float} or not math.isfinite(value):
        raise Unread
    return value


def _add(tape: Tape, input: Any, other: Any) -> Rows:  # noqa: A002 as in PyTorch
    if type(other) is not Rows:
        return _scale(tape, input, offset=other)
    return tape.add([input, other], _wider(tape, input, other), "add")


def _sub(tape: Tape, input: Any, other: Any) -> Rows:  # noqa: A002
    if type(other) is not Rows:
        return _scale(tape, input, shift=other)
    return _add(tape, input, -other)


def _mul(tape: Tape, input: Any, other: Any) -> Rows:  # noqa: A002
    if type(other) is not Rows:
        return _scale(tape, input, factor=other)
    return tape.add([input, other], _wider(tape, input, other), "mul")


def _neg(tape: Tape, input: Any) -> Rows:  # noqa: A002
    return _scale(tape, input, factor=-1)


def _wider(tape: Tape, one: Any, other: Any) -> int:
    """The columns of two rows as one, where a single one stands for as many as the other has."""
    narrow, wide = sorted([tape.use(one).columns, tape.use(other).columns])
    if narrow not in {1, wide}:
        raise Unread
    return wide


def _cat(tape: Tape, tensors: Any, dim: Any = 0) -> Rows:
    if type(tensors) not in {list, tuple} or len(tensors) < 2 or type(dim) is not int or dim not in {1, -1}:  # noqa: PLR2004 one is no join
        raise Unread
    return tape.add(tensors, sum(tape.use(each).columns for each in tensors), "cat")


def _chunk(tape: Tape, input: Any, chunks: Any, dim: Any = 0) -> tuple[Rows, ...]:  # noqa: A002
    if type(chunks) is not int or type(dim) is not int or dim not in {1, -1}:
        raise Unread
    columns = range(tape.use(input).columns)
    size = -(-len(columns) // chunks)
    return tuple(_columns(tape, input, columns[start : start + size]) for start in columns[::size])


def _columns(tape: Tape, rows: Any, places: range) -> Rows:
    return tape.add([rows], len(places), "columns", (places.start, places.stop, places.step), shares=True)


def _elementwise(name: str) -> Callable[..., Rows]:
    def function(tape: Tape, input: Any, inplace: Any = False) -> Rows:  # noqa: A002
        return tape.add([input], tape.use(input).columns, name, in_place=inplace)

    return function


def _over_columns(name: str) -> Callable[..., Rows]:
    def function(tape: Tape, input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Rows:  # noqa: A002
        if type(dim) is not int or dim not in {1, -1} or type(_stacklevel) is not int or dtype is not None:
            raise Unread
        return tape.add([input], tape.use(input).columns, name)

    return function


def _leaky_relu(tape: Tape, input: Any, negative_slope: Any = 0.01, inplace: Any = False) -> Rows:  # noqa: A002
    return tape.add([input], tape.use(input).columns, "leaky_relu", (negative_slope,), in_place=inplace)


def _elu(tape: Tape, input: Any, alpha: Any = 1.0, inplace: Any = False) -> Rows:  # noqa: A002
    return tape.add([input], tape.use(input).columns, "elu", (alpha,), in_place=inplace)


def _gelu(tape: Tape, input: Any, approximate: Any = "none") -> Rows:  # noqa: A002
    return tape.add([input], tape.use(input).columns, "gelu", (approximate,))


def _clamp(tape: Tape, input: Any, min: Any = None, max: Any = None) -> Rows:  # noqa: A002
    return tape.add([input], tape.use(input).columns, "clamp", (min, max))


def _hardtanh(tape: Tape, input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False) -> Rows:  # noqa: A002
    return tape.add([input], tape.use(input).columns, "hardtanh", (min_val, max_val), in_place=inplace)


def _relu6(tape: Tape, input: Any, inplace: Any = False) -> Rows:  # noqa: A002
    return _hardtanh(tape, input, 0.0, 6.0, inplace)


def _dropout(tape: Tape, input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Rows:  # noqa: A002, ARG001
    if training is not False:
        raise Unread
    return tape.use(input)


def _flatten(tape: Tape, input: Any, start_dim: Any = 0, end_dim: Any = -1) -> Rows:  # noqa: A002
    if start_dim not in {1, -1} or end_dim not in {1, -1}:
        raise Unread
    return tape.use(input)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": _elementwise("relu"),
    "tanh": _elementwise("tanh"),
    "sigmoid": _elementwise("sigmoid"),
    "softmax": _over_columns("softmax"),
    "log_softmax": _over_columns("log_softmax"),
    "silu": _elementwise("silu"),
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "gelu": _gelu,
    "selu": _elementwise("selu"),
    "clamp": _clamp,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    "dropout": _dropout,
    "flatten": _flatten,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "neg": _neg,
    "cat": _cat,
    "chunk": _chunk,
}
OPERATORS = (
    "__add__",
    "__sub__",
    "__mul__",
    "__truediv__",
    "__neg__",
    "__iadd__",
    "__isub__",
    "__imul__",
    "__getitem__",
)
