// To reset a comparison: a button and a form, which are made only for those who may. Who may not has neither.

import { comparisonPath, post } from "../base/api.js";
import { el, setText, slot } from "../base/dom.js";
import { count, counted } from "../base/format.js";

/** Offer it in `place`; `current()` is the comparison that is shown, `me` who is signed in. */
export function offerReset(place, me, current, done) {
  if (me.role !== "operate") return;
  const dialog = dialogFor(me);
  const button = el("button", { type: "button", class: "danger" }, "Reset …");
  button.addEventListener("click", () => ask(dialog, current()));
  slot(dialog, "cancel").addEventListener("click", () => dialog.close());
  slot(dialog, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(dialog, me, done);
  });
  place.append(button);
  document.body.append(dialog);
}

function ask(dialog, comparison) {
  const { divergences, matched, verdict } = comparison.status;
  dialog.comparison = comparison;
  slot(dialog, "form").reset();
  setText(slot(dialog, "title"), `Reset ${comparison.name}?`);
  setText(
    slot(dialog, "what"),
    `It is ${verdict}: ${count(matched)} pairs matched, ${counted(divergences.total, "divergence")}. A reset forgets ` +
      "all of it, for everybody. It records who did it, when and why. It does not touch the topics.",
  );
  setText(slot(dialog, "name"), comparison.name);
  tell(dialog, "");
  dialog.showModal();
}

async function begin(dialog, me, done) {
  const given = new FormData(slot(dialog, "form"));
  const { name } = dialog.comparison;
  if (given.get("confirmation").trim() !== name) {
    tell(dialog, `Nothing has changed. Type ${name} to confirm.`);
    return slot(dialog, "form").elements.confirmation.focus();
  }
  const start = given.get("start");
  const body = {
    reason: given.get("reason"),
    ...(start && { start }),
    ...(!me.tokens && { by: given.get("by") }),
  };
  slot(dialog, "submit").disabled = true;
  tell(dialog, "Waiting for the matcher …");
  try {
    await post(comparisonPath(name, "/reset"), body);
    dialog.close();
    done(name);
  } catch (error) {
    tell(dialog, error.message);
  } finally {
    slot(dialog, "submit").disabled = false;
  }
}

const tell = (dialog, text) => setText(slot(dialog, "problem"), text);

/** A labelled input; the hint is read after it. */
function field(title, input, hint) {
  const id = `reset-${input.name}`;
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, title),
    input,
    hint && el("small", { id: `${id}-hint` }, hint),
  );
}

const input = (name, more = {}) => el("input", { name, required: true, autocomplete: "off", ...more });

const STARTS = [
  ["", "as in the file"],
  ["now", "now: where both sides have been read to"],
  ["earliest", "the beginning of both topics"],
];

function dialogFor(me) {
  const starts = STARTS.map(([value, text]) => el("option", { value }, text));
  const name = el("code", { "data-slot": "name" });
  return el(
    "dialog",
    { "aria-labelledby": "reset-title" },
    el(
      "form",
      { "data-slot": "form" },
      el("h2", { id: "reset-title", "data-slot": "title" }),
      el("p", { "data-slot": "what" }),
      field("Why", input("reason", { maxlength: 1000 }), "Recorded and shown."),
      !me.tokens && field("Who you are", input("by", { maxlength: 200 })),
      field("Start", el("select", { name: "start" }, ...starts)),
      field(el("span", {}, "Type ", name, " to confirm"), input("confirmation", { spellcheck: "false" })),
      el("p", { "data-slot": "problem", role: "alert" }),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", "data-slot": "cancel" }, "Cancel"),
        el("button", { type: "submit", class: "danger", "data-slot": "submit" }, "Reset"),
      ),
    ),
  );
}
