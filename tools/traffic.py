"""Hardware counters beside ``traffic``: ``python -m tools.traffic SPEC:OP[@WORKLOAD]… [--csv FILE]``.

Each op of a spec is called once under Nsight Compute (``ncu``), at every workload or the one that is named, with its
generated package under ``generated/``. A line a kernel says what arrives in the multiprocessors and is read
from memory, as counted, beside what the spec derives: ``traffic`` less its stores, at the blocks of the launch, and
the compulsory ``bytes.read``. Needs a GPU and ``ncu``. With ``--csv`` the counters are kept there.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sympy
import torch

from opspec.analysis.costs import cost
from opspec.analysis.lattice.symbols import symbol
from opspec.driver.subjects import Subject, subjects_of
from opspec.driver.targets import limits
from opspec.driver.traffic import program_traffic
from opspec.driver.tune import probe
from opspec.frontend import load
from opspec.runtime.bench.inputs import make_set
from opspec.runtime.bench.model import Driver, cases
from opspec.runtime.bench.packages import load_drivers

ROOT = Path(__file__).resolve().parents[1]
LOADED, READ, TIME = (
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "dram__bytes_read.sum",
    "gpu__time_duration.sum",
)
UNITS = {
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the device counted for one launch: bytes and seconds."""

    kernel: str
    loaded: float
    read: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What the spec says of one kernel at the blocks of its launch, in bytes."""

    kernel: str
    loaded: float
    read: float


def parts(text: str) -> tuple[str, str, str | None]:
    """Spec, op and workload of ``SPEC:OP[@WORKLOAD]``."""
    spec, _, rest = text.partition(":")
    op, _, workload = rest.partition("@")
    return spec, op, workload or None


def derived(subject: Subject, workload: str) -> list[Derived]:
    """Each kernel of an op at the blocks that its launcher chooses."""
    op, case = subject.op, cases(subject.driver, workload)[-1]
    inputs = make_set(subject.driver, case, seed=0, device="cuda")
    dtypes = dict(case.dtypes)
    costs = cost(op, dtypes)
    found = []
    for launch in subject.launches:
        _, variant, options = probe(subject, inputs, launch, {})
        forms = [{t.name, t.name if t.warps is None else t.warps.name} for t in launch.texts]
        place = next(k for k, names in enumerate(forms) if variant in names)
        program = launch.plan.variants[place].program
        values = {symbol(name): value for name, value in {**case.dims, **options}.items()}
        block = next(b for b in costs.boundaries[""] if b.name == program.kernel)
        written, read = (sum(t.count for t in block.bytes if t.direction == d) for d in ("write", "read"))
        moved = program_traffic(op, op.boundaries[0], program, dtypes) - written
        found.append(
            Derived(
                kernel=variant, loaded=float(moved.subs(values)), read=float(sympy.sympify(read).subs(values))
            )
        )
    return found


def counted(spec: str, op: str, workload: str) -> tuple[list[Counted], str]:
    """What the device counts for each launch of one call, and the profiler's own table."""
    done = subprocess.run(
        [
            "ncu", "--csv", "--clock-control", "none", "--cache-control", "all", "--kernel-name", f"regex:^_{op}_",
            "--metrics", f"{LOADED},{READ},{TIME}", sys.executable, "-m", "tools.traffic", "--call", f"{spec}:{op}@{workload}",
        ],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    start = done.stdout.find('"ID"')
    if start < 0:
        raise SystemExit(f"ncu counted nothing: {(done.stderr or done.stdout).strip()[-500:]}")
    table = done.stdout[start:]
    return list(launches_in(table)), table


def launches_in(table: str) -> Iterator[Counted]:
    """The launches in a table of ``ncu --csv``, in their order."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        _, values = found.setdefault(row["ID"], (row["Kernel Name"], {}))
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
    for kernel, values in found.values():
        yield Counted(kernel=kernel, loaded=values[LOADED], read=values[READ], seconds=values[TIME])


def line(workload: str, seen: Counted, said: Derived | None) -> str:
    """A launch beside what was derived for it."""
    text = f"{seen.kernel} {workload}: arrives {seen.loaded / 1e6:.1f} MB"
    if said is not None:
        text += f" ({seen.loaded / said.loaded - 1:+.1%} of traffic)" if said.loaded else ""
    text += f", memory reads {seen.read / 1e6:.1f} MB"
    if said is not None:
        text += f" ({seen.read / said.read - 1:+.1%} of bytes.read)" if said.read else ""
    return f"{text}, {seen.seconds * 1e6:.1f} µs"


def driver_of(spec: str, op: str) -> Driver:
    """The generated driver of an op."""
    folder = ROOT / "generated" / Path(spec).with_suffix("").relative_to("specs")
    return next(d for d in load_drivers(folder) if d.op == op)


def main() -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("targets", nargs="+", metavar="SPEC:OP[@WORKLOAD]")
    parser.add_argument("--csv", type=Path, help="keep the counters here")
    parser.add_argument("--call", action="store_true", help="only call the op, for the profiler to watch")
    options = parser.parse_args()
    tables = []
    for target in options.targets:
        spec, name, only = parts(target)
        if options.call:
            assert only is not None
            driver = driver_of(spec, name)
            make_set(driver, cases(driver, only)[-1], seed=0, device="cuda").call(driver.function)
            torch.cuda.synchronize()
            continue
        module = load(Path(spec))
        op = module.op(name)
        if op is None:
            parser.error(f"`{spec}` has no op `{name}`")
        _, (subject,) = subjects_of(module, (op,), spec, limits())
        for workload in [w.name for w in module.workloads_of(name) if only in (None, w.name)]:
            seen, table = counted(spec, name, workload)
            said = {d.kernel: d for d in derived(subject, workload)}
            for launch in seen:
                print(line(workload, launch, said.get(launch.kernel.removesuffix("_described"))), flush=True)
            tables.append(table)
    if options.csv is not None and tables:
        options.csv.write_text(
            tables[0] + "".join(t.partition("\n")[2] for t in tables[1:]), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
