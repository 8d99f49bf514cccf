"""Text → checked IR. ``load`` is the way in; the steps are ``lexing``, ``parsing``,
``building`` (syntax tree), then ``loading``, ``signature``, ``statements``, ``finishing``.
"""

from opspec.frontend.loading import load, load_text, load_with_warnings, text_with_warnings

__all__ = ["load", "load_text", "load_with_warnings", "text_with_warnings"]
