"""The clients: libraries written for TensorFlow, with pinned versions, what is run, and what has to pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

PROGRAMS: Final = Path(__file__).parent / "programs"
KNOWN_FAILURES: Final = Path(__file__).parent / "known_failures.txt"


class KnownFailure(NamedTuple):
    """Tests of a client that fail: a regular expression of their names, and the reason."""

    client: str
    tests: str
    reason: str


def known_failures() -> list[KnownFailure]:
    """The rows of ``known_failures.txt``."""
    lines = KNOWN_FAILURES.read_text(encoding="utf-8").splitlines()
    return [KnownFailure(*line.split(maxsplit=2)) for line in lines if line and not line.startswith("#")]


@dataclass(frozen=True)
class Client:
    """A library, and how it is run.

    Attributes:
        requirements: its packages, pinned, separated by spaces; those of this environment are not listed.
        floor: the number of tests that have to pass.
        tests: files and folders of the installed package, separated by spaces, whose tests pytest runs; or
        program: a file of ``programs`` that prints ``pass NAME`` or ``fail NAME: ERROR`` for each test.
        repository: the git repository of a library whose package lacks the tests, as ``URL TAG``. Its
            Python files are the library, and the files of ``tests`` are named from its root.
        options: further arguments of pytest.
        environment: environment variables, as ``NAME=VALUE``.
        version: of TensorFlow, for which the library was written.
        tensorflow: the number of tests that pass on TensorFlow; None if it is not known.
    """

    requirements: str
    floor: int
    tests: str = ""
    program: str = ""
    repository: str = ""
    options: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    version: int = 2
    tensorflow: int | None = None


_TFP_NEEDS: Final = (
    "dm-tree==0.1.10 decorator==5.3.1 cloudpickle==3.1.3 six==1.17.0 wrapt==2.5.2 gast==0.7.0 absl-py==2.5.1"
)
_TFP: Final = f"tensorflow-probability==0.25.0 {_TFP_NEEDS}"
_TESTS: Final = ("-o", "python_files=*_test.py")
_OLDER_NUMPY: Final = ("-p", "older_numpy")
_NUMPY: Final = "numpy==2.1.3"
"""The oldest that dualflow takes: NumPy 2.2 and later refuse what some libraries do."""
_HUB: Final = (
    "keras-hub==0.32.0 kagglehub==1.0.3 kagglesdk==0.1.38 tokenizers==0.23.3 sentencepiece==0.2.3 "
    "huggingface_hub==2.4.0 regex==2026.11.19 rich==15.0.0 requests==2.34.2 tqdm==4.70.1 pyyaml==6.0.4 "
    "charset-normalizer==3.5.3 urllib3==2.8.0 certifi==2026.10.19.post1 idna==3.20 filelock==4.3.1 "
    "fsspec==2026.9.0 httpx==0.28.1"
)
_TFP_TESTS: Final = " ".join(
    f"tensorflow_probability/python/{module}_test.py"
    for module in (
        *("bijectors/chain", "bijectors/exp", "bijectors/sigmoid", "bijectors/softplus"),
        *("distributions/bernoulli", "distributions/categorical", "distributions/laplace"),
        *("distributions/uniform", "glm/family", "math/gradient", "math/root_search", "optimizer/bfgs"),
        *("optimizer/nelder_mead", "stats/sample_stats", "util/deferred_tensor"),
    )
)
_DEEPXDE: Final = f"deepxde==1.15.0 scikit-optimize==0.10.2 pyaml==26.7.0 PyYAML==6.0.4 {_TFP}"
CLIENTS: Final = {
    "deepxde": Client(_DEEPXDE, 7, program="deepxde_problems.py", environment=("DDE_BACKEND=tensorflow",)),
    "deepxde-v1": Client(
        _DEEPXDE, 6, program="deepxde_problems.py", environment=("DDE_BACKEND=tensorflow.compat.v1",)
    ),
    "foolbox": Client(
        "foolbox==3.3.4 eagerpy==0.30.0 GitPython==3.2.1 gitdb==4.0.12 smmap==5.0.3 requests==2.34.2 "
        "urllib3==2.8.0 certifi==2026.10.19.post1 idna==3.20 charset-normalizer==3.5.3",
        11,
        program="foolbox_attacks.py",
        tensorflow=11,
    ),
    "gpflow": Client(
        "gpflow==2.11.2 check-shapes==1.1.1 dropstackframe==0.1.1 multipledispatch==1.0.0 deprecated==1.3.1 "
        f"lark==1.3.1 tabulate==0.10.0 {_TFP}",
        1850,
        tests="tests/gpflow",
        options=(
            *("--import-mode=importlib", "-o", "consider_namespace_packages=true"),
            *("-k", "not test_posteriors"),
        ),
    ),
    "keras-hub": Client(_HUB, 26, program="keras_hub_models.py", tensorflow=26),
    "opt_einsum": Client(
        "opt_einsum==3.4.0 autograd==1.9.1", 7756, tests="opt_einsum/tests", tensorflow=7756
    ),
    "pennylane": Client(
        "pennylane==0.45.1 pennylane_lightning==0.45.0 autograd==1.9.1 autoray==0.11.0 cachetools==8.0.2 "
        "diastatic-malt==2.15.3 astunparse==1.6.3 gast==0.7.0 termcolor==3.3.0 six==1.17.0 tomlkit==0.15.2 "
        "rustworkx==0.18.1 requests==2.34.2 urllib3==2.8.0 certifi==2026.10.19.post1 idna==3.20 "
        "charset-normalizer==3.5.3 appdirs==1.4.4 networkx==3.6.1 packaging==26.4",
        6,
        program="pennylane_circuits.py",
        tensorflow=6,
    ),
    "sonnet": Client(
        "dm-sonnet==2.0.2 dm-tree==0.1.10 wrapt==2.5.2 tabulate==0.10.0 mock==5.2.0",
        1900,
        tests="sonnet",
        options=_TESTS,
        tensorflow=2354,
    ),
    "t3f": Client(f"t3f==1.2.0 {_NUMPY}", 245, tests="t3f", options=(*_TESTS, *_OLDER_NUMPY)),
    "tensorly": Client(
        "tensorly==0.10.0",
        481,
        tests="tensorly",
        options=("-k", "not decomposition"),
        environment=("TENSORLY_BACKEND=tensorflow",),
    ),
    "tensorflow-probability": Client(
        _TFP,
        39,
        program="tfp_core.py",
    ),
    "tensorflow-probability-tests": Client(
        f"{_TFP_NEEDS} mock==5.2.0 {_NUMPY}",
        1210,
        tests=_TFP_TESTS,
        repository="https://github.com/tensorflow/probability v0.25.0",
    ),
    "tensornetwork": Client(
        "tensornetwork==0.4.6 graphviz==0.21 h5py==3.16.0",
        390,
        tests="tensornetwork/backends/tensorflow",
        tensorflow=400,
    ),
    "tf_slim": Client("tf_slim==1.1.0 six==1.17.0 dm-tree==0.1.10", 7, program="slim_models.py", version=1),
    "trfl": Client(f"trfl==1.2.0 {_TFP}", 305, tests="trfl", options=(*_TESTS, *_OLDER_NUMPY), version=1),
}
"""The clients by name. Their numbers on TensorFlow are those of TensorFlow 2.21 with the same versions."""
