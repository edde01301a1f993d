"""Reading other people's pickles: plain data and arrays come out, and nothing is executed."""

from __future__ import annotations

import builtins
import copyreg
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from gumbeldore.errors import FormatError
from gumbeldore.io.pickles import read_pickle


@pytest.fixture
def written(tmp_path):
    """Writes bytes into a file and returns it."""

    def write(content: bytes):
        path = tmp_path / "data.pickle"
        path.write_bytes(content)
        return path

    return write


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def _text(content: str) -> bytes:
    """A text as an opcode."""
    return b"X" + struct.pack("<I", len(content.encode())) + content.encode()


def attacks(target: str) -> dict[str, bytes]:
    """Pickles that would touch a file when they are loaded."""
    command, code = f"touch {target}", f"open({target!r}, 'w').close()"
    binary = _text(command)
    return {
        "reduce": pickle.dumps(Call(os.system, command), 4),
        "reduce, old": pickle.dumps(Call(os.system, command), 0),
        "in a list of records": pickle.dumps([{"inst": np.zeros((3, 2)), "tour": Call(os.system, command)}], 4),
        "eval": pickle.dumps(Call(builtins.eval, code), 4),
        "inst": b"(" + binary + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + binary + b"o.",
        "build": b"cargparse\nNamespace\n)\x81}" + _text("__setstate__") + b"cos\nsystem\nsb" + binary + b"b.",
        "dotted name": b"\x80\x04X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93(" + binary + b"tR.",
        "extension": b"\x80\x02\x82\xf0" + binary + b"\x85R.",
    }  # fmt: skip


@pytest.fixture
def extension():
    """An extension code that this process knows, and has used."""
    copyreg.add_extension("os", "system", 0xF0)
    pickle.loads(b"\x80\x02\x82\xf0.")
    yield
    copyreg.remove_extension("os", "system", 0xF0)
    copyreg.clear_extension_cache()


NAMES = list(attacks("x"))


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("name", NAMES)
def test_an_attack_is_refused_and_touches_nothing(name, written, tmp_path):
    target = tmp_path / "touched"
    path = written(attacks(str(target))[name])
    with pytest.raises(FormatError, match="names `"):
        read_pickle(path)
    assert not target.exists()


@pytest.mark.parametrize("name", NAMES)
def test_the_attacks_are_real(name, written, tmp_path):
    """Python's own reader falls for each of them; otherwise the test above could not fail."""
    target = tmp_path / "touched"
    path = written(attacks(str(target))[name])
    code = f"import copyreg, pickle; copyreg.add_extension('os', 'system', 0xF0); pickle.load(open({str(path)!r}, 'rb'))"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert target.exists()


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tc_codecs\nencode\n(X\x01\x00\x00\x00bX\x06\x00\x00\x00latin1tRtR"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([np.array([{"a": 1}], dtype=object)], 4),
        pickle.dumps(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), 4),
        pickle.dumps({1, 2}, 4),
        pickle.dumps([1, 2, 3], 4)[:-3],
        b"cnumpy\ndtype\n" + _text("O8") + b"\x85R.",
        b"cnumpy\ndtype\n}" + _text("a") + b"K\x01sb.",  # changes the function
        b"cnumpy\ndtype\nN}" + _text("_call") + b"K\x01s\x86b.",  # likewise, as a slot
        b"cnumpy\ndtype\n.",  # hands it out
        ARRAY + b"(K\x01K\x05\x85Nnb.",
        ARRAY + b".",  # an array without content
        b"cnumpy.core.multiarray\n_reconstruct.__globals__\n.",
        b"\x80\x02Pabc\n.",
        b"(lp0\ng0\na.",  # a list within itself
    ],
)
def test_what_is_not_plain_data_is_refused(content, written):
    with pytest.raises(FormatError, match=r"data\.pickle"):
        read_pickle(written(content))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<i8", ">i4", "|b1", "|u1"])
def test_arrays_of_numbers_come_out_as_they_went_in(written, protocol, kind):
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    content = [
        {"a": array, "f": np.asfortranarray(array), "empty": array[:0], "scalar": array[1, 1, 1]},
        (array.T, None, 5, "x"),
    ]
    found = read_pickle(written(pickle.dumps(content, protocol)))
    for name in ("a", "f", "empty"):
        np.testing.assert_array_equal(found[0][name], content[0][name])
        assert found[0][name].dtype.kind == array.dtype.kind
    assert found[0]["scalar"] == array[1, 1, 1]
    np.testing.assert_array_equal(found[1][0], array.T)
    assert found[1][1:] == (None, 5, "x")


def test_names_of_both_versions_of_numpy_are_known(written):
    content = pickle.dumps(np.arange(3.0), 4)
    assert b"numpy._core" in content or b"numpy.core" in content
    for place in (b"numpy.core.multiarray\n", b"numpy._core.multiarray\n"):
        old = (
            pickle.dumps(np.arange(3.0), 2)
            .replace(b"numpy._core.multiarray\n", place)
            .replace(b"numpy.core.multiarray\n", place)
        )
        np.testing.assert_array_equal(read_pickle(written(old)), np.arange(3.0))


def test_a_small_file_stays_small(written):
    """Lists of the same list twice, forty times: a copy of it would have a trillion parts."""
    nested: list = []
    for _ in range(40):
        nested = [nested, nested]
    found = read_pickle(written(pickle.dumps(nested, 4)))
    assert found[0] is found[1]
