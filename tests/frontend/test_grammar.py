"""The grammar itself: no conflicts, nothing unused, the cache only a cache."""

import logging

import lark
import pytest

from opspec import resources
from opspec.frontend import grammar


def build() -> lark.Lark:
    return lark.Lark(
        resources.grammar(),
        parser="lalr",
        lexer="basic",
        start=["item", "lexical"],
        propagate_positions=True,
        maybe_placeholders=False,
        debug=True,
    )


def test_there_are_no_conflicts(caplog):
    with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
        lark.logger.addHandler(caplog.handler)
        try:
            build()
        finally:
            lark.logger.removeHandler(caplog.handler)
    assert not [r.message for r in caplog.records if "onflict" in r.message]


def test_every_terminal_has_a_word_for_messages():
    from opspec.frontend.parsing import _WORDS

    named = {t.name for t in build().terminals if not t.name.startswith("__")}
    spelled = {t.name for t in build().terminals if t.pattern.type == "str" and t.pattern.value.isalpha()}
    silent = {"NEWLINE", "SEMICOLON", "UNKNOWN", "COMMENT", "BLANK"}
    assert named - spelled - silent <= set(_WORDS)


@pytest.mark.parametrize("damage", ["none", "broken", "no folder"])
def test_a_lost_or_broken_cache_costs_nothing_but_time(damage: str, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    grammar.parser.cache_clear()
    try:
        grammar.parser()
        (entry,) = (tmp_path / "cache" / "opspec").iterdir()
        if damage == "broken":
            entry.write_bytes(b"no pickle")
        elif damage == "no folder":
            monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
        grammar.parser.cache_clear()
        tokens = list(grammar.parser().lex("op f"))
        assert [t.type for t in tokens] == ["OP", "NAME"]
    finally:
        grammar.parser.cache_clear()
