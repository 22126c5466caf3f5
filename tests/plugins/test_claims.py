"""Which adapter a model goes to, decided without importing anything."""

from __future__ import annotations

import pickle
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from distributions import Distributions

from cfproto_plugin import AdapterSpec, CounterfactualExplainer, hookimpl
from cfproto_plugin.errors import (
    AmbiguousAdapterError,
    InputError,
    ModelError,
    NoAdapterError,
    PluginError,
    UnknownNameError,
)
from cfproto_plugin.plugins import PluginReport, Registry, claims
from cfproto_plugin.plugins.claims import adapt, adapted
from cfproto_plugin.plugins.functions import FunctionAdapter


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


@pytest.fixture
def distribution(tmp_path):
    """Install distributions with plugins for processes of their own."""
    return Distributions(tmp_path)


def claiming(name, prediction="np.full((len(x), 2), 0.5)"):
    """Return the source of a plugin whose adapter claims collections.Counter."""
    return f"""
        import numpy as np
        class Adapter:
            def __init__(self, model, **options): pass
            def predict(self, x): return {prediction}
        @hookimpl
        def cfproto_adapters(): return [AdapterSpec("{name}", ("collections:Counter",), Adapter)]
    """


# Ranking


def test_nearest_class_in_the_mro_wins_whatever_the_priority(plugins):
    plugins(far=spec("far", "Base", priority=100), near=spec("near", "Middle"))
    assert adapted(Net()).name == "near"
    assert adapted(Base()).name == "far"


def test_nearest_of_several_claims_counts(plugins):
    plugins(a=spec("a", "Base", "Net"), b=spec("b", "Middle"))
    assert adapted(Net()).name == "a"
    assert adapted(Middle()).name == "b"


def test_priority_decides_between_claims_of_the_same_class(plugins):
    plugins(low=spec("low", "Base"), high=spec("high", "Base", priority=1), lower=spec("lower", "Base", priority=-1))
    assert adapted(Net()).name == "high"


def test_tie_is_an_error_that_names_both_plugins_and_what_to_do(plugins):
    plugins(one=spec("a", "Base"), two=spec("b", "Base"), three=spec("c", "Base", priority=-1))
    with pytest.raises(AmbiguousAdapterError) as caught:
        adapt(Net())
    assert str(caught.value) == (
        f"{__name__}.Net is claimed equally by a of plugin one (registered at run time) and b of plugin two "
        "(registered at run time).\n  Pass adapter='a' or adapter='b', or block one plugin: "
        "CFPROTO_DISABLE_PLUGINS=one or CFPROTO_DISABLE_PLUGINS=two."
    )
    assert caught.value.plugin == "one, two"
    assert adapted(Net(), "b").name == "b"


def test_tie_of_adapters_of_the_same_name_is_settled_by_blocking_alone(plugins):
    plugins(one=spec("a", "Base"), two=spec("a", "Base"))
    with pytest.raises(AmbiguousAdapterError, match=r"\.\n  Block one plugin: CFPROTO_DISABLE_PLUGINS=one or CFPROTO_"):
        adapt(Net())


@pytest.mark.parametrize("choice", ["adapter=", "CFPROTO_DISABLE_PLUGINS=acme-cf", "CFPROTO_DISABLE_PLUGINS=bolt"])
def test_what_the_error_of_a_tie_proposes_works(distribution, choice):
    """Two installed distributions claim the same class; the second one's plugin has the first one's name, too."""
    same = choice.endswith("acme-cf")
    distribution("acme-cf", "2.0", acme=claiming("acme"))
    distribution("bolt-cf", "3.1", **{"acme" if same else "bolt": claiming("bolt")})
    code = """
        import collections, sys
        from cfproto_plugin.plugins.claims import adapted
        try:
            print(adapted(collections.Counter(), sys.argv[1] or None).name)
        except LookupError as error:
            print(error)
    """
    tie = distribution.run(code, "")
    assert "acme of plugin acme (acme-cf 2.0) and bolt of plugin" in tie
    assert "(bolt-cf 3.1)" in tie
    assert choice in tie
    name, _, value = choice.partition("=")
    if name == "adapter":
        assert "adapter='acme' or adapter='bolt'" in tie
        assert distribution.run(code, "bolt") == "bolt\n"
    else:
        left = {"acme-cf": "bolt", "bolt": "acme"}[value]
        assert distribution.run(code, "", **{name: value}) == f"{left}\n"


def test_claimed_model_that_can_be_called_goes_to_its_plugin(plugins):
    plugins(toy=spec("toy", "Base"))
    made = adapt(model := Net(), role="transform")
    assert (made.model, made.role) == (model, "transform")


def test_class_inside_a_class_can_be_claimed(plugins):
    plugins(toy=spec("toy", "Base.Inner"))
    assert adapted(Base.Inner()).name == "toy"


# Nothing is imported


def test_claim_never_imports_a_module(plugins, tmp_path, monkeypatch):
    (tmp_path / "cfproto_test_unimported.py").write_text("class Net: pass", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    claim = AdapterSpec("x", ("cfproto_test_unimported:Net", "cfproto_test_unimported.sub:Net"), Toy)
    plugins(x=claim, toy=spec("toy", "Base"))
    assert adapted(Net()).name == "toy"
    assert "cfproto_test_unimported" not in sys.modules


def test_claim_never_wakes_a_lazy_module(plugins, monkeypatch):
    lazy = ModuleType("cfproto_test_lazy")

    def wake(name):
        raise AssertionError(f"{name} was looked up by getattr, which would import it")

    lazy.__getattr__ = wake
    monkeypatch.setitem(sys.modules, "cfproto_test_lazy", lazy)
    plugins(x=AdapterSpec("x", ("cfproto_test_lazy:Net",), Toy), toy=spec("toy", "Base"))
    assert adapted(Net()).name == "toy"


def test_claim_of_a_class_that_does_not_exist_claims_nothing(plugins):
    plugins(x=spec("x", "Missing", "Base.Missing"), toy=spec("toy", "Base"))
    assert adapted(Net()).name == "toy"


# Adapters given by the user


def test_adapter_by_name_skips_detection(plugins):
    plugins(toy=spec("toy", "Base"), other=spec("other", "Net"))
    made = adapt(model := Net(), "toy", role="transform")
    assert (adapted(made, role="transform").name, made.model, made.role) == ("toy", model, "transform")


def test_unknown_adapter_name_suggests_the_nearest(plugins):
    plugins(toy=spec("torch", "Base"))
    with pytest.raises(UnknownNameError, match=r"no adapters named 'pytorch'\. Did you mean 'torch'\?"):
        adapt(Net(), "pytorch")


def test_adapter_instance_is_used_as_it_is(plugins):
    plugins(toy=spec("toy", "Base"))
    found = adapted(Net(), mine := Toy(None))
    assert (found.name, found.adapter) == ("Toy", mine)


@pytest.mark.parametrize("wrong", [Toy, 3, lambda x: x])
def test_adapter_that_is_none_is_refused(plugins, wrong):
    with pytest.raises(ModelError, match="is no adapter; pass a registered name, or an object with the method"):
        adapted(Net(), wrong)


# Models that nothing claims


def test_model_with_predict_and_vjp_is_its_own_adapter(plugins):
    class Own(Toy):
        def vjp(self, x):
            return self.predict(x), lambda cotangent: np.zeros_like(x)

    assert adapt(own := Own(None)) is own
    assert adapted(own).name == "Own"


def test_function_becomes_an_adapter(plugins):
    found = adapted(lambda x: x)
    assert found.name == "callable"
    assert isinstance(found.adapter, FunctionAdapter)


def test_object_with_predict_proba_is_served_as_a_function_with_its_labels(plugins):
    class Boosted:
        classes_ = ["no", "yes"]  # noqa: RUF012 as some libraries have them

        def predict(self, x):
            return np.where(x[:, 0] > 0.3, "yes", "no")

        def predict_proba(self, x):
            return np.column_stack([1 - x[:, 0], x[:, 0]])

    x = np.linspace(0.05, 0.95, 30)[:, None]
    found = CounterfactualExplainer(Boosted()).fit(x).explain(x[:2])
    assert found.meta["adapter"] == "predict_proba"
    assert found.classes.tolist() == ["no", "yes"]
    assert found.counterfactual_class.tolist() == ["yes", "yes"]
    assert Boosted().predict(found.counterfactual).tolist() == ["yes", "yes"]
    assert (found.counterfactual < 0.5).all(), "its own decision, not the largest probability"


def test_role_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="role is 'encoder'; expected one of 'classifier', 'transform'"):
        adapt(lambda x: x, role="encoder")


def test_unclaimed_model_says_what_is_installed_what_is_broken_and_what_to_do(plugins):
    registry = plugins(b=spec("torch", "Net"), a=spec("keras", "Net"))
    registry.reports.append(PluginReport("acme", "broken", "acme-cf 2.0", error="ImportError: no acme_core"))
    with pytest.raises(NoAdapterError) as caught:
        adapt(Base())
    assert str(caught.value) == (
        f"no adapter claims {__name__}.Base\n  installed: keras, torch   broken: acme of acme-cf 2.0 "
        "(ImportError: no acme_core)\n"
        "  Pass adapter=<name>, pass a function x -> probabilities, or install or register a plugin that claims it."
    )


def test_unclaimed_model_without_any_plugin_says_none(plugins):
    with pytest.raises(NoAdapterError, match="installed: none\n"):
        adapt(Base())


def test_class_instead_of_a_trained_model_is_refused(plugins):
    plugins(toy=spec("toy", "Base"))
    for given in (None, "toy"):
        with pytest.raises(ModelError, match=rf"{__name__}\.Net is a class; pass a trained model"):
            adapt(Net, given)


# Options, roles and seeds


class Tuned(Toy):
    """An adapter with an option and a seed."""

    def __init__(self, model, *, role="classifier", output="auto", seed=None):
        super().__init__(model, role=role, output=output, seed=seed)


def test_options_reach_the_factory_and_an_unknown_one_is_refused_with_a_suggestion(plugins):
    plugins(acme=spec("toy", "Base", factory=Tuned))
    assert adapt(Net(), output="logits").options["output"] == "logits"
    assert adapt(Net(), "toy", output="logits").options["output"] == "logits"
    with pytest.raises(InputError) as caught:
        adapt(Net(), ouput="logits")
    assert str(caught.value) == (
        "adapter 'toy' of plugin acme (registered at run time) has no option 'ouput'. Did you mean 'output'? "
        "Its options: output"
    )
    assert caught.value.plugin == "acme"


@pytest.mark.parametrize("model", [lambda x: x, Toy(None)], ids=["function", "adapter"])
def test_options_for_what_no_plugin_claims_are_refused(plugins, model):
    with pytest.raises(InputError, match=r"option 'output' is for the adapters of plugins, and none claims"):
        adapt(model, output="logits")


def test_seed_reaches_a_factory_that_takes_one(plugins):
    plugins(acme=spec("toy", "Base", factory=Tuned))
    assert adapted(Net(), seed=7).adapter.options["seed"] == 7


def test_adapter_made_for_one_role_is_refused_in_the_other(plugins):
    plugins(acme=spec("toy", "Base", factory=Tuned))
    encoder = adapt(Net(), role="transform")
    assert adapted(encoder, role="transform").adapter is encoder
    for use in (lambda: adapted(encoder), lambda: adapted(Net(), encoder)):
        with pytest.raises(ModelError, match=r"'toy' of plugin acme .* role='transform' and is used as 'classifier'"):
            use()


# Factories that fail


def test_factory_that_fails_is_a_plugin_error_with_its_plugin_and_cause(plugins):
    def fail(model, **options):
        raise KeyError("weights")

    plugins(acme=spec("bad", "Base", factory=fail))
    message = f"adapter 'bad' of plugin acme (registered at run time) failed on {__name__}.Net: KeyError: 'weights'"
    for given in (None, "bad"):
        with pytest.raises(PluginError, match=f"^{re.escape(message)}$") as caught:
            adapt(Net(), given)
        assert isinstance(caught.value.__cause__, KeyError)
        assert caught.value.plugin == "acme"


def test_factory_that_takes_no_role_makes_classifiers_only(plugins):
    def narrow(model):
        return Toy(model)

    plugins(acme=spec("narrow", "Base", factory=narrow))
    assert adapted(Net()).name == "narrow"
    with pytest.raises(ModelError, match=r"'narrow' of plugin acme .* is for classifiers.*'transform'") as caught:
        adapt(Net(), role="transform")
    assert caught.value.plugin == "acme"


def test_error_raised_on_purpose_by_a_factory_is_passed_on_with_a_note(plugins):
    def refuse(model, **options):
        raise ModelError("it is a regressor")

    plugins(acme=spec("bad", "Base", factory=refuse))
    with pytest.raises(ModelError) as caught:
        adapt(Net())
    assert str(caught.value) == "it is a regressor"
    assert caught.value.__notes__ == ["raised by adapter 'bad' of plugin acme (registered at run time)"]


@pytest.mark.parametrize("wrong", [3, Toy, None])
def test_factory_that_returns_no_adapter_is_named(plugins, wrong):
    plugins(acme=spec("bad", "Base", factory=lambda model, **options: wrong))
    message = re.escape(
        f"the factory of adapter 'bad' of plugin acme (registered at run time) returned {wrong!r}, which"
    )
    with pytest.raises(PluginError, match=f"{message} has no method predict"):
        adapt(Net())


# Whose adapter it is


def test_adapter_knows_whose_it_is_also_after_pickling(plugins):
    plugins(acme=spec("toy", "Base"))
    origin = "adapter 'toy' of plugin acme (registered at run time)"
    made = adapt(Net())
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 our own
    for known in (made, again):
        assert (adapted(known).origin, adapted(known).plugin, adapted(known).name) == (origin, "acme", "toy")


def test_model_that_is_its_own_adapter_is_left_as_it_was(plugins):
    plugins(acme=spec("same", "Toy", factory=lambda model, **options: model))
    assert adapt(model := Toy(None)) is model
    assert not hasattr(model, "cfproto_origin")


def test_adapter_with_slots_needs_no_origin(plugins):
    class Slots:
        __slots__ = ()

        def predict(self, x):
            return x

    plugins(acme=spec("slots", "Base", factory=lambda model, **options: Slots()))
    assert isinstance(adapt(Net()), Slots)


def test_adapter_that_returns_nan_is_named_with_its_plugin_and_distribution(distribution):
    distribution("acme-cf", "2.0", acme=claiming("acme", "np.full((len(x), 2), np.nan)"))
    code = """
        import collections
        import numpy as np
        from cfproto_plugin import CounterfactualExplainer
        try:
            CounterfactualExplainer(collections.Counter()).fit(np.zeros((5, 2)))
        except ValueError as error:
            print(error)
    """
    said = distribution.run(code)
    assert "returned [nan nan]" in said
    assert "adapter 'acme' of plugin acme (acme-cf 2.0)" in said
