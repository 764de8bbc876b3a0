// Wires the page: events come in, the model keeps them, a frame shows what changed.

import { comparisonPath, get, parseExactly, serviceNow } from "./api.js";
import { rateChart, unmatchedChart } from "./charts.js";
import { showDivergences } from "./divergences.js";
import { setAttribute, setText, slot } from "./dom.js";
import { showEvidence } from "./evidence.js";
import { follow } from "./feed.js";
import { showFigures } from "./figures.js";
import { clock } from "./format.js";
import { Comparison, PAGE_SIZE } from "./model.js";
import { showOverview } from "./overview.js";
import { showSession } from "./session.js";
import { showAccounts, showLatency, showParticulars, showProgress, showUnchecked } from "./tables.js";
import { glyph, showVerdict, standing } from "./verdict.js";

const LOAD_AGAIN_MILLISECONDS = 3000;
const SHOW_AFTER_MILLISECONDS = 40;
const $ = (id) => document.getElementById(id);
const comparisons = new Map();
const charts = { unmatched: unmatchedChart($("unmatched-chart")), rate: rateChart($("rate-chart")) };
let connected = false;
let lostSince = null; // by the service's clock
let asked = false; // whether the service has said which comparisons there are
let announced = "";
let due = false;

const known = () => [...comparisons.values()].filter(({ status, gate }) => status && gate);
const selected = () => comparisons.get(decodeURIComponent(location.hash.slice(1))) ?? known()[0];

function comparison(name) {
  if (!comparisons.has(name)) comparisons.set(name, new Comparison(name));
  return comparisons.get(name);
}

const take = {
  status: (data) => comparison(data.name).takeStatus(data),
  gate: (data) => (comparison(data.comparison).gate = data),
  sample: (data) => comparison(data.comparison).takeSample(data),
  divergence: (data) => comparison(data.comparison).takeDivergence(data),
  withdrawn: (data) => comparison(data.comparison).withdraw(data.id),
  verdict: () => {},
  heartbeat: () => {},
};

follow("v1/events", {
  event(name, text) {
    take[name](name === "divergence" ? parseExactly(text) : JSON.parse(text));
    soon();
  },
  live() {
    connected = true;
    lostSince = null;
    load();
    soon();
  },
  lost() {
    lostSince = serviceNow();
    soon();
  },
  again: () => get("v1/me").catch(() => {}), // a stream does not say that it was refused; this does
});

/** All that the stream does not repeat: after a break, what came meanwhile. */
async function load() {
  try {
    const { items } = await get("v1/comparisons");
    asked = true;
    await Promise.all(items.map(({ name }) => loadOne(comparison(name))));
  } catch {
    loadAgain();
  }
  soon();
}

/** After a failure; while the connection is lost it is the stream that loads when it is back. */
function loadAgain() {
  if (!lostSince) setTimeout(load, LOAD_AGAIN_MILLISECONDS);
}

async function loadOne(one) {
  const history = get(comparisonPath(one.name, "/history"));
  await loadDivergences(one);
  one.takeHistory((await history).items);
}

async function loadDivergences(one) {
  one.expectDivergences();
  const { kind, wanted } = one;
  const query = new URLSearchParams({ limit: wanted, ...(kind && { kind }) });
  try {
    const found = await get(comparisonPath(one.name, `/divergences?${query}`), parseExactly);
    // An answer that comes after somebody chose otherwise is to a question that nobody asks any more.
    if (one.kind === kind && one.wanted === wanted) one.takeDivergences(found);
  } finally {
    one.catchUp();
  }
  soon();
}

function choose(kind) {
  const one = selected();
  Object.assign(one, { kind, wanted: PAGE_SIZE });
  loadDivergences(one).catch(loadAgain);
}

function showOlder() {
  const one = selected();
  one.wanted = Math.min(500, one.wanted + PAGE_SIZE);
  loadDivergences(one).catch(loadAgain);
}

/** Show in a moment, all that came together at once. No frame is waited for: a hidden tab has a title too. */
function soon() {
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    show();
  }, SHOW_AFTER_MILLISECONDS);
}

function show() {
  const now = serviceNow();
  const one = selected();
  showConnection(now);
  showOverview($("overview"), known(), one, lostSince);
  $("empty").hidden = !asked || comparisons.size > 0;
  $("comparison").hidden = !one?.status || !one.gate;
  if ($("comparison").hidden) return;
  document.body.classList.toggle("not-live", Boolean(lostSince) || one.gate.stale);
  showVerdict($("verdict"), one, now, lostSince);
  showFigures(document.querySelector(".figures"), one, now, !lostSince && !one.gate.stale);
  showEvidence($("evidence"), one);
  showDivergences($("divergences"), one, now, choose);
  showUnchecked($("unchecked"), one, now);
  charts.unmatched.show(one.samples);
  charts.rate.show(one.samples);
  showAccounts($("accounts"), one);
  showLatency($("latency"), one);
  showProgress($("progress"), one, now);
  showParticulars($("particulars"), one, now);
  setAttribute(slot(document, "json"), "href", comparisonPath(one.name));
  announce(one);
}

function showConnection(now) {
  const state = lostSince ? "lost" : connected ? "connected" : "connecting";
  setAttribute($("connection"), "data-state", state);
  setText(slot($("connection"), "text"), state === "lost" ? "connection lost" : state);
  $("banner").hidden = !lostSince;
  if (!lostSince) return;
  setText(
    $("banner"),
    `Connection lost at ${clock(lostSince, now)}. All below is from before; trying again.`,
  );
}

function announce(one) {
  const { word } = standing(one, lostSince);
  const title = `${glyph(word)} ${word} · ${one.name}`;
  if (document.title !== title) document.title = title;
  if (announced !== title) setText($("announce"), `${one.name}: ${word}. ${one.status.reason}`);
  announced = title;
}

slot($("divergences"), "older").addEventListener("click", showOlder);
showSession($("session"));
addEventListener("hashchange", soon);
setInterval(soon, 1000); // ages grow by themselves
