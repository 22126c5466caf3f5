"""Which layers and operations a module's forward method applies to rows, and to which.

The method itself is run, once, with nothing real in reach: its rows, its module, `torch` and `functional` are stand-ins
that know the few operations of dense networks. Whatever else a method does or asks for raises `Unread`, so branches on
data, counters, random numbers and calls of other code are never followed. Nothing global is patched, as tracers do.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from itertools import pairwise
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

from cfproto_adapters.torch_parts.rows import FUNCTIONS, Memory, Opaque, Rows, Step, Tape, Unread, Weights

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MACHINERY = ("__call__", "_wrapped_call_impl", "_call_impl", "__getattr__", "__getattribute__")
_CONSTANTS = (int, float, bool, str, type(None))
_BUILTINS = {"range": range, "len": len, "enumerate": enumerate, "reversed": reversed, "zip": zip}
_COMPILED = (BuiltinFunctionType, MethodDescriptorType)
_MISSING = object()


def is_genuine(name: str, function: Any) -> bool:
    """Whether a function of PyTorch is the one that came with it, and nobody has put another in its place."""
    import torch

    if type(function) in _COMPILED:
        return bool(function.__name__ == name)
    code = getattr(function, "__code__", None)  # functools.wraps copies names and modules, never the code
    return code is not None and code.co_name == name and str(code.co_filename).startswith(str(torch.__path__[0]))


def steps_of(model: Any, columns: int) -> list[Step]:
    """The steps from rows (n, columns) to the scores, which are what the last gives. Unread if that is not certain."""
    run = _Run()
    try:
        last = run.tape.use(run.call(model, Rows(run.tape, 0, columns, Memory())))
    except Unread:
        raise
    except Exception as error:
        raise Unread from error
    return run.tape.steps[: last.at]


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
    """One run of a forward method."""

    def __init__(self) -> None:
        self.tape = Tape()

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
            return self.layer(module, self.tape.use(rows))
        return self.method(kind.forward, module, rows)

    def layer(self, layer: Any, rows: Rows) -> Rows:
        """What a layer of PyTorch returns."""
        import torch

        nn, kind = torch.nn, type(layer)
        taken = given = rows.columns
        if kind is nn.Linear:
            taken, given = layer.in_features, layer.out_features
        elif kind is nn.BatchNorm1d:
            taken = given = layer.num_features
        elif kind is nn.LayerNorm:
            (taken,) = layer.normalized_shape
        if taken != rows.columns:
            raise Unread
        shares = kind in {nn.Identity, nn.Dropout, nn.Flatten}
        return self.tape.add([rows], given, layer=layer, shares=shares, in_place=vars(layer).get("inplace", False))

    def method(self, function: Any, module: Any, *arguments: Any) -> Any:
        """What a method of a module returns for stand-ins."""
        if type(function) is not FunctionType or not _is_plain(function.__code__):
            raise Unread
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


def _is_plain(code: CodeType) -> bool:
    """Whether code catches nothing that is raised here and asks of nothing but None whether a name stands for it."""
    found = list(dis.get_instructions(code))
    known = all(a.opname == "LOAD_CONST" and a.argval is None for a, b in pairwise(found) if b.opname == "IS_OP")
    inner = [each for each in code.co_consts if type(each) is CodeType]
    return known and not code.co_exceptiontable and all(map(_is_plain, inner))


class _Module(Opaque):
    """Stands for a module: its submodules, methods and constants, none of which can be changed."""

    __slots__ = ("__module", "__run")  # two underscores: a module may have attributes of any other name

    def __init__(self, run: _Run, module: Any) -> None:
        object.__setattr__(self, "_Module__run", run)
        object.__setattr__(self, "_Module__module", module)

    def __call__(self, rows: Any) -> Any:
        return self.__run.call(self.__module, rows)

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
            return _registered(run, module, name)
        if type(of_class) is FunctionType:
            return lambda *arguments: run.method(of_class, module, *arguments)
        return of_class


def _registered(run: _Run, module: Any, name: str) -> Any:
    """A parameter, buffer or submodule, looked for in the order of PyTorch."""
    for registered in (module._parameters, module._buffers):  # noqa: SLF001
        if name in registered:
            return None if registered[name] is None else Weights(registered[name])
    return _child(run, module._modules[name])  # noqa: SLF001 a KeyError is an Unread


def _child(run: _Run, module: Any) -> _Module | None:
    if module is not None and is_changed(module):
        raise Unread
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
    for name, function in FUNCTIONS.items():
        for module in (torch, functional):
            if getattr(module, name, None) is value:
                return lambda *args, function=function, **options: function(run.tape, *args, **options)
    return _Unknown()


def _known(run: _Run, value: Any) -> Any:
    """The same of an attribute."""
    found = _of_torch(run, value)
    if type(found) is _Unknown:
        raise Unread
    return found


class _Unknown:
    """Stands for what is not known: any use of it fails."""
