"""Which adapter a model goes to, decided without importing anything."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from cfproto_plugin import AdapterSpec, claims, hookimpl
from cfproto_plugin.callables import CallableAdapter
from cfproto_plugin.claims import adapt
from cfproto_plugin.errors import AmbiguousAdapterError, ModelError, NoAdapterError, PluginError, UnknownNameError
from cfproto_plugin.plugins import PluginReport, Registry


class Base:
    class Inner:
        """A class inside a class."""


class Middle(Base):
    pass


class Net(Middle):
    def __call__(self, x):
        return np.full((len(x), 2), 0.5)


class Toy:
    """An adapter that remembers what it was made for."""

    def __init__(self, model, *, role="classifier", **options):
        self.model, self.role, self.options = model, role, options

    def predict(self, x):
        return np.full((len(x), 2), 0.5)


class Offers:
    """A plugin that offers the given adapters."""

    def __init__(self, *specs):
        self.specs = specs

    @hookimpl
    def cfproto_adapters(self):
        return self.specs


def spec(name, *classes, factory=Toy, priority=0):
    return AdapterSpec(name, tuple(f"{__name__}:{cls}" for cls in classes), factory, priority)


@pytest.fixture
def plugins(monkeypatch):
    """Put an empty registry in place of the process's own and return a function that fills it: name=spec."""
    registry = Registry()
    monkeypatch.setattr(claims, "registry", lambda: registry)

    def fill(**specs):
        for name, offered in specs.items():
            registry.register(Offers(offered), name)
        return registry

    return fill


# Ranking


def test_nearest_class_in_the_mro_wins_whatever_the_priority(plugins):
    plugins(far=spec("far", "Base", priority=100), near=spec("near", "Middle"))
    assert adapt(Net())[0] == "near"
    assert adapt(Base())[0] == "far"


def test_nearest_of_several_claims_counts(plugins):
    plugins(a=spec("a", "Base", "Net"), b=spec("b", "Middle"))
    assert adapt(Net())[0] == "a"
    assert adapt(Middle())[0] == "b"


def test_priority_decides_between_claims_of_the_same_class(plugins):
    plugins(low=spec("low", "Base"), high=spec("high", "Base", priority=1), lower=spec("lower", "Base", priority=-1))
    assert adapt(Net())[0] == "high"


def test_tie_is_an_error_that_names_both_plugins_and_what_to_do(plugins):
    plugins(one=spec("a", "Base"), two=spec("b", "Base"), three=spec("c", "Base", priority=-1))
    with pytest.raises(AmbiguousAdapterError) as caught:
        adapt(Net())
    assert str(caught.value) == (
        f"{__name__}.Net is claimed equally by a of plugin one (registered at run time) and b of plugin two "
        "(registered at run time).\n  Pass adapter=<name>, or block one plugin by name in CFPROTO_DISABLE_PLUGINS."
    )
    assert adapt(Net(), "b")[0] == "b"


def test_claimed_model_that_can_be_called_goes_to_its_plugin(plugins):
    plugins(toy=spec("toy", "Base"))
    name, made = adapt(model := Net(), role="transform")
    assert name == "toy"
    assert (made.model, made.role) == (model, "transform")


def test_class_inside_a_class_can_be_claimed(plugins):
    plugins(toy=spec("toy", "Base.Inner"))
    assert adapt(Base.Inner())[0] == "toy"


# Nothing is imported


def test_claim_never_imports_a_module(plugins, tmp_path, monkeypatch):
    (tmp_path / "cfproto_test_unimported.py").write_text("class Net: pass", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    claim = AdapterSpec("x", ("cfproto_test_unimported:Net", "cfproto_test_unimported.sub:Net"), Toy)
    plugins(x=claim, toy=spec("toy", "Base"))
    assert adapt(Net())[0] == "toy"
    assert "cfproto_test_unimported" not in sys.modules


def test_claim_never_wakes_a_lazy_module(plugins, monkeypatch):
    lazy = ModuleType("cfproto_test_lazy")

    def wake(name):
        raise AssertionError(f"{name} was looked up by getattr, which would import it")

    lazy.__getattr__ = wake
    monkeypatch.setitem(sys.modules, "cfproto_test_lazy", lazy)
    plugins(x=AdapterSpec("x", ("cfproto_test_lazy:Net",), Toy), toy=spec("toy", "Base"))
    assert adapt(Net())[0] == "toy"


def test_claim_of_a_class_that_does_not_exist_claims_nothing(plugins):
    plugins(x=spec("x", "Missing", "Base.Missing"), toy=spec("toy", "Base"))
    assert adapt(Net())[0] == "toy"


# Adapters given by the user


def test_adapter_by_name_skips_detection(plugins):
    plugins(toy=spec("toy", "Base"), other=spec("other", "Net"))
    name, made = adapt(model := Net(), "toy", role="transform")
    assert (name, made.model, made.role) == ("toy", model, "transform")


def test_unknown_adapter_name_suggests_the_nearest(plugins):
    plugins(toy=spec("torch", "Base"))
    with pytest.raises(UnknownNameError, match=r"no adapters named 'pytorch'\. Did you mean 'torch'\?"):
        adapt(Net(), "pytorch")


def test_adapter_instance_is_used_as_it_is(plugins):
    plugins(toy=spec("toy", "Base"))
    assert adapt(Net(), mine := Toy(None)) == ("Toy", mine)


@pytest.mark.parametrize("wrong", [Toy, 3, lambda x: x])
def test_adapter_that_is_none_is_refused(plugins, wrong):
    with pytest.raises(ModelError, match="is no adapter; pass a registered name, or an object with the method"):
        adapt(Net(), wrong)


# Models that nothing claims


def test_model_with_predict_and_vjp_is_its_own_adapter(plugins):
    class Own(Toy):
        def vjp(self, x):
            return self.predict(x), lambda cotangent: np.zeros_like(x)

    assert adapt(own := Own(None)) == ("Own", own)


def test_function_becomes_a_callable_adapter(plugins):
    name, made = adapt(lambda x: x)
    assert name == "callable"
    assert isinstance(made, CallableAdapter)


def test_unclaimed_model_says_what_is_installed_what_is_broken_and_what_to_do(plugins):
    registry = plugins(b=spec("torch", "Net"), a=spec("keras", "Net"))
    registry.reports.append(PluginReport("acme", "broken", "acme-cf 2.0", error="ImportError: no acme_core"))
    with pytest.raises(NoAdapterError) as caught:
        adapt(Base())
    assert str(caught.value) == (
        f"no adapter claims {__name__}.Base\n  installed: keras, torch   broken: acme (ImportError: no acme_core)\n"
        "  Pass adapter=<name>, pass a function x -> probabilities, or install a plugin that claims it."
    )


def test_unclaimed_model_without_any_plugin_says_none(plugins):
    with pytest.raises(NoAdapterError, match="installed: none\n"):
        adapt(Base())


def test_class_instead_of_a_trained_model_is_refused(plugins):
    plugins(toy=spec("toy", "Base"))
    for given in (None, "toy"):
        with pytest.raises(ModelError, match=rf"{__name__}\.Net is a class; pass a trained model"):
            adapt(Net, given)


# Factories that fail


def test_factory_that_fails_is_a_plugin_error_with_its_cause(plugins):
    def fail(model, **options):
        raise KeyError("weights")

    plugins(bad=spec("bad", "Base", factory=fail))
    with pytest.raises(PluginError, match=rf"adapter 'bad' failed on {__name__}\.Net: KeyError: 'weights'") as caught:
        adapt(Net())
    assert isinstance(caught.value.__cause__, KeyError)


def test_error_raised_on_purpose_by_a_factory_is_passed_on(plugins):
    def refuse(model, **options):
        raise ModelError("it is a regressor")

    plugins(bad=spec("bad", "Base", factory=refuse))
    with pytest.raises(ModelError, match=r"^it is a regressor$"):
        adapt(Net())


def test_factory_that_returns_no_adapter_is_named(plugins):
    plugins(bad=spec("bad", "Base", factory=lambda model, **options: 3))
    with pytest.raises(ModelError, match=r"adapter 'bad' returned int, which has no predict\(x\) method"):
        adapt(Net())
