"""What HiGHS prints by itself is left out, and nothing else is."""

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="C's stdout is replaced with glibc only")

ALONE = """
import ctypes, os
from cfproto_plugin.search.proofs.quiet import quiet
libc = ctypes.CDLL(None)
libc.puts(b"before")
for number in range(3):
    with quiet():
        libc.puts(b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();")
        libc.puts(b"another library %d" % number)
        libc.fflush(None)
        print("Highs in Python", number, flush=True)
        os.system("echo child")
libc.puts(b"after")
"""

THREADS = """
import ctypes, threading
from cfproto_plugin.search.proofs.quiet import quiet
libc = ctypes.CDLL(None)
def work(number):
    for each in range(200):
        with quiet():
            libc.puts(b"Highs stray")
            libc.puts(b"line %d %d" % (number, each))
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

SOLVED = """
import ctypes, numpy, scipy.optimize
from sklearn.ensemble import RandomForestClassifier
from cfproto_plugin import CounterfactualExplainer, SearchConfig
libc, milp = ctypes.CDLL(None), scipy.optimize.milp
def noisy(*args, **more):
    libc.puts(b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();")
    return milp(*args, **more)
scipy.optimize.milp = noisy
x = numpy.random.default_rng(0).normal(size=(200, 3))
forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
explainer = CounterfactualExplainer(forest, search=SearchConfig.close(certify="optimal")).fit(x)
print(explainer.explain(x[:2]).gap.tolist())
"""


def printed(program):
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_only_the_lines_of_highs_are_left_out():
    lines = printed(ALONE)
    expected = [
        "before",
        "after",
        *(f"another library {i}" for i in range(3)),
        *(f"Highs in Python {i}" for i in range(3)),
    ]
    assert sorted(lines) == sorted([*expected, *["child"] * 3])


def test_no_line_of_another_library_is_lost_between_threads():
    assert sorted(printed(THREADS)) == sorted(f"line {i} {j}" for i in range(8) for j in range(200))


def test_a_proof_prints_nothing():
    assert printed(SOLVED) == ["[0.0, 0.0]"]
