"""Plugins load alone, say what broke, and import no framework."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from distributions import HEADER, Distributions

import cfproto_plugin
from cfproto_plugin import (
    AdapterSpec,
    CounterfactualExplainer,
    DistanceSpec,
    Features,
    ModelFile,
    PrototypeSpec,
    hookimpl,
    hookspecs,
    plugins,
)
from cfproto_plugin.distances import ABDM
from cfproto_plugin.errors import ConfigError, PluginError, UnknownNameError
from cfproto_plugin.plugins import Registry
from cfproto_plugin.prototypes import KDTreePrototypes

MODULE = sys.modules[Registry.__module__]  # the package has a function of that name
HOOKS = [name for name in vars(hookspecs) if name.startswith("cfproto_")]
BUILT_IN = ("distances", "keras", "prototypes", "sklearn", "torch", "xgboost")
FRAMEWORKS = ("torch", "tensorflow", "keras", "xgboost", "pandas", "matplotlib", "sklearn")
GOOD = """
@hookimpl
def cfproto_distances():
    return [DistanceSpec("acme", dict)]
"""
BROKEN = {
    "import error": ("import acme_core", "ModuleNotFoundError: No module named 'acme_core'"),
    "syntax error": ("def", "SyntaxError: "),
    "exit on import": ("raise SystemExit(3)", "SystemExit: 3"),
    "raising hook": ("@hookimpl\ndef cfproto_adapters(): return 1 / 0", "ZeroDivisionError: division by zero"),
    "raising generator": ("@hookimpl\ndef cfproto_adapters(): yield 1 / 0", "ZeroDivisionError: division by zero"),
    "wrong signature": (
        "@hookimpl\ndef cfproto_adapters(model): return []",
        "Argument(s) {'model'} are declared in the hookimpl but can not be found in the hookspec; the hooks take no",
    ),
    "misspelt hook": (
        "@hookimpl\ndef cfproto_adaptors(): return []",
        "PluginError: unknown hook 'cfproto_adaptors'. Did you mean 'cfproto_adapters'? There are cfproto_adapters, ",
    ),
    "no hook": (
        "",
        "expected one of the hooks cfproto_adapters, cfproto_prototypes, cfproto_distances",
    ),
    "unmarked hook": ("def cfproto_adapters(): return []", "marked with @hookimpl"),
    "forgotten return": ("@hookimpl\ndef cfproto_adapters(): pass", "offers nothing"),
    "not a list": (
        "@hookimpl\ndef cfproto_distances(): return DistanceSpec('acme', dict)",
        "returned DistanceSpec(name='acme', factory=<class 'dict'>, contract=1); expected a list of DistanceSpec",
    ),
    "wrong kind": (
        "@hookimpl\ndef cfproto_prototypes(): return [DistanceSpec('acme', dict)]",
        "cfproto_prototypes returned DistanceSpec(name='acme', factory=<class 'dict'>, contract=1); expected Prototype",
    ),
    "no factory": (
        "@hookimpl\ndef cfproto_distances(): return [DistanceSpec('acme', None)]",
        "the factory of 'acme' is None; expected a function or class",
    ),
    "no claims": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', (), dict)]",
        "adapter 'acme' claims nothing; expected names such as 'package.module:Class'",
    ),
    "empty claim": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', ('acme:Net', ''), dict)]",
        "adapter 'acme' claims ''; expected a name such as 'package.module:Class'",
    ),
    "claims as text": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', 'acme:Net', dict)]",
        "adapter 'acme' claims the text 'acme:Net'; expected a tuple: ('acme:Net',)",
    ),
    "claim of a class itself": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', (dict,), dict)]",
        "adapter 'acme' claims <class 'dict'>; expected a name such as 'package.module:Class'",
    ),
    "no name": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('', ('acme:Net',), dict)]",
        "cfproto_adapters returned a spec named ''; expected a word to name it by",
    ),
    "old contract": (
        "@hookimpl\ndef cfproto_distances(): return [DistanceSpec('acme', dict, contract=0)]",
        "'acme' was written for version 0 of the plugin contract; this version of cfproto-plugin knows 1: update the",
    ),
    "contract of tomorrow": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', ('acme:Net',), dict, contract=2)]",
        "this version of cfproto-plugin knows 1: update cfproto-plugin",
    ),
    "files that are none": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', ('acme:Net',), dict, files=('.acme',))]",
        "adapter 'acme' has '.acme' among its files; expected ModelFile objects",
    ),
    "suffix without a dot": (
        "@hookimpl\ndef cfproto_adapters(): yield AdapterSpec('a', ('b:C',), dict, files=(ModelFile(('acme',), len),))",
        "reads files with the suffixes ('acme',); expected a tuple such as ('.json',), in lower case",
    ),
    "file without a reader": (
        "@hookimpl\ndef cfproto_adapters(): yield AdapterSpec('a', ('b:C',), dict, files=(ModelFile(('.ac',), None),))",
        "adapter 'a': load of ('.ac',) is None; expected a function",
    ),
    "claim without a module": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', (':Net',), dict)]",
        "adapter 'acme' claims ':Net'",
    ),
    "claim without a class": (
        "@hookimpl\ndef cfproto_adapters(): return [AdapterSpec('acme', ('acme.Net',), dict)]",
        "adapter 'acme' claims 'acme.Net'",
    ),
}


@pytest.fixture
def distribution(tmp_path):
    """Install distributions with plugins for processes of their own."""
    return Distributions(tmp_path)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """Make an entry point whose module has the given source."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(name, source):
        module = f"cfproto_test_plugin_{name}"
        (tmp_path / f"{module}.py").write_text(HEADER + textwrap.dedent(source), encoding="utf-8")
        made.append(module)
        return EntryPoint(name, module, hookspecs.PROJECT)

    yield make
    for module in made:
        sys.modules.pop(module, None)


def plugin(**hooks):
    """Make a plugin object whose hooks return the given values: adapters=[...]."""
    made = ModuleType("toy")
    for kind, specs in hooks.items():
        exec(f"def cfproto_{kind}(): return specs", scope := {"specs": specs})  # noqa: S102 a function of that very name
        setattr(made, f"cfproto_{kind}", hookimpl(scope[f"cfproto_{kind}"]))
    return made


def adapter(name, claim="acme.models:Net"):
    return AdapterSpec(name, (claim,), dict)


# Loading


@pytest.mark.parametrize("mistake", BROKEN)
def test_broken_plugin_is_reported_with_its_cause_and_the_others_keep_working(entry, caplog, mistake):
    source, cause = BROKEN[mistake]
    with caplog.at_level(logging.WARNING, "cfproto_plugin.plugins"):
        found = Registry([entry("broken", source), entry("good", GOOD)])
    broken, good = found.reports
    assert (broken.name, broken.status, broken.offers) == ("broken", "broken", {})
    assert cause in broken.error
    assert broken.source == "cfproto_test_plugin_broken"
    assert (good.status, good.error, good.offers) == ("ok", "", {"distances": ["acme"]})
    assert found.broken() == [broken]
    assert f"plugin broken (cfproto_test_plugin_broken) is broken: {broken.error}" in caplog.text


def test_interrupting_the_user_is_no_plugin_error(entry):
    with pytest.raises(KeyboardInterrupt):
        Registry([entry("slow", "raise KeyboardInterrupt")])


def test_plugin_reports_what_it_offers_and_how_long_it_took(entry):
    source = """
        import time
        time.sleep(0.02)

        @hookimpl
        def cfproto_adapters():
            yield AdapterSpec("a", ("acme:Net",), dict)
            yield AdapterSpec("b", ("acme:Tree",), dict, priority=1)

        @hookimpl
        def cfproto_prototypes():
            return (PrototypeSpec("p", dict),)
    """
    (report,) = Registry([entry("acme", source)]).reports
    assert report.offers == {"adapters": ["a", "b"], "prototypes": ["p"]}
    assert report.seconds >= 0.02


def test_disabled_plugin_is_listed_but_not_imported(entry):
    (report,) = Registry([entry("acme", "raise RuntimeError")], disabled=["acme"]).reports
    assert (report.status, report.error, report.offers) == ("disabled", "", {})
    assert "cfproto_test_plugin_acme" not in sys.modules


def test_environment_variable_blocks_plugins_by_name(monkeypatch):
    monkeypatch.setenv("CFPROTO_DISABLE_PLUGINS", "torch, distances,")
    found = plugins.registry.__wrapped__()
    status = {report.name: report.status for report in found.reports}
    assert {name for name, word in status.items() if word == "disabled"} == {"torch", "distances"}
    with pytest.raises(UnknownNameError, match="no distances named 'abdm'"):
        found.find("distances", "abdm")


def test_entry_point_found_twice_is_loaded_once(monkeypatch, entry):
    point = entry("acme", GOOD)
    monkeypatch.setattr(MODULE, "entry_points", lambda group: [point, point])
    assert [report.name for report in plugins.registry.__wrapped__().reports] == ["acme"]


# Registering at run time


def test_plugin_is_registered_and_forgotten_at_run_time():
    made = plugin(distances=[DistanceSpec("toy distance", dict)])
    report = cfproto_plugin.register(made, "toy plugin")
    try:
        assert (report.status, report.source) == ("ok", "registered at run time")
        assert plugins.registry().find("distances", "toy distance")[1].factory is dict
    finally:
        cfproto_plugin.unregister("toy plugin")
    with pytest.raises(UnknownNameError, match="toy distance"):
        plugins.registry().find("distances", "toy distance")


def test_plugin_is_named_after_its_module_or_class():
    class Toy:
        @hookimpl
        def cfproto_prototypes(self):
            return [PrototypeSpec("p", dict)]

    assert Registry().register(plugin(adapters=[adapter("a")])).name == "toy"
    assert Registry().register(Toy()).name == "Toy"


def test_name_can_be_registered_once():
    found = Registry()
    found.register(plugin(adapters=[adapter("a")]), "acme")
    with pytest.raises(PluginError, match=r"'acme' is already registered; unregister\('acme'\) it first"):
        found.register(plugin(adapters=[adapter("b")]), "acme")
    assert len(found.reports) == 1


def test_broken_plugin_cannot_be_registered_and_leaves_no_trace():
    found = Registry()
    with pytest.raises(PluginError, match="plugin 'acme' cannot be registered: PluginError: adapter 'a' claims 'Net'"):
        found.register(plugin(adapters=[adapter("a", "Net")]), "acme")
    assert found.reports == []


def test_unregistering_an_unknown_plugin_suggests_the_nearest():
    found = Registry()
    found.register(plugin(adapters=[adapter("a")]), "acme")
    with pytest.raises(UnknownNameError, match=r"no plugin is named 'acne'\. Did you mean 'acme'\?"):
        found.unregister("acne")


# Looking up names


def test_unknown_name_suggests_the_nearest_and_lists_all_and_the_broken(entry):
    found = Registry([entry("bad", "import acme_core")])
    found.register(plugin(adapters=[adapter("torch"), adapter("keras")]))
    with pytest.raises(UnknownNameError) as caught:
        found.find("adapters", "troch")
    assert str(caught.value) == (
        "no adapters named 'troch'. Did you mean 'torch'?\n  there are: keras, torch   "
        "broken: bad of cfproto_test_plugin_bad (ModuleNotFoundError: No module named 'acme_core')"
    )
    with pytest.raises(UnknownNameError, match=r"no prototypes named 'x'\.\n  there are: none"):
        found.find("prototypes", "x")


def test_name_offered_twice_is_an_error_that_names_both_plugins():
    found = Registry()
    for name in ("one", "two"):
        found.register(plugin(distances=[DistanceSpec("d", dict)]), name)
    with pytest.raises(PluginError) as caught:
        found.find("distances", "d")
    assert str(caught.value) == (
        "distances named 'd' come from one (registered at run time) and two (registered at run time).\n  Pass an "
        "instance, or block one plugin: CFPROTO_DISABLE_PLUGINS=one or CFPROTO_DISABLE_PLUGINS=two."
    )


# Making what a plugin offers


def fails(**options):
    raise KeyError("weights")


def refuses(**options):
    raise ConfigError("k is too large")


@pytest.mark.parametrize(
    ("kind", "of", "word"),
    [("prototypes", PrototypeSpec, "prototype provider"), ("distances", DistanceSpec, "distance")],
)
def test_factory_that_goes_wrong_is_named_with_its_plugin(kind, of, word):
    found = Registry()
    found.register(plugin(**{kind: [of("x", fails), of("y", refuses), of("z", lambda **options: 3)]}), "acme")
    origin = "of plugin acme (registered at run time)"
    with pytest.raises(PluginError) as caught:
        found.make(kind, "x", k=1)
    assert str(caught.value) == f"{word} 'x' {origin} failed: KeyError: 'weights'"
    assert caught.value.plugin == "acme"
    with pytest.raises(ConfigError, match=r"^k is too large\n") as caught:
        found.make(kind, "y")
    assert caught.value.__notes__ == [f"raised by {word} 'y' {origin}"]
    with pytest.raises(PluginError) as caught:
        found.make(kind, "z")
    method = {"prototypes": "nearest", "distances": "__call__"}[kind]
    assert str(caught.value) == f"the factory of {word} 'z' {origin} returned 3, which has no method {method}"


def test_spec_of_a_subclass_is_made_like_any_other():
    class MySpec(PrototypeSpec):
        pass

    found = Registry()
    found.register(plugin(prototypes=[MySpec("mine", KDTreePrototypes)]), "acme")
    assert found.make("prototypes", "mine", k=3).k == 3


class Drawing:
    """A provider and a distance that take a seed, and nothing else."""

    def __init__(self, *, seed=None):
        self.seed = seed

    def __call__(self, codes, n_categories, context, labels):
        return []

    def nearest(self, z0, allowed):
        return z0, allowed


@pytest.mark.parametrize(("kind", "of"), [("prototypes", PrototypeSpec), ("distances", DistanceSpec)])
def test_factory_gets_those_of_the_offered_arguments_that_it_takes(kind, of):
    found = Registry()
    takes_none = KDTreePrototypes if kind == "prototypes" else ABDM
    found.register(plugin(**{kind: [of("drawing", Drawing), of("plain", takes_none), of("any", many)]}))
    assert found.make(kind, "drawing", k=5, seed=7).seed == 7
    assert isinstance(found.make(kind, "plain", seed=7), takes_none)
    assert found.make(kind, "any", k=5, seed=7).seed == {"k": 5, "seed": 7}


def many(**options):
    return Drawing(seed=options)


# Files of models


def reading(name, *suffixes):
    return AdapterSpec(name, ("acme.models:Net",), dict, files=(ModelFile(suffixes, lambda path: path),))


def test_suffix_finds_its_reader_in_any_case():
    found = Registry()
    found.register(plugin(adapters=[reading("acme", ".acme", ".ac2")]), "acme")
    report, spec, file = found.file_format(".ACME")
    assert (report.name, spec.name, file.suffixes, file.safe) == ("acme", "acme", (".acme", ".ac2"), False)
    assert report.suffixes == [".acme", ".ac2"]
    with pytest.raises(UnknownNameError, match=r"no installed plugin reads models from \.bolt\.\n.*: \.ac2, \.acme"):
        found.file_format(".bolt")


def test_suffix_that_two_plugins_read_is_an_error_that_names_both():
    found = Registry()
    for name in ("one", "two"):
        found.register(plugin(adapters=[reading(name, ".acme")]), name)
    with pytest.raises(PluginError) as caught:
        found.file_format(".acme")
    assert str(caught.value) == (
        ".acme files are read by one (registered at run time) and two (registered at run time).\n  Block one plugin: "
        "CFPROTO_DISABLE_PLUGINS=one or CFPROTO_DISABLE_PLUGINS=two."
    )
    assert caught.value.plugin == "one, two"


# Installed plugins


def run(code, **env):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


REPORTS = """
    import json
    from cfproto_plugin.plugins import registry
    found = [(r.name, r.status, r.source, r.error, r.offers) for r in registry().reports]
    print(json.dumps(found))
"""


def test_installed_package_is_discovered_by_its_entry_points(distribution):
    distribution("acme-cf", "2.0", acme=GOOD, lost="import acme_lost")
    found = {name: rest for name, *rest in json.loads(distribution.run(REPORTS))}
    assert found["acme"] == ["ok", "acme-cf 2.0", "", {"distances": ["acme"]}]
    assert found["lost"] == ["broken", "acme-cf 2.0", "ModuleNotFoundError: No module named 'acme_lost'", {}]
    assert set(BUILT_IN) <= set(found)


def test_distribution_is_blocked_by_its_name(distribution):
    distribution("acme-cf", "2.0", acme=GOOD, lost="import acme_lost")
    found = json.loads(distribution.run(REPORTS, CFPROTO_DISABLE_PLUGINS="torch,acme-cf"))
    assert {name for name, status, *_ in found if status == "disabled"} == {"acme", "lost", "torch"}


SIX = {
    "good": GOOD,
    "missing": "import acme_core",
    "signature": "@hookimpl\ndef cfproto_distances(labels): return [DistanceSpec('s', dict)]",
    "misspelt": "@hookimpl\ndef cfproto_distance(): return [DistanceSpec('m', dict)]",
    "raising": "@hookimpl\ndef cfproto_distances(): raise RuntimeError('no licence')",
    "slow": f"import time\ntime.sleep(1.05)\n@hookimpl\n{GOOD.split('@hookimpl')[1].strip().replace('acme', 'tardy')}",
}
SAID = {
    "good": ("ok", "distances: acme"),
    "missing": ("broken", "ModuleNotFoundError: No module named 'acme_core'"),
    "signature": (
        "broken",
        "Argument(s) {'labels'} are declared in the hookimpl but can not be found in the hookspec; the hooks",
    ),
    "misspelt": ("broken", "unknown hook 'cfproto_distance'. Did you mean 'cfproto_distances'?"),
    "raising": ("broken", "RuntimeError: no licence"),
    "slow": ("ok", "s; import frameworks inside functions"),
}


def test_six_different_plugins_are_shown_right(distribution):
    distribution("acme-six", "1.2", **SIX)
    lines = {line.split()[0]: line for line in distribution.cfproto("plugins", status=1).splitlines()}
    for name, (status, words) in SAID.items():
        assert lines[name].split()[1:4] == [status, "acme-six", "1.2"], name
        assert words in lines[name]
    assert "distances: tardy  slow: 1." in lines["slow"]
    assert {line.split()[1] for name, line in lines.items() if name in BUILT_IN} == {"ok"}
    assert len(lines) == len(SIX) + len(BUILT_IN)


def test_six_different_plugins_are_right_in_json(distribution):
    distribution("acme-six", "1.2", **SIX)
    found = {record["name"]: record for record in json.loads(distribution.cfproto("plugins", "--json", status=1))}
    for name, (status, words) in SAID.items():
        assert (found[name]["status"], found[name]["source"]) == (status, "acme-six 1.2")
        assert found[name]["module"] == f"acme_six_{name}"
        assert (words in found[name]["error"]) == (status == "broken")
    assert {name for name, record in found.items() if record["slow"]} == {"slow"}
    assert found["slow"]["advice"] == f"slow: {found['slow']['seconds']:.1f} s; import frameworks inside functions"
    assert found["slow"]["distances"] == ["tardy"]
    assert found["good"]["advice"] == ""


def test_slow_plugin_works_and_is_warned_about_once(entry, caplog, monkeypatch):
    monkeypatch.setattr(MODULE, "SLOW_SECONDS", 0.01)
    with caplog.at_level(logging.WARNING, "cfproto_plugin.plugins"):
        found = Registry([entry("tardy", f"import time\ntime.sleep(0.02)\n{GOOD}")])
        found.find("distances", "acme")
    assert [record.message for record in caplog.records] == [
        "plugin tardy (cfproto_test_plugin_tardy) is slow: 0.0 s; import frameworks inside functions"
    ]


def test_listing_plugins_imports_no_framework():
    code = f"""
        import json, sys
        import cfproto_plugin
        from cfproto_plugin.plugins import registry
        reports = registry().reports
        print(json.dumps([len(reports), [name for name in {FRAMEWORKS!r} if name in sys.modules]]))
    """
    loaded, imported = run(code)
    assert loaded >= len(BUILT_IN)
    assert imported == []


def test_all_built_in_plugins_are_ok():
    found = {name: (status, error) for name, status, _, error, _ in run(REPORTS)}
    assert {name: found.get(name) for name in BUILT_IN} == dict.fromkeys(BUILT_IN, ("ok", ""))


# The hooks themselves


def untested(hooks):
    """The hooks without a test of this file that is named after them."""
    return [hook for hook in hooks if not any(name.startswith(f"test_hook_{hook}_") for name in globals())]


def test_every_hook_has_a_test():
    assert len(HOOKS) >= 3
    assert untested(HOOKS) == []
    assert untested([*HOOKS, "cfproto_scalers"]) == ["cfproto_scalers"]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_built_in_plugin(hook):
    offered = {kind for report in plugins.registry().reports for kind in report.offers}
    assert hook.removeprefix("cfproto_") in offered


@pytest.fixture
def registered():
    """Register a plugin that offers the given specs: adapters=[...]."""

    def add(**hooks):
        cfproto_plugin.register(plugin(**hooks), "acme test plugin")

    yield add
    cfproto_plugin.unregister("acme test plugin")


class Stump:
    """A model of a type that nobody has heard of."""

    def ask(self, x):
        return x[:, 0] > 0


class StumpAdapter:
    def __init__(self, model, *, role="classifier", **options):
        self.model = model

    def predict(self, x):
        y = self.model.ask(np.asarray(x, dtype=float))
        return np.stack([~y, y], axis=1).astype(float)


TABLE = np.random.default_rng(0).normal(size=(40, 2))


def test_hook_cfproto_adapters_makes_a_new_model_type_explainable(registered):
    registered(adapters=[AdapterSpec("stump", (f"{__name__}:Stump",), StumpAdapter)])
    found = CounterfactualExplainer(Stump()).fit(TABLE).explain(TABLE[:3])
    assert found.meta["adapter"] == "stump"
    assert (found.counterfactual_class != found.original_class).all()


def test_hook_cfproto_prototypes_adds_a_provider_that_can_be_named(registered):
    made = []

    class Spy(KDTreePrototypes):
        def fit(self, z, labels):
            made.append(self)
            return super().fit(z, labels)

    registered(prototypes=[PrototypeSpec("spy", Spy)])
    explainer = CounterfactualExplainer(Stump(), adapter=StumpAdapter(Stump()), prototypes="spy").fit(TABLE)
    assert explainer.fitted_.guide.provider is made[0]
    assert explainer.explain(TABLE[:1]).status[0] == "found"


def test_hook_cfproto_distances_adds_a_distance_that_can_be_named(registered):
    asked = []

    class Spy(ABDM):
        def __call__(self, codes, *rest):
            asked.append(codes.shape)
            return super().__call__(codes, *rest)

    registered(distances=[DistanceSpec("spy", Spy)])
    table = np.column_stack([TABLE, np.arange(40) % 3])
    features = Features(categorical=(2,))
    CounterfactualExplainer(Stump(), adapter=StumpAdapter(Stump()), distance="spy", features=features).fit(table)
    assert asked == [(40, 1)]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_collected(hook):
    kind = hook.removeprefix("cfproto_")
    spec = {"adapters": adapter("x"), "prototypes": PrototypeSpec("x", dict), "distances": DistanceSpec("x", dict)}[
        kind
    ]
    found = Registry()
    found.register(plugin(**{kind: [spec]}))
    assert found.find(kind, "x")[1] is spec


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_tells_its_author_what_to_return(hook):
    spec = getattr(hookspecs, hook)
    assert spec.__doc__.startswith("Return ")
    assert "return" in spec.__annotations__


def test_plugin_that_is_a_namespace_works_too():
    @hookimpl
    def cfproto_distances():
        return [DistanceSpec("d", dict)]

    assert Registry().register(SimpleNamespace(cfproto_distances=cfproto_distances), "space").status == "ok"
