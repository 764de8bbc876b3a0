// Wires the page: events come in, the model keeps them, the address says what is shown, the painter when.

import { get, serviceNow } from "./base/api.js";
import { el, setAttribute, setText, slot } from "./base/dom.js";
import { clock } from "./base/format.js";
import { Painter } from "./base/painter.js";
import { offerTimes, showTimes } from "./base/times.js";
import { showComparison } from "./comparison.js";
import { asked } from "./differences/divergences.js";
import { chooseTimes } from "./differences/found.js";
import { showDivergence } from "./divergence.js";
import { listen } from "./frame/keyboard.js";
import { offerReset } from "./frame/reset.js";
import { showSession } from "./frame/session.js";
import { tabTitle } from "./frame/title.js";
import { showTrail } from "./frame/trail.js";
import { orders, showOverview } from "./overview.js";
import { standing } from "./panels/verdict.js";
import { follow } from "./state/feed.js";
import { changed, href, parse } from "./state/route.js";
import { Store } from "./state/store.js";

const $ = (id) => document.getElementById(id);
const LOOK_MILLISECONDS = 5000;
const NO_EVENTS =
  "No events come from the service, so nothing is shown. A proxy on the way must pass them on one by one, " +
  "without buffering. Trying again.";
const VIEWS = { overview: $("overview"), comparison: $("comparison"), divergence: $("divergence") };
const [search, sort] = ["q", "sort"].map((name) => slot(VIEWS.overview, name));
const painter = new Painter(show);
const store = new Store(() => painter.soon());
const ask = {
  rows: (comparison, listing) => store.fetchRows(comparison, listing),
  drafts: (comparison, id) => store.fetchDrafts(comparison, id),
  file: (comparison) => store.fetchFile(comparison),
  again: () => painter.now(),
};
const scrolled = new Map(); // where a person was on each part of the page
let route = parse(location.hash);
let overview = href({}); // as it was last looked at: the way back leads there
let connected = false;
let lostSince = null; // by the service's clock
let announced = "";

follow("v1/events", {
  event: (name, text) => store.take(name, text),
  live() {
    connected = true;
    lostSince = null;
    store.load(route);
    painter.soon();
  },
  lost() {
    lostSince = serviceNow();
    store.live = false;
    painter.soon();
  },
  again: () => get("v1/me").catch(() => {}), // a stream does not say that it was refused; this does
});

// -- where the page is --------------------------------------------------------------------------------------

addEventListener("hashchange", () => {
  const before = route;
  scrolled.set(href(before), scrollY);
  if (!before.name) overview = href(before);
  route = parse(location.hash);
  fillTools();
  if (route.name !== before.name) emptyForm();
  store.open(route);
  painter.now();
  if (route.name !== before.name || route.id !== before.id) arrive();
});

/** A person has come to another part: there the heading is read, and the place is the one that was left. */
function arrive() {
  scrollTo(0, scrolled.get(href(route)) ?? 0);
  VIEWS[view()].querySelector("h1")?.focus({ preventScroll: true });
}

function view() {
  if (route.id) return "divergence";
  return route.name ? "comparison" : "overview";
}

// -- what it shows ------------------------------------------------------------------------------------------

function show() {
  const context = { route, now: serviceNow(), lostSince, ask, service: store.service };
  const comparison = route.name ? store.comparisons.get(route.name) : null;
  const known = Boolean(comparison?.known);
  showConnection(context.now);
  showTrail($("trail"), route, store.report(route), overview);
  Object.entries(VIEWS).forEach(([name, root]) => {
    root.hidden = name !== view() || (name === "comparison" && !known);
  });
  $("unknown").hidden = !(view() === "comparison" && !known && store.asked);
  setText(slot($("unknown"), "unknown"), route.name ?? "");
  document.body.classList.toggle("not-live", Boolean(lostSince) || Boolean(comparison?.gate?.stale));
  if (view() === "overview")
    showOverview(VIEWS.overview, store.known, { ...context, many: store.many, known: store.asked || connected });
  if (view() === "comparison" && known) showComparison(VIEWS.comparison, comparison, context);
  if (view() === "divergence") showDivergence(VIEWS.divergence, { ...context, ...store.found(route), comparison });
  showTimes(VIEWS[view()], context.now);
  showTitle(known ? comparison : null, store.report(route));
  if (known) announce(comparison);
}

function showConnection(now) {
  const state = lostSince ? "lost" : connected ? "connected" : "connecting";
  setAttribute($("connection"), "data-state", state);
  setText(slot($("connection"), "text"), state === "lost" ? "connection lost" : state);
  $("banner").hidden = !lostSince;
  if (!lostSince) return;
  const lost = `Connection lost at ${clock(lostSince, now)}. Showing old data; reconnecting.`;
  setText($("banner"), connected ? lost : NO_EVENTS);
}

function showTitle(comparison, report) {
  const title = tabTitle(route, { comparison, report, known: store.known, lostSince });
  if (document.title !== title) document.title = title;
}

/** A new verdict is said aloud. */
function announce(comparison) {
  const { word } = standing(comparison, lostSince);
  const told = `${comparison.name}: ${word}.`;
  if (announced !== told) setText($("announce"), `${told} ${comparison.status.reason}`);
  announced = told;
}

// -- what a person does -------------------------------------------------------------------------------------

/** A link to a part of the document, which the address has no room for: it says where the page is. */
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("content").focus();
});

/** The place where a button stands is known to the document; what it asks for, to the store. */
for (const name of ["settled", "open"]) {
  const root = $("divergences");
  slot(root, `${name}-newer`).addEventListener("click", () => store.again(route, name));
  slot(root, `${name}-older`).addEventListener("click", () => store.more(route, name));
}

chooseTimes($("found"));

slot($("divergences"), "form").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = href({ ...route, filters: asked(event.target, route.filters) });
  event.target.reset();
});

/** What was written for one comparison is not meant for the next. */
function emptyForm() {
  const form = slot($("divergences"), "form");
  form.reset();
  form.closest("details").open = false;
}

/** What is looked for among all comparisons; a letter, or another order, is no step back. */
function choose(changes) {
  history.replaceState(null, "", href({ filters: changed(route.filters, changes) }));
  route = parse(location.hash);
  painter.now();
}

function fillTools() {
  search.value = route.filters.q ?? "";
  sort.value = route.filters.sort ?? "";
}

sort.append(...orders.map(([value, text]) => el("option", { value }, text)));
sort.addEventListener("change", () => choose({ sort: sort.value }));
search.addEventListener("input", () => choose({ q: search.value }));
fillTools();

listen($("keys"));
offerTimes($("times"), () => painter.now());
showSession($("session")).then((me) => {
  const current = () => store.comparisons.get(route.name);
  if (me) offerReset($("operate"), me, current, () => painter.now());
});
store.open(route);
setInterval(() => painter.soon(), 1000); // ages grow by themselves
setInterval(() => store.look(), LOOK_MILLISECONDS);
