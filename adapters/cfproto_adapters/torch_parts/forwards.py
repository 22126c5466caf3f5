"""Which layers and functions a module's forward method applies, one after the other.

The method itself is run, once, with nothing real in reach: its rows, its module, `torch` and `functional` are stand-ins
that know the few operations of dense networks. Whatever else a method does or asks for raises `Unread`, so branches on
data, counters, random numbers and calls of other code are never followed. Nothing global is patched, as tracers do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CellType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, NamedTuple

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MACHINERY = ("__call__", "_wrapped_call_impl", "_call_impl", "__getattr__", "__getattribute__")
_CONSTANTS = (int, float, bool, str, type(None))
_BUILTINS = {"range": range, "len": len, "enumerate": enumerate, "reversed": reversed, "zip": zip}
_COMPILED = (BuiltinFunctionType, MethodDescriptorType)
_MISSING = object()
_MOST_STEPS = 1000  # a loop in a method may never end


class Unread(Exception):  # noqa: N818 nothing went wrong
    """There is doubt about what a module computes."""


class Step(NamedTuple):
    """A stock layer, or a function by its name."""

    layer: Any = None
    name: str = ""
    slope: Any = 0.01  # of leaky_relu


def is_genuine(name: str, function: Any) -> bool:
    """Whether a function of PyTorch is the one that came with it, and nobody has put another in its place."""
    import torch

    if type(function) in _COMPILED:
        return bool(function.__name__ == name)
    code = getattr(function, "__code__", None)  # functools.wraps copies names and modules, never the code
    return code is not None and code.co_name == name and str(code.co_filename).startswith(str(torch.__path__[0]))


def steps_of(model: Any, columns: int) -> list[Step]:
    """The steps from rows (n, columns) to the scores, each of which takes what the one before gives, and nothing else.

    Raises Unread if that is not certain.
    """
    run = _Run()
    try:
        last = run.call(model, run.rows(columns))
        run.require_last(last)
    except Unread:
        raise
    except Exception as error:
        raise Unread from error
    return run.steps


def is_changed(module: Any) -> bool:
    """Whether hooks, a compiled call or methods of its own make a module compute something else than `forward` says."""
    import torch

    own, kind, stock = vars(module), type(module), torch.nn.Module
    overridden = any(getattr(kind, name, None) is not getattr(stock, name, None) for name in _MACHINERY)
    patched = any(name in own for name in ("forward", *_MACHINERY)) or own.get("_compiled_call_impl") is not None
    hooked = any(own.get(name) for name in HOOKS)
    return overridden or patched or hooked


def is_stock(module: Any) -> bool:
    """Whether the forward method of a module is PyTorch's own."""
    forward = type(module).forward
    return str(forward.__module__).startswith("torch.nn.modules.") and is_genuine("forward", forward)


class _Run:
    """One run of a forward method: its steps, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._last: _Rows | None = None

    def rows(self, columns: int) -> _Rows:
        """The rows after the last step; what stood for them before may not be used again."""
        self._last = rows = _Rows(self, columns)
        return rows

    def require_last(self, rows: Any) -> _Rows:
        """The rows after the last step: any other may have been changed in place since, or goes around a step."""
        if self._last is None or rows is not self._last:
            raise Unread
        return self._last

    def add(self, rows: Any, step: Step, columns: int) -> _Rows:
        self.require_last(rows)
        if len(self.steps) == _MOST_STEPS:
            raise Unread
        self.steps.append(step)
        return self.rows(columns)

    def call(self, module: Any, rows: Any) -> Any:
        """What module(rows) returns."""
        import torch

        kind = type(module)
        if is_changed(module):
            raise Unread
        if kind is torch.nn.Sequential and is_stock(module):
            for child in module:
                rows = self.call(child, rows)
            return rows
        if str(kind.__module__).startswith("torch."):
            columns = module.out_features if kind is torch.nn.Linear else self.require_last(rows).columns
            return self.add(rows, Step(module), columns)
        return self.method(kind.forward, module, rows)

    def method(self, function: Any, module: Any, *arguments: Any) -> Any:
        """What a method of a module returns for stand-ins."""
        if type(function) is not FunctionType or function.__code__.co_exceptiontable:
            raise Unread  # it may catch what is raised here
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if not all(type(value) in _CONSTANTS for value in defaults):
            raise Unread
        before = {name: _of_torch(self, value) for name, value in self._globals(function)}
        names = {**before, "__builtins__": _BUILTINS}
        cells = tuple(CellType(self._closed(cell.cell_contents)) for cell in function.__closure__ or ())
        copy = FunctionType(function.__code__, names, "read", function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        found = copy(_Module(self, module), *arguments)
        kept = all(names.get(name, _MISSING) is value for name, value in before.items())
        if not kept or len(names) > len(before) + 1:
            raise Unread  # it keeps something in a global name
        return found

    def _closed(self, value: Any) -> Any:
        """What stands for a value in a closure: PyTorch, imported around the class. Anything else may be a state."""
        if type(value) in _CONSTANTS:
            raise Unread
        return _known(self, value)

    def _globals(self, function: FunctionType) -> Iterator[tuple[str, Any]]:
        """The names in a function's code that are global, with their values."""
        for name in function.__code__.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]


class _Opaque:
    """What can be handed on, not looked at."""

    def _unread(self, *_: object) -> Any:
        raise Unread

    __bool__ = __eq__ = __ne__ = __hash__ = __repr__ = __str__ = __format__ = _unread
    __class__ = property(_unread)


class _Rows(_Opaque):
    """Stands for rows (n, columns)."""

    def __init__(self, run: _Run, columns: int) -> None:
        self._run, self.columns = run, columns

    def __getattr__(self, name: str) -> Any:
        if name in _FUNCTIONS:
            return lambda *args, **options: _FUNCTIONS[name](self._run, self, *args, **options)
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

    def contiguous(self) -> _Rows:
        return self._run.require_last(self)

    def view(self, *shape: Any) -> _Rows:
        """Rows as they are: (n, -1), (n, columns) or (-1, columns)."""
        n, columns = shape[0] if len(shape) == 1 else shape
        if not (n is _N or n == -1) or not (columns == self.columns or (n is _N and columns == -1)):
            raise Unread
        return self._run.require_last(self)

    reshape = view


class _Count(_Opaque):
    """Stands for the number of rows."""


_N = _Count()


class _Module(_Opaque):
    """Stands for a module: its submodules, methods and constants, none of which can be changed."""

    __slots__ = ("__module", "__run")  # two underscores: a module may have attributes of any other name

    def __init__(self, run: _Run, module: Any) -> None:
        object.__setattr__(self, "_Module__run", run)
        object.__setattr__(self, "_Module__module", module)

    def __call__(self, rows: Any) -> Any:
        return self.__run.call(self.__module, rows)

    def __setattr__(self, name: str, value: Any) -> None:
        raise Unread(name)

    def __iter__(self) -> Iterator[_Module | None]:
        _require_list(self.__module)
        return iter([_child(self.__run, child) for child in self.__module])

    def __len__(self) -> int:
        _require_list(self.__module)
        return len(self.__module)

    def __getitem__(self, index: int) -> _Module | None:
        _require_list(self.__module)
        if type(index) is not int:
            raise Unread
        return _child(self.__run, self.__module[index])

    def __getattr__(self, name: str) -> Any:
        """Look where Python would: in the instance, its class, its submodules."""
        module, run = self.__module, self.__run
        of_class = inspect.getattr_static(type(module), name, _MISSING)
        if type(of_class) not in {FunctionType, object, *_CONSTANTS}:
            raise Unread(name)  # a property, or something else that may be computed
        if name in vars(module):
            return _known(run, vars(module)[name])
        if of_class is _MISSING:
            return _child(run, module._modules[name])  # noqa: SLF001 a KeyError is an Unread
        if type(of_class) is FunctionType:
            return lambda *arguments: run.method(of_class, module, *arguments)
        return of_class


def _child(run: _Run, module: Any) -> _Module | None:
    return None if module is None else _Module(run, module)


def _require_list(module: Any) -> None:
    import torch

    if type(module) not in {torch.nn.Sequential, torch.nn.ModuleList} or is_changed(module):
        raise Unread


class _Torch:
    """Stands for torch, torch.nn or torch.nn.functional."""

    def __init__(self, run: _Run, module: ModuleType) -> None:
        self._run, self._module = run, module

    def __getattr__(self, name: str) -> Any:
        return _known(self._run, getattr(self._module, name))


def _of_torch(run: _Run, value: Any) -> Any:
    """What stands for a global name of a method."""
    import torch

    functional = torch.nn.functional
    if value is torch or value is torch.nn or value is functional:
        return _Torch(run, value)
    if type(value) in _CONSTANTS:
        return value
    for name, function in _FUNCTIONS.items():
        for module in (torch, functional):
            if getattr(module, name, None) is value:
                return lambda *args, function=function, **options: function(run, *args, **options)
    return _Unknown()


def _known(run: _Run, value: Any) -> Any:
    """The same of an attribute."""
    found = _of_torch(run, value)
    if type(found) is _Unknown:
        raise Unread
    return found


class _Unknown:
    """Stands for what is not known: any use of it fails."""


def _elementwise(name: str) -> Callable[..., _Rows]:
    def function(run: _Run, input: Any, inplace: Any = False) -> _Rows:  # noqa: A002, ARG001 as in PyTorch
        return run.add(input, Step(name=name), run.require_last(input).columns)

    return function


def _over_columns(name: str) -> Callable[..., _Rows]:
    def function(run: _Run, input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> _Rows:  # noqa: A002
        if type(dim) is not int or dim not in {1, -1} or type(_stacklevel) is not int or dtype is not None:
            raise Unread
        return run.add(input, Step(name=name), run.require_last(input).columns)

    return function


def _leaky_relu(run: _Run, input: Any, negative_slope: Any = 0.01, inplace: Any = False) -> _Rows:  # noqa: A002, ARG001
    return run.add(input, Step(name="leaky_relu", slope=negative_slope), run.require_last(input).columns)


def _dropout(run: _Run, input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> _Rows:  # noqa: A002, ARG001
    if training is not False:
        raise Unread
    return run.require_last(input)


def _flatten(run: _Run, input: Any, start_dim: Any = 0, end_dim: Any = -1) -> _Rows:  # noqa: A002
    if start_dim not in {1, -1} or end_dim not in {1, -1}:
        raise Unread
    return run.require_last(input)


_FUNCTIONS: dict[str, Callable[..., _Rows]] = {
    "relu": _elementwise("relu"),
    "tanh": _elementwise("tanh"),
    "sigmoid": _elementwise("sigmoid"),
    "softmax": _over_columns("softmax"),
    "log_softmax": _over_columns("log_softmax"),
    "leaky_relu": _leaky_relu,
    "dropout": _dropout,
    "flatten": _flatten,
}
