"""Which diagnostics have to do with each other: one is often met while another is mended."""

from __future__ import annotations

_TOGETHER = (
    ("OP101", "OP102", "OP108"),
    ("OP102", "OP107", "OP109"),
    ("OP103", "OP104"),
    ("OP105", "OP106"),
    ("OP110", "OP111", "OP621"),
    ("OP201", "OP203", "OP206", "OP209", "OP211"),
    ("OP202", "OP107"),
    ("OP203", "OP210"),
    ("OP204", "OP205", "OP207"),
    ("OP205", "OP206", "OP303"),
    ("OP207", "OP208", "OP212"),
    ("OP301", "OP302", "OP404", "OP406"),
    ("OP302", "OP311"),
    ("OP303", "OP304", "OP307"),
    ("OP305", "OP306"),
    ("OP308", "OP309", "OP310"),
    ("OP401", "OP402", "OP405"),
    ("OP403", "OP404"),
    ("OP501", "OP505", "OP506"),
    ("OP502", "OP503", "OP504", "OP641"),
    ("OP601", "OP602", "OP655", "OP656"),
    ("OP602", "OP731"),
    ("OP621", "OP622", "OP626"),
    ("OP622", "OP629"),
    ("OP623", "OP624", "OP625"),
    ("OP627", "OP722"),
    ("OP641", "OP642", "OP643"),
    ("OP651", "OP652", "OP741", "OP742"),
    ("OP653", "OP741"),
    ("OP654", "OP652", "OP711"),
    ("OP671", "OP672", "OP673", "OP674"),
    ("OP701", "OP724"),
    ("OP721", "OP722", "OP723", "OP724"),
    ("OP725", "OP726"),
    ("OP743", "OP781", "OP782"),
    ("OP751", "OP752", "OP753", "OP754", "OP755", "OP756"),
    ("OP501", "OP757"),
)


def related(code: str) -> tuple[str, ...]:
    """The codes that stand beside one, in order."""
    beside = {other for group in _TOGETHER if code in group for other in group}
    return tuple(sorted(beside - {code}))


def mentioned() -> frozenset[str]:
    """Every code in the table."""
    return frozenset(code for group in _TOGETHER for code in group)
