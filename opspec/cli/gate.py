"""``opspec gate``."""

from __future__ import annotations

import argparse

from opspec.cli.pipeline import sources
from opspec.driver.select import split_target


def run(options: argparse.Namespace) -> int:
    """0 if the evidence lets the variant out, 1 if not, with the reasons."""
    from opspec.analysis.evidence import decide, evidence_table, load_results, text
    from opspec.analysis.pipeline import analyse, find_pipeline
    from opspec.analysis.pipeline.codes import unknown
    from opspec.frontend import load

    target = split_target(options.spec)
    module = load(target.spec.path)
    known = {e.name: e for e in module.evidence}
    name = target.op or (next(iter(known)) if len(known) == 1 else "")
    if name not in known:
        raise unknown(name, list(known), "evidence")
    evidence = known[name]
    results = load_results(options.evidence, module, evidence)
    pipeline = find_pipeline(module, evidence.pipeline)
    report = analyse(module, pipeline, sources(module, target, options), evidence.variant)
    decision = decide(evidence, results, report)
    table = evidence_table(module, evidence, report, results, decision)
    match options.format:
        case "json":
            import json

            print(json.dumps(text.to_json(decision, table), indent=2, ensure_ascii=False))
        case "markdown":
            print(text.to_markdown(decision, table))
        case _:
            print(text.to_text(decision, table))
    return 0 if decision.open else 1
