"""Plugins load alone, say what broke, and import no framework."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import cfproto_plugin
from cfproto_plugin import AdapterSpec, DistanceSpec, PrototypeSpec, hookimpl, hookspecs, plugins
from cfproto_plugin.errors import PluginError, UnknownNameError
from cfproto_plugin.plugins import Registry

HOOKS = [name for name in vars(hookspecs) if name.startswith("cfproto_")]
BUILT_IN = ("distances", "keras", "prototypes", "sklearn", "torch", "xgboost")
FRAMEWORKS = ("torch", "tensorflow", "keras", "xgboost", "pandas", "matplotlib", "sklearn")
HEADER = "from cfproto_plugin import AdapterSpec, DistanceSpec, PrototypeSpec, hookimpl\n"
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
    "wrong signature": ("@hookimpl\ndef cfproto_adapters(model): return []", "Argument(s) {'model'} are declared"),
    "misspelt hook": ("@hookimpl\ndef cfproto_adaptors(): return []", "unknown hook 'cfproto_adaptors'"),
    "no hook": (
        "",
        "expected one of the hooks cfproto_adapters, cfproto_prototypes, cfproto_distances",
    ),
    "unmarked hook": ("def cfproto_adapters(): return []", "marked with @hookimpl"),
    "forgotten return": ("@hookimpl\ndef cfproto_adapters(): pass", "offers nothing"),
    "not a list": (
        "@hookimpl\ndef cfproto_distances(): return DistanceSpec('acme', dict)",
        "cfproto_distances returned DistanceSpec(name='acme', factory=<class 'dict'>); expected a list of DistanceSpec",
    ),
    "wrong kind": (
        "@hookimpl\ndef cfproto_prototypes(): return [DistanceSpec('acme', dict)]",
        "cfproto_prototypes returned DistanceSpec(name='acme', factory=<class 'dict'>); expected PrototypeSpec",
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
    assert 0.02 <= report.seconds < 5


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
        found.named("distances", "abdm")


def test_entry_point_found_twice_is_loaded_once(monkeypatch, entry):
    point = entry("acme", GOOD)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point, point])
    assert [report.name for report in plugins.registry.__wrapped__().reports] == ["acme"]


# Registering at run time


def test_plugin_is_registered_and_forgotten_at_run_time():
    made = plugin(distances=[DistanceSpec("toy distance", dict)])
    report = cfproto_plugin.register(made, "toy plugin")
    try:
        assert (report.status, report.source) == ("ok", "registered at run time")
        assert plugins.registry().named("distances", "toy distance").factory is dict
    finally:
        cfproto_plugin.unregister("toy plugin")
    with pytest.raises(UnknownNameError, match="toy distance"):
        plugins.registry().named("distances", "toy distance")


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
        found.named("adapters", "troch")
    assert str(caught.value) == (
        "no adapters named 'troch'. Did you mean 'torch'?\n  there are: keras, torch   "
        "broken: bad (ModuleNotFoundError: No module named 'acme_core')"
    )
    with pytest.raises(UnknownNameError, match=r"no prototypes named 'x'\.\n  there are: none"):
        found.named("prototypes", "x")


def test_name_offered_twice_is_an_error_that_names_both_plugins():
    found = Registry()
    for name in ("one", "two"):
        found.register(plugin(distances=[DistanceSpec("d", dict)]), name)
    with pytest.raises(PluginError, match=r"one \(registered at run time\) and two \(registered at run time\)"):
        found.named("distances", "d")


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


def test_installed_package_is_discovered_by_its_entry_points(tmp_path):
    (tmp_path / "acme_cf.py").write_text(HEADER + GOOD, encoding="utf-8")
    info = tmp_path / "acme_cf-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-cf\nVersion: 2.0\n", encoding="utf-8")
    points = "[cfproto_plugin]\nacme = acme_cf\nlost = acme_lost\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    found = {name: rest for name, *rest in run(REPORTS, PYTHONPATH=path)}
    assert found["acme"] == ["ok", "acme-cf 2.0", "", {"distances": ["acme"]}]
    assert found["lost"] == ["broken", "acme-cf 2.0", "ModuleNotFoundError: No module named 'acme_lost'", {}]
    assert set(BUILT_IN) <= set(found)


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


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_built_in_plugin_and_a_test(hook):
    offered = {kind for report in plugins.registry().reports for kind in report.offers}
    assert hook.removeprefix("cfproto_") in offered
    mentions = [path for path in Path(__file__).parent.glob("test_*.py") if hook in path.read_text(encoding="utf-8")]
    assert mentions, f"no test mentions {hook}"


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_collected(hook):
    kind = hook.removeprefix("cfproto_")
    spec = {"adapters": adapter("x"), "prototypes": PrototypeSpec("x", dict), "distances": DistanceSpec("x", dict)}[
        kind
    ]
    found = Registry()
    found.register(plugin(**{kind: [spec]}))
    assert found.named(kind, "x") is spec


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
