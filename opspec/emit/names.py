"""User names in generated Python: kept as written where possible, never with another meaning."""

from __future__ import annotations

import builtins
import hashlib
import keyword

# Names that the generated module or a Triton launch gives a meaning to.
MODULE = frozenset(
    {
        "annotations", "bench", "cost", "device", "kernel", "launch", "library", "main", "math", "os", "reference", "runtime",
        "sys", "tl", "torch", "triton", "opspec",
        "walks", "INDEX", "GROUP", "SEGMENTS", "FIRST", "LAST", "TOGETHER", "STEPS", "WIDE", "OVERLAP", "FULL", "ODD", "pid", "out", "call", "dims", "options",
        "width", "aligned", "gl", "gluon", "warps", "specialised", "STAGES", "adjacent", "tiles", "described", "tuned", "copying", "checked", "chunk", "tile",
    }
)  # fmt: skip
# Device functions of the runtime, which a kernel imports by name.
HELPERS = frozenset(
    {
        "all_before", "any_before", "any_nan", "as_loaded", "before_row", "clamp_to", "decay_before", "decayed",
        "div_fast", "div_near", "dot_behind", "dot_inside", "dot_parts", "eights", "erf", "even_elements", "exp", "fetch_ahead", "first_of_lanes", "first_of_rows", "floor_div", "floor_mod",
        "grouped", "in_row", "inverse", "is_greatest", "is_least", "is_nan", "lane_places", "let_next_come", "lifted_words", "load_once", "load_one", "load_parts", "load_row", "lowered", "max_before", "maximum", "min_before", "minimum", "mixed", "nibble",
        "nibbles", "one_plus_erf", "pack_nibbles", "prod_before", "quotients", "quotients_near", "quotients_spanned", "reduce_all", "reduce_any",
        "reduce_max", "reduce_min",
        "reduce_prod", "renewed", "round_even", "scan_all", "scan_any", "scan_decay", "scan_max", "scan_min",
        "segment_tile", "segment_tiles", "segments", "sum_before", "sum_both", "sum_parts", "tanh", "to_f8e4m3_nonsat", "to_f8e4m3_sat", "to_f8e5m2_nonsat",
        "to_f8e5m2_sat", "to_i32_sat", "to_i4_sat", "to_i4_wrap", "to_i8_sat", "dot_units", "interleaved", "minus_halves", "planes", "plus_halves",
        "times_halves", "unless_full", "unpacked", "unpacked_words", "wait_for_earlier", "widen", "widen_pairs", "widen_parts", "widened", "zeros_parts",
    }
)  # fmt: skip
LAUNCH = frozenset(
    {
        "num_warps", "num_stages", "num_ctas", "maxnreg", "warmup", "grid", "stream", "debug", "enable_fp_fusion",
        "cluster_dims", "extern_libs", "sanitize_overflow", "num_buffers_warp_spec", "num_consumer_groups",
        "reg_dec_producer", "reg_inc_producer", "ir_override", "instrumentation_mode", "launch_cooperative_grid",
        "launch_pdl", "arch", "backend_name", "ptx_options", "ptx_version", "key", "self", "args", "kwargs",
    }
)  # fmt: skip
BUILTINS = frozenset(dir(builtins))
RESERVED = (
    MODULE | HELPERS | LAUNCH | BUILTINS | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) - {"_"}
)


def escape(name: str) -> str:
    """A Python identifier for a user's name; a trailing underscore where the name is taken."""
    return f"{name}_" if name in RESERVED or name.startswith("__") else name


def shorten(name: str, limit: int = 80) -> str:
    """A name of at most ``limit`` characters, distinct from others that share its beginning."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: limit - 13]}_{digest}"
