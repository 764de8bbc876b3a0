// One comparison: everything about it on one page, in the order in which a person on call asks.

import { comparisonPath } from "./api.js";
import { chartsIn } from "./charts.js";
import { showChecks } from "./checks.js";
import { showCoverage } from "./coverage.js";
import { showDeclared } from "./declared.js";
import { showDeciding } from "./deciding.js";
import { showDivergences } from "./divergences.js";
import { setAttribute, slot } from "./dom.js";
import { showFigures } from "./figures.js";
import { showFound } from "./found.js";
import { showGroups } from "./groups.js";
import { showKnown } from "./known.js";
import { showAccounts, showLatency, showParticulars, showProgress, showResets, showUnchecked } from "./tables.js";
import { showTimeline } from "./timeline.js";
import { showTrial } from "./trial.js";
import { showVerdict } from "./verdict.js";
import { showWaiting } from "./waiting.js";

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
