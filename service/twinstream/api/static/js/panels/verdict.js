// The verdict, the gate, the health: the part that is read first, so it must never overstate.

import { el, render, setAttribute, setText, slot } from "../base/dom.js";
import { clock, duration, secondsSince, visible } from "../base/format.js";
import { withCode } from "../base/sentence.js";

const GLYPHS = { EQUIVALENT: "✓", DIVERGED: "≠", PENDING: "…", INCONCLUSIVE: "?", "NOT LIVE": "‖" };

/** What may be said now of a comparison: its verdict, or that there is no live one. */
export function standing(comparison, lostSince) {
  const { status, gate } = comparison;
  if (lostSince) return { word: "NOT LIVE", state: "unknown", why: "connection" };
  if (gate.stale && gate.updated_at) return { word: "NOT LIVE", state: "unknown", why: "stale" };
  return { word: status.verdict, state: status.verdict.toLowerCase(), why: null };
}

export const glyph = (word) => GLYPHS[word];

export function showVerdict(root, comparison, now, lostSince) {
  const { status, gate } = comparison;
  const { word, state, why } = standing(comparison, lostSince);
  setAttribute(root, "data-state", state);
  setText(slot(root, "name"), status.name);
  render(slot(root, "pair"), [status.trial_of, status.reference, status.candidate], () => pair(status));
  setText(slot(root, "glyph"), glyph(word));
  setText(slot(root, "word"), word);
  setText(slot(root, "since"), since(status, why, now, lostSince));
  const reason = why ? `Then: ${status.reason}` : status.reason;
  render(slot(root, "reason"), reason, () => withCode(visible(reason)));
  showGate(root, status, gate, lostSince);
  showHealth(root, status, gate, lostSince);
  const what = advice(status, gate, lostSince);
  root.querySelector("#advice").hidden = !what;
  render(slot(root, "advice"), what, () => withCode(what ?? ""));
}

/** What to do where something is decided, with commands between backquotes; what an undecided gate needs, the
 * service says. */
function advice(status, gate, lostSince) {
  if (lostSince) return "Check that the service runs and can be reached. The page reconnects by itself.";
  if (gate.answer === "fail") {
    const what = status.verdict === "DIVERGED" ? "Open a divergence below." : "See the violated check below.";
    return `Do not promote the candidate. ${what}`;
  }
  if (gate.answer === "pass") return "Test the alarm: `twinstream drill FILE --kind drop`";
  return null;
}

/** Which topics are compared, each with the version that its owner gave it. */
const pair = ({ trial_of: tried, reference, candidate }) => [
  tried && `trial of ${tried}: `,
  side("reference", reference),
  " · ",
  side("candidate", candidate),
];

const side = (name, { topic, version }) =>
  el("span", { class: name }, el("b", {}, name), ` ${topic}${version ? ` (${version})` : ""}`);

function since(status, why, now, lostSince) {
  if (why) {
    const at = why === "connection" ? lostSince : Date.parse(status.updated_at);
    return `Last known: ${status.verdict} (${clock(at, now)}). It no longer counts.`;
  }
  return `since ${clock(status.since, now)}, for ${duration(secondsSince(status.since, now))}`;
}

function showGate(root, status, gate, lostSince) {
  root.querySelector("#gate").hidden = Boolean(status.trial_of);
  const answer = lostSince ? "unknown" : gate.answer;
  setAttribute(root.querySelector("#gate"), "data-answer", answer);
  setText(slot(root, "answer"), answer);
  const reason = gate.reason === status.reason ? `The verdict is ${status.verdict}.` : gate.reason;
  setText(slot(root, "gate-reason"), lostSince ? "Not known while the connection is lost." : reason);
}

/** The reasons of the health, but for those that the gate has just given. */
function showHealth(root, status, gate, lostSince) {
  const { health } = status;
  const word = lostSince ? "unknown" : health.status;
  setAttribute(root.querySelector("#health"), "data-status", word);
  const said = health.reasons.filter((reason) => status.trial_of || !gate.reason.includes(reason));
  setText(slot(root, "health"), word);
  setText(slot(root, "health-reasons"), lostSince ? "" : said.join(" "));
}
