// Keys: a letter moves to a row, leads up, or to another part; `?` lists them. They know the document alone: links do
// what a click on them does. No key is taken from who types, or has switched them off.

import { el } from "../base/dom.js";
import { choose, chosen } from "../base/preferences.js";

const FIRST = "g"; // begins a key of two letters
const PATIENCE_MILLISECONDS = 1500; // for the second letter
const ROWS = ".comparison, .group, .row";
const PARTS = [
  ["g", "groups", "Groups"],
  ["d", "divergences", "Divergences"],
  ["f", "found", "Divergences over time"],
  ["c", "coverage", "Coverage"],
  ["r", "rate", "Charts"],
  ["t", "timeline", "Verdict, gate and health"],
  ["w", "waiting", "Longest unmatched"],
];
const KEYS = [
  ["j", "Next row; in a divergence, the older one", () => step(1)],
  ["k", "Previous row; in a divergence, the newer one", () => step(-1)],
  ["Enter", "Open the row; in the search, go to the first row", null],
  ["u", "Up: to the list, to all comparisons", () => click("#trail li:nth-last-child(2) a")],
  ["/", "Search; in a comparison, filter", search],
  ["g o", "All comparisons", () => click("#trail li:not(:last-child):first-child a")],
  ...PARTS.map(([key, id, text]) => [`g ${key}`, text, () => goTo(id)]),
  ["?", "This list", showKeys],
];
const acts = new Map(KEYS.map(([key, , act]) => [key, act]));
const dialog = makeDialog();
let first = { key: null, at: 0 };

/** Listen to keys; `button` shows the list of them, too. */
export function listen(button) {
  button.addEventListener("click", showKeys);
  addEventListener("keydown", take);
}

function take(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input[type=search]") && event.key === "Enter") return step(1);
  if (event.target.matches("input, textarea, select, [contenteditable]") || chosen("keys", ["on", "off"]) === "off") return;
  const act = acts.get(pressed(event));
  if (!act) return;
  event.preventDefault();
  act();
}

/** The key, together with the one before it where that was the first of two. */
function pressed({ key, timeStamp }) {
  const both = first.key && timeStamp - first.at < PATIENCE_MILLISECONDS ? `${first.key} ${key}` : key;
  first = both === FIRST ? { key, at: timeStamp } : { key: null, at: 0 };
  return both;
}

// -- what the keys do ---------------------------------------------------------------------------------------

const view = () => document.querySelector("main > :not([hidden])");
const click = (selector) => document.querySelector(selector)?.click();

/** The next row that is seen, from the one with the focus on. */
function step(by) {
  if (view().id === "divergence") return click(`#divergence a[rel=${by > 0 ? "next" : "prev"}]`);
  const rows = [...view().querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const at = rows.findLastIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  next?.querySelector("a")?.focus();
}

function search() {
  const filter = view().querySelector("details.more");
  if (filter) filter.open = true;
  const field = (filter ?? view()).querySelector("input");
  field?.focus();
  field?.select();
}

/** A part of the comparison that is shown, unfolded. */
function goTo(id) {
  const part = document.getElementById(id);
  if (!view().contains(part)) return;
  for (let fold = part; fold; fold = fold.parentElement.closest("details")) if (fold.matches("details")) fold.open = true;
  part.querySelector(":scope > details")?.setAttribute("open", "");
  if (!part.checkVisibility()) return;
  part.tabIndex = -1;
  part.scrollIntoView();
  part.focus({ preventScroll: true });
}

// -- the list of them ---------------------------------------------------------------------------------------

function showKeys() {
  document.body.append(dialog);
  dialog.showModal();
}

function makeDialog() {
  const on = el("input", { type: "checkbox", checked: chosen("keys", ["on", "off"]) === "on" });
  on.addEventListener("change", () => choose("keys", on.checked ? "on" : "off"));
  return el(
    "dialog",
    { "aria-labelledby": "keys-title" },
    el("h2", { id: "keys-title" }, "Keyboard shortcuts"),
    el("dl", { class: "keys" }, ...KEYS.map(([key, text]) => el("div", {}, el("dt", {}, ...caps(key)), el("dd", {}, text)))),
    el("p", {}, el("label", {}, on, " Use these shortcuts")),
    el("form", { method: "dialog" }, el("button", {}, "Close")),
  );
}

function caps(key) {
  return key.split(" ").map((one) => el("kbd", {}, one));
}
