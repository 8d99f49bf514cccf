"""The measuring half that every generated ``bench.py`` imports.

A driver is a declaration; everything that measures lives here. It reads::

    from opspec.runtime import bench
    from kernel import softmax                       # the generated launcher beside it

    def reference(x):                                # float64 tensors when checking, native ones as a peer
        return torch.softmax(x, dim=-1)

    def cost(dims, dtypes):                          # closed forms, SI units: operations and bytes
        return {"flops": …, "flops.tensor": …, "flops.vector": …, "flops.sfu": …, "flops.sfu.exp": …,
                "bytes.read": …, "bytes.write": …, "launches": 1}      # "traffic" where it is known

    DRIVER = bench.Driver(
        op="softmax",
        spec="specs/reduce/softmax.op", spec_hash="…", kernel_hash="…", opspec_version="…",
        function=softmax, reference=reference, cost=cost,
        inputs=(
            bench.TensorInput("x", dtype="X", extents=lambda d: (d["M"], d["N"])),
            bench.TensorInput("label", dtype="i64", extents=lambda d: (d["M"],), kind="index", below=lambda d: d["V"]),
            bench.ScalarInput("eps", 1e-6),
        ),
        outputs=("y",),
        dtypes={"X": ("bf16", "f16", "f32")},        # the first is the default
        workloads={
            "rows_4k": bench.Workload({"M": 8192, "N": 4096}, {"X": "bf16"}),
            "mixed": bench.Distribution(((0.3, {"M": 512, "N": 512}), (0.7, {"M": 8192, "N": 4096}))),
        },
        tolerance=lambda d, t: bench.Tolerance(terms=d["N"]),
        contraction="X",                             # dtype of the matrix work, where there is any
        peers=(bench.Peer("vendor", lambda d, t: vendor_softmax, version="vendor 1.2"),),
    )

    if __name__ == "__main__":
        raise SystemExit(bench.main(DRIVER))         # several ops: bench.main(FIRST, SECOND)

``function`` and ``reference`` take the inputs in the order of ``inputs``, and ``keywords`` by name (dims that no
shape tells), and return the outputs in the order of ``outputs`` (one tensor, or a tuple). Inputs marked ``inout`` are changed in place by ``function``;
``reference`` changes nothing and returns their new contents after the outputs, in order. A peer is made per
shape by ``factory(dims, dtypes)`` and is called like ``reference``. Dims are keyed by the spec's own letters.

What is measured, and how, is told where it is done: ``check`` (right before fast), ``sampling`` (cold L2,
interleaving, when to stop), ``statistics`` (what is said of samples), ``roofs`` and ``streams`` (what the card
can do, in the same run), ``peers``, ``roofline`` (floor, prediction, ledger), ``result`` (the JSON, whose
schema is ``result.schema.json``), ``table`` (what a person reads), ``command`` (the command line), ``suite`` (many drivers in one run, which ``worker``
measures) with its page (``overview``) and what is compiled before it (``compile_ahead``).
Without a CUDA device the driver prints the closed form and the roofline of the named machine, says that
nothing was measured, and exits 0.

Importing this package imports neither torch nor triton.
"""

from opspec.runtime.bench.command import main
from opspec.runtime.bench.model import (
    Distribution,
    Driver,
    Lengths,
    Peer,
    ScalarInput,
    TensorInput,
    Tolerance,
    Workload,
    unit,
)
from opspec.runtime.bench.preparing import prepared

__all__ = [
    "Distribution",
    "Driver",
    "Lengths",
    "Peer",
    "ScalarInput",
    "TensorInput",
    "Tolerance",
    "Workload",
    "main",
    "prepared",
    "unit",
]
