"""Compiles the transformer blocks for a CPU, once for each kind of processor that this machine's builds may meet, and local search and bounds.

Everything else is in pyproject.toml. Without a compiler the package installs all the same, and is slower on a CPU.
"""

import platform
from pathlib import Path

from setuptools import Extension, setup

BOUNDARY = Path("src/gumbeldore/compiled")  # between Python and all of it
FOLDER = "src/gumbeldore/networks/compiled"
AVX2 = ["-mavx2", "-mfma"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"]
KINDS = {"avx2": AVX2, "avx512": AVX512} if platform.machine().lower() in ("x86_64", "amd64") else {"plain": []}
OPENMP = ["-fopenmp"] if platform.system() == "Linux" else []  # the threads that PyTorch has, too; elsewhere one


def headers(folder: Path) -> list[str]:
    return [str(header) for each in (folder, BOUNDARY) for header in each.glob("*.h")]


def extension(kind: str, flags: list[str]) -> Extension:
    name = f"_blocks_{kind}"
    return Extension(
        f"gumbeldore.networks.{name}",
        [f"{FOLDER}/blocks.cpp"],
        define_macros=[("GUMBELDORE_MODULE", f'"{name}"'), ("GUMBELDORE_INIT", f"PyInit_{name}")],
        extra_compile_args=["-std=c++17", "-O3", "-g0", "-ffp-contract=fast", "-Wno-psabi", *OPENMP, *flags],
        extra_link_args=OPENMP,
        include_dirs=[str(BOUNDARY)],
        depends=headers(Path(FOLDER)),
        py_limited_api=True,
        optional=True,
        language="c++",
    )


LOCAL_SEARCH = Path("src/gumbeldore/local_search/compiled")
local_search = Extension(
    "gumbeldore.local_search._compiled",
    sorted(str(source) for source in LOCAL_SEARCH.glob("*.cpp")),
    extra_compile_args=["-std=c++17", "-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", *OPENMP],
    extra_link_args=OPENMP,
    include_dirs=[str(BOUNDARY)],
    depends=headers(LOCAL_SEARCH),
    py_limited_api=True,
    optional=True,
    language="c++",
)

setup(ext_modules=[*(extension(kind, flags) for kind, flags in KINDS.items()), local_search])
