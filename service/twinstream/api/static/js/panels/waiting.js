// The events that have waited longest for a partner: what a person looks at while nothing is decided.

import { el, render, slot } from "../base/dom.js";
import { duration } from "../base/format.js";
import { recordPlace } from "../base/kafka.js";
import { when } from "../base/times.js";
import { json } from "../differences/record.js";

const LONG_SECONDS = 10; // those of a moment ago come and go by the thousand
const SHOWN = 20;

export function showWaiting(root, { waiting }, { service }) {
  const shown = waiting.filter(({ age_seconds: age, overdue }) => overdue || age >= LONG_SECONDS).slice(0, SHOWN);
  root.hidden = !shown.length;
  render(slot(root, "table"), [shown, service], () => [
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...HEAD.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...shown.map((event) => row(event, service))),
    ),
  ]);
}

const HEAD = ["Side", "Position", "Since", "For", "Event"];

const row = ({ side, position, at, age_seconds: age, overdue, value }, service) =>
  el(
    "tr",
    {},
    el("th", { scope: "row", class: side }, side),
    el("td", { class: "position" }, recordPlace(position, service)),
    el("td", {}, when(at)),
    el("td", { class: overdue ? "late" : null }, `${duration(age ?? 0)}${overdue ? ", overdue" : ""}`),
    el("td", { class: "why" }, el("code", {}, json(value))),
  );
