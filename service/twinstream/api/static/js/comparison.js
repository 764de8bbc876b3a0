// One comparison: everything about it on one page, in the order in which a person on call asks.

import { comparisonPath } from "./base/api.js";
import { setAttribute, slot } from "./base/dom.js";
import { showDivergences } from "./differences/divergences.js";
import { showFound } from "./differences/found.js";
import { showGroups } from "./differences/groups.js";
import { chartsIn } from "./panels/charts.js";
import { showChecks } from "./panels/checks.js";
import { showCoverage } from "./panels/coverage.js";
import { showDeciding } from "./panels/deciding.js";
import { showDeclared } from "./panels/declared.js";
import { showFigures } from "./panels/figures.js";
import { showKnown } from "./panels/known.js";
import { showAccounts, showLatency, showParticulars, showProgress, showResets, showUnchecked } from "./panels/tables.js";
import { showTimeline } from "./panels/timeline.js";
import { showTrial } from "./panels/trial.js";
import { showVerdict } from "./panels/verdict.js";
import { showWaiting } from "./panels/waiting.js";

let charts = null; // made when they are first seen: before that they have no size

export function showComparison(root, comparison, context) {
  const { now, lostSince } = context;
  const part = (name) => root.querySelector(`#${name}`);
  arrange(root, comparison);
  showVerdict(part("verdict"), comparison, now, lostSince);
  showDeciding(part("deciding"), comparison, lostSince);
  showChecks(part("checks"), comparison);
  showGroups(part("groups"), comparison, context);
  showFound(part("found"), comparison, context);
  showDivergences(part("divergences"), comparison, context);
  showFigures(root.querySelector(".figures"), comparison, now, !lostSince && !comparison.gate.stale);
  showTimeline(part("timeline"), comparison, now);
  charts ??= chartsIn(root);
  charts.forEach((chart) => chart.show(comparison));
  showWaiting(part("waiting"), comparison, context);
  showUnchecked(part("unchecked"), comparison, now);
  showKnown(part("known"), comparison);
  showTrial(part("trial"), comparison);
  showResets(part("resets"), comparison);
  showAccounts(part("accounts"), comparison);
  showLatency(part("latency"), comparison);
  showCoverage(part("coverage"), comparison);
  showProgress(part("progress"), comparison);
  showDeclared(part("declared"), comparison, context);
  showParticulars(part("particulars"), comparison, now);
  setAttribute(slot(root, "json"), "href", comparisonPath(comparison.name));
  setAttribute(slot(root, "export"), "href", comparisonPath(comparison.name, "/divergences.ndjson"));
}

/** Where nothing differs there is room: what tells how it runs is open then. Later a person folds it, nobody else. */
function arrange(root, { name, status }) {
  if (root.dataset.name === name) return;
  root.dataset.name = name;
  root.querySelectorAll("[data-roomy]").forEach((fold) => (fold.open = !status.divergences.total));
}
