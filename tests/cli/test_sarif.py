"""``check --format sarif``: a log that fits SARIF 2.1.0, with a rule a code and places with columns."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

from opspec.analysis.report.schema import faults
from opspec.driver.codes import all_codes
from tests.cli.conftest import SCALE, shell

ESSENTIALS = json.loads(Path(__file__).with_name("sarif.schema.json").read_text(encoding="utf-8"))
TWICE = "op f[M](x: f32[M]) -> y: f32[M] {\n  kernel k { y[m] = x[m] }\n}\nop f[M](x: f32[M]) -> y: f32[M] {\n  kernel k { y[m] = x[m] }\n}\n"


def run_of(text: str) -> dict:
    log = json.loads(text)
    assert list(faults(log, ESSENTIALS)) == []
    return log["runs"][0]


def test_places_levels_and_rules(opspec, tmp_path):
    (tmp_path / "scale.op").write_text(SCALE.replace("8000", "7999"))
    ran = opspec("check", str(tmp_path), "--format", "sarif")
    assert ran.status == 1
    run = run_of(ran.out)
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("OP731", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "OP731"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tmp_path / "scale.op").as_uri()
    region = place["region"]
    assert (region["startLine"], region["startColumn"], region["endLine"], region["endColumn"]) == (
        10,
        3,
        10,
        16,
    )
    assert region["snippet"]["text"] == "  bytes == 7999"
    assert "help: change the op" in result["message"]["text"]


def test_every_code_is_a_rule_with_a_page(opspec, spec):
    run = run_of(opspec("check", str(spec), "--format", "sarif").out)
    assert run["results"] == []
    rules = {r["id"]: r for r in run["tool"]["driver"]["rules"]}
    assert set(rules) == set(all_codes())
    for name, rule in rules.items():
        assert f"[{name}]" in rule["help"]["text"]
        assert "**Fix:**" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] == all_codes()[name].severity


def test_relative_paths_notes_with_places_and_characters_outside_of_ascii(tmp_path):
    (tmp_path / "é x#1.op").write_text(TWICE.replace("op f", "# ä 𝛼\nop f", 1), encoding="utf-8")
    ran = shell("check", "é x#1.op", "--format", "sarif", cwd=tmp_path)
    assert ran.status == 2
    (result,) = run_of(ran.out)["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (uri.isascii(), "#" in uri, unquote(uri)) == (True, False, "é x#1.op")
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_a_fingerprint_stays_as_lines_move(opspec, spec):
    def fingerprints() -> list:
        results = run_of(opspec("check", str(spec), "--format", "sarif").out)["results"]
        return [r["partialFingerprints"] for r in results]

    spec.write_text(SCALE.replace("8000", "7999"))
    before = fingerprints()
    spec.write_text("# one line more\n" + SCALE.replace("8000", "7999"))
    assert fingerprints() == before
    spec.write_text(SCALE.replace("8000", "7998"))
    assert fingerprints() != before


def test_what_ends_the_command_is_a_log_too(opspec, tmp_path):
    ran = opspec("check", str(tmp_path / "nothing.op"), "--format", "sarif")
    assert ran.status == 2
    (result,) = run_of(ran.out)["results"]
    assert (result["ruleId"], "locations" in result) == ("OP621", False)
