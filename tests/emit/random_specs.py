"""Random specs as text: chains of maps, reductions, contractions and norms over a few axes.

``python tests/emit/random_specs.py FIRST LAST [COUNT] [running]`` builds and interprets that range of seeds and prints
what is wrong or refused. Nearly every spec is legal; one that isn't must be refused in words.
"""

from __future__ import annotations

import random
import re
import sys

AXES = {"i": "A", "j": "B", "k": "C", "l": "D"}
STORED = ("f32", "f32", "bf16", "f16", "f8e4m3")


class Maker:
    """One random spec. Index letters keep their dim, so that values can be read where they are made."""

    def __init__(self, seed: int, *, running: bool = False) -> None:
        self.r = random.Random(seed)
        self.running = running
        self.tensors: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.scalars: dict[str, str] = {}
        self.values: dict[str, tuple[str, ...]] = {}
        self.masked: set[str] = set()
        self.scans: dict[str, tuple[str, str]] = {}
        self.statements: list[str] = []
        self.outputs: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.assumes: set[str] = set()
        self.square = self.r.random() < 0.25
        if self.square:
            self.axes = {**AXES, "j": "A"}
        else:
            self.axes = dict(AXES)

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def some(self, names: tuple[str, ...], least: int = 0) -> tuple[str, ...]:
        count = self.r.randint(min(least, len(names)), len(names))
        return tuple(sorted(self.r.sample(names, count)))

    # expressions ------------------------------------------------------------------------------
    def tensor(self, at: tuple[str, ...], dtype: str | None = None) -> str:
        """A read of an input over exactly these indices, in some order of axes."""
        order = list(at)
        self.r.shuffle(order)
        extents = tuple(self.axes[a] for a in order)
        dtype = dtype or self.r.choice(STORED)
        known = [n for n, (d, e) in self.tensors.items() if d == dtype and e == extents]
        name = self.r.choice(known) if known and self.chance(0.5) else f"t{len(self.tensors)}"
        self.tensors[name] = (dtype, extents)
        return f"{name}[{', '.join(order)}]" if order else name

    def shifted(self, at: tuple[str, ...]) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = (self.r.choice(STORED), tuple(self.axes[a] for a in at))
        moved = list(at)
        k = self.r.randrange(len(at))
        step = self.r.choice(("- 1", "+ 1", "+ 3", "- 2"))
        moved[k] = f"{at[k]} {step}" if self.chance(0.7) else f"{self.axes[at[k]]} - {at[k]}"
        other = self.r.choice(("0", "-1.5", "inf"))
        return f"({name}[{', '.join(moved)}] else {other})"

    def gathered(self, at: tuple[str, ...]) -> str:
        name, where = f"t{len(self.tensors)}", f"g{len(self.tensors)}"
        k = self.r.choice(at)
        rest = tuple(a for a in at if a != k)
        self.tensors[where] = (self.r.choice(("i32", "i64")), (self.axes[k],))
        self.tensors[name] = (self.r.choice(STORED[:4]), ("V", *(self.axes[a] for a in rest)))
        return f"{name}[{', '.join((f'{where}[{k}]', *rest))}]"

    def leaf(self, at: tuple[str, ...], need: str | None = None) -> str:
        """A value over some of the indices, over ``need`` in any case."""
        usable = [
            v
            for v, own in self.values.items()
            if set(own) <= set(at) and (need is None or need in own) and v not in self.masked
        ]
        if usable and self.chance(0.45):
            v = self.r.choice(usable)
            if v in self.scans and self.chance(0.4):
                along, step = self.scans[v]
                moved = [f"{i} {step}" if i == along else i for i in self.values[v]]
                return f"({v}[{', '.join(moved)}] else {self.r.choice(('0', '-1.5'))})"
            return f"{v}[{', '.join(self.values[v])}]" if self.values[v] else v
        own = tuple(sorted({*self.some(at, 1), *([need] if need else [])}))
        roll = self.r.random()
        if own and roll < 0.12:
            return self.shifted(own)
        if own and roll < 0.2:
            return self.gathered(own)
        if need is None and roll < 0.27:
            self.scalars.setdefault("c", "f32 = 1.5")
            return "c"
        if need is None and roll < 0.33:
            return self.r.choice(("0.5", "2", "-1", f"{self.r.choice(at or ('3',))} * 0.1"))
        return self.tensor(own)

    def expression(self, at: tuple[str, ...], depth: int, need: str | None = None) -> str:
        if depth == 0 or self.chance(0.2):
            return self.leaf(at, need)
        a = self.expression(at, depth - 1, need)
        roll = self.r.random()
        if roll < 0.55:
            b = self.expression(at, depth - 1)
            form = self.r.choice(
                (
                    "{a} + {b}",
                    "{a} - {b}",
                    "{a} * {b}",
                    "{a} / (abs({b}) + 1)",
                    "max({a}, {b})",
                    "min({a}, {b})",
                )
            )
            return "(" + form.format(a=a, b=b) + ")"
        if roll < 0.65:
            b, c = self.expression(at, depth - 1), self.leaf(at)
            test = self.r.choice((f"{c} > 0", f"{self.r.choice(at)} > 1", "B > 2") if at else (f"{c} > 0",))
            return f"where({test}, {a}, {b})"
        form = self.r.choice(
            (
                "abs({a})", "exp(-abs({a}))", "tanh({a})", "sqrt(abs({a}))", "bf16({a})", "f16({a} * 0.1)", "-{a}",
                "{a} ** 2", "sigmoid({a})", "relu({a})", "log(abs({a}) + 1)", "floor({a})",
            )
        )  # fmt: skip
        return form.format(a=f"({a})" if form.startswith(("-", "{")) else a)

    # statements -------------------------------------------------------------------------------
    def map(self, name: str, at: tuple[str, ...]) -> str:
        return self.expression(at, 2, at[0] if at else None)

    def condition(self, at: tuple[str, ...], over: str) -> str:
        options = [f"{over} > 1", f"{over} + 2 < {self.axes[over]}"]
        for a in at:
            options += [f"{over} <= {a}", f"{over} >= {a}", f"{a} - {over} < 3, {over} <= {a}"]
        if at:
            options.append(f"{over} < n{at[0]}[{at[0]}]")
        chosen = self.r.choice(options)
        if chosen.endswith("]"):
            self.tensors[f"n{at[0]}"] = ("i32", (self.axes[at[0]],))
            self.assumes |= {f"n{at[0]}[{at[0]}] >= 0", f"n{at[0]}[{at[0]}] <= {self.axes[over]}"}
        return chosen

    def fold(self, at: tuple[str, ...], over: tuple[str, ...]) -> str:
        monoid = self.r.choice(("sum", "sum", "sum", "max", "min", "prod"))
        body = self.expression((*at, *over), 2, over[0])
        for o in over[1:]:
            body = f"({body}) * {self.tensor((o,))}"
        where = f" | {self.condition(at, over[0])}" if self.chance(0.3) else ""
        empty = " else 0.5" if monoid in ("max", "min") else ""
        if monoid == "prod":
            body = f"1 + tanh({body}) * 0.1"
        return f"{monoid}[{', '.join(over)}{where}]({body}){empty}"

    def place(self, at: tuple[str, ...], over: str) -> str:
        """Where an extreme stands."""
        where = f" | {self.condition(at, over)}" if self.chance(0.3) else ""
        return f"{self.r.choice(('argmax', 'argmin'))}[{over}{where}]({self.expression((*at, over), 2, over)}) else -1"

    def scan(self, name: str, at: tuple[str, ...]) -> str:
        """A running reduction along one of the indices, sometimes as it was just before the point."""
        over = self.r.choice(at)
        monoid = self.r.choice(("sum", "sum", "sum", "max", "min", "prod"))
        body = self.expression(at, 2, over)
        if monoid == "prod":
            body = f"1 + tanh({body}) * 0.1"
        if monoid == "sum" and self.chance(0.3):
            body = f"{body}, sigmoid({self.leaf(at)})"
        sign = self.r.choice(("", "-"))
        self.scans[name] = over, "+ 1" if sign else "- 1"
        return f"scan_{monoid}[{sign}{over}]({body})"

    def product(self, at: tuple[str, ...], k: str) -> str:
        left = tuple(sorted({*at[: len(at) // 2 + 1], k}))
        right = tuple(sorted({*at[len(at) // 2 :], k}))
        dtype = self.r.choice(("bf16", "f16", "f32", "f8e4m3"))
        a = self.tensor(left, dtype) if self.chance(0.7) else self.leaf((*at, k), k)
        b = self.tensor(right, dtype)
        using = " using bf16 " if self.chance(0.3) else ""
        where = f" | {self.condition(at, k)}" if self.chance(0.15) else ""
        total = f"sum[{k}{where}]{using}({a} * {b})"
        if self.chance(0.4):
            total = f"{total} * {self.leaf(at)}"
        return total

    def norm(self, at: tuple[str, ...], over: str) -> tuple[str, tuple[str, ...]]:
        body = self.expression((*at, over), 1, over)
        form = self.r.choice(("softmax", "logsumexp", "mean", "var", "log_softmax", "rest"))
        if form == "rest":
            return f"({body}) - max[{over}]({body}) else 0", tuple(sorted((*at, over)))
        whole = form in ("softmax", "log_softmax")
        return f"{form}[{over}]({body})", tuple(sorted((*at, over))) if whole else at

    def statement(self, name: str) -> None:
        letters = tuple(self.axes)
        at = self.some(letters[:3], 1) if self.chance(0.9) else ()
        free = tuple(a for a in letters if a not in at)
        roll = self.r.random()
        if self.values and self.chance(0.6):
            # go on from what there is
            base = self.values[self.r.choice(list(self.values))]
            at = base if self.chance(0.6) else base[:-1]
            free = tuple(a for a in letters if a not in at)
        own = at
        if self.running and at and self.chance(0.35):
            text = self.scan(name, at)
        elif self.running and free and self.chance(0.2):
            text = self.place(at, self.r.choice(free))
        elif (roll < 0.3 and at) or not free:
            text = self.map(name, at)
        elif roll < 0.55:
            over = (
                (self.r.choice(free),) if self.chance(0.8) or len(free) < 2 else tuple(self.r.sample(free, 2))
            )
            text = self.fold(at, over)
        elif roll < 0.78 and len(at) >= 2:
            text = self.product(at, self.r.choice(free))
        else:
            text, own = self.norm(at, self.r.choice(free))
        domain = ""
        if own and len(own) == 2 and self.chance(0.15):
            domain = f" for {own[1]} <= {own[0]}"
            self.masked.add(name)
        else:
            domain = "".join(f" for {own[0]} < {self.axes[own[0]]}" for _ in [0] if own)
            domain = (" for " + ", ".join(f"{a} < {self.axes[a]}" for a in own)) if own else ""
        if self.masked & {name}:
            domain += "".join(f", {a} < {self.axes[a]}" for a in own)
        self.values[name] = own
        shown = f"{name}[{', '.join(own)}]" if own else name
        self.statements.append(f"{shown} = {text}{domain}")

    def spec(self) -> str:
        count = self.r.randint(1, 4)
        for k in range(count):
            self.statement(f"v{k}")
            if k and self.masked:
                break
        kernels: list[list[str]] = [[]]
        for k, (name, own) in enumerate(list(self.values.items())):
            line = self.statements[k]
            last = k == len(self.values) - 1
            if (last or self.chance(0.4)) and name not in self.masked:
                self.outputs[name] = (
                    self.r.choice(("f32", "f32", "bf16", "f16")),
                    tuple(self.axes[a] for a in own),
                )
            elif last:
                indices = ", ".join(own)
                kernels[-1].append(line)
                tail = " for " + ", ".join(f"{a} < {self.axes[a]}" for a in own)
                line = f"out[{indices}] = {name}[{indices}] else 0{tail}"
                self.outputs["out"] = ("f32", tuple(self.axes[a] for a in own))
            elif self.chance(0.2):
                head, _, tail = line.partition(" = ")
                kind = self.r.choice(("bf16", "f32"))
                line = f"{head.replace('[', f': {kind}[', 1) if '[' in head else head} = {tail}"
            kernels[-1].append(line)
            if not last and self.chance(0.2):
                kernels.append([])
        parameters = [f"{n}: {d}[{', '.join(e)}]" for n, (d, e) in self.tensors.items()]
        parameters += [f"{n}: {t}" for n, t in self.scalars.items()]
        results = [f"{n}: {d}[{', '.join(e)}]" for n, (d, e) in self.outputs.items()]
        body = "".join(
            f"  kernel k{k} {{\n" + "".join(f"    {line}\n" for line in lines) + "  }\n"
            for k, lines in enumerate(kernels)
        )
        assumes = f"  assume {', '.join(sorted(self.assumes))}\n" if self.assumes else ""
        used = {d for _, e in (*self.tensors.values(), *self.outputs.values()) for d in e}
        used |= {d for d in "ABCD" if any(re.search(rf"\b{d}\b", line) for line in self.statements)}
        dims = [d for d in "ABCDV" if d in used]
        return f"op made[{', '.join(dims)}]({', '.join(parameters)}) -> {', '.join(results)} {{\n{assumes}{body}}}\n"


def spec(seed: int, *, running: bool = False) -> str:
    """The spec of a seed; ``running``: with scans and arg-reductions among its statements."""
    return Maker(seed, running=running).spec()


def main() -> None:
    from checking import ask, faults

    running = "running" in sys.argv
    if running:
        sys.argv.remove("running")
    first, last = int(sys.argv[1]), int(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    refused: dict[str, int] = {}
    for seed in range(first, last):
        text = spec(seed, running=running)
        found = ask(text, count, seed=seed, limit=250)
        wrong = faults(found)
        for r in found.get("refused", ()):
            refused[r["code"]] = refused.get(r["code"], 0) + 1
            if not r["code"].startswith("OP64"):
                print(f"seed {seed}: {r['code']} line {r['line']}: {r['message']}", flush=True)
        if wrong:
            print(f"--- seed {seed}\n{text}", flush=True)
            for w in wrong:
                print("   ", w[-1500:], flush=True)
    print(f"{last - first} specs, refused {refused}")


if __name__ == "__main__":
    main()
