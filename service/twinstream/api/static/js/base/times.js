// Times as a person reads them: at what time or how long ago, in UTC or by the clock of this machine. A time that stands
// by itself is a `<time>`, whose text is set here and nowhere else; its title has the other form. In a sentence stands
// the time of day.

import { el, renew, setAttribute, setText, slot } from "./dom.js";
import { FORMS, ZONES, ago, clock } from "./format.js";
import { choose, chosen } from "./preferences.js";

const CHOICES = { form: FORMS, zone: ZONES };

/** A time, of which the text comes with `showTimes`; a dash where there is none. */
export const when = (text) => (text ? el("time", { datetime: text }) : "–");

/** The text of each time in `root`. */
export function showTimes(root, now) {
  const relative = chosen("form", FORMS) === "relative";
  for (const node of root.querySelectorAll("time[datetime]")) {
    const both = [clock(node.dateTime, now), ago(node.dateTime, now)];
    const [text, title] = relative ? both.reverse() : both;
    setText(node, text);
    setAttribute(node, "title", title);
  }
}

/** The choice of both in `root`; `changed()` draws the page again. */
export function offerTimes(root, changed) {
  for (const [name, values] of Object.entries(CHOICES)) {
    const select = slot(root, name);
    select.value = chosen(name, values);
    select.addEventListener("change", () => {
      choose(name, select.value);
      renew();
      changed();
    });
  }
}
