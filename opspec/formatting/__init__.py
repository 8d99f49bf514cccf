"""A spec in its one layout: ``lexemes`` keeps tokens and comments, ``spacing`` decides what stands between two
tokens, ``lines`` and ``items`` make a document of them, ``document`` prints it in 110 columns.
"""

from opspec.formatting.layout import format_source

__all__ = ["format_source"]
