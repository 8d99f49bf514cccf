"""The prelude is parsed once per version and kept; what is kept can only save time."""

from pathlib import Path

import pytest

from opspec.diagnostics import Failure
from opspec.frontend import load_text
from opspec.frontend.loading import prelude
from opspec.frontend.show import show_syntax
from opspec.frontend.syntax import File

SPEC = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = softmax[i](x[i]) } }"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OPSPEC_CACHE", str(tmp_path))
    prelude.cache_clear()
    yield tmp_path / "opspec"
    prelude.cache_clear()


def shown() -> str:
    source, functions = prelude()
    assert all(f.span.source is source for f in functions)
    return show_syntax(File(source, "", functions))


def test_what_was_kept_is_the_same(cache):
    first = shown()
    (entry,) = cache.glob("prelude-*")
    prelude.cache_clear()
    assert shown() == first
    assert [p.name for p in cache.glob("prelude-*")] == [entry.name]
    load_text(SPEC)


def test_a_broken_entry_is_built_again(cache):
    first = shown()
    (entry,) = cache.glob("prelude-*")
    for junk in (b"", b"junk", b"\x80\x04N."):
        entry.write_bytes(junk)
        prelude.cache_clear()
        assert shown() == first


def test_a_folder_that_cannot_be_written_does_no_harm(cache):
    cache.parent.joinpath("opspec").write_text("a file")
    assert shown()


def test_faults_in_what_replaces_a_function_are_still_found(cache):
    shown()
    prelude.cache_clear()
    with pytest.raises(Failure) as e:
        load_text("fn softmax[t](x) = y\n" + SPEC)
    assert {d.code.code for d in e.value.diagnostics} == {"OP201"}
