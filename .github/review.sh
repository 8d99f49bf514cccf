#!/usr/bin/env bash
# The step of action.yml: reviews $BASE against the checkout, leaves the Markdown in a file and in the summary.
# BASE, PATHS (one a line) and POLICY come from the inputs; the GITHUB_* files are the runner's.
set -u -o pipefail

report="${RUNNER_TEMP:-/tmp}/opspec-review.md"
if ! git rev-parse --verify --quiet --end-of-options "$BASE^{commit}" >/dev/null; then
  if git fetch --quiet --no-tags --depth=1 origin "$BASE"; then  # a shallow checkout has not got it
    git rev-parse --verify --quiet --end-of-options "$BASE^{commit}" >/dev/null || BASE=FETCH_HEAD  # a branch
  fi
fi

paths=()
while IFS= read -r line; do
  if [ -n "$line" ]; then paths+=("$line"); fi
done <<<"${PATHS:-}"

status=0
python -m opspec diff "--policy=${POLICY:-budget}" --format=markdown "$BASE" -- ${paths[@]+"${paths[@]}"} >"$report" || status=$?
if [ ! -s "$report" ]; then
  echo "**opspec**: no review, see the log of the step" >"$report"
fi
cat "$report" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
{
  echo "report=$report"
  echo "status=$status"
} >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
