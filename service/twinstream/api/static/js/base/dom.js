// The little of a framework that the page needs. Data only ever become text nodes, never markup.

/** A new element: `el("p", { class: "quiet" }, "text", child)`. Children null and false are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** The place named `name` inside `root`. */
export const slot = (root, name) => root.querySelector(`[data-slot="${name}"]`);

/** Set a text only when it changed, so that a selection and a screen reader are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Fill the slots of `root` with texts: `fill(root, { name: "ads" })`. */
export function fill(root, texts) {
  for (const [name, text] of Object.entries(texts)) setText(slot(root, name), text);
}

/** Set an attribute only when it changed. */
export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

const shown = new WeakMap();
let edition = 0;

/** Let everything be rebuilt at the next `render`: what is not data has changed, as the zone of times. */
export function renew() {
  edition += 1;
}

/**
 * Rebuild the children of `node` by `make` only when `data` is not what it shows already. The focus stays at its place
 * among all that can have it.
 */
export function render(node, data, make) {
  const key = `${edition} ${JSON.stringify(data)}`;
  if (shown.get(node) === key) return;
  shown.set(node, key);
  const at = node.contains(document.activeElement) ? focusable(node).indexOf(document.activeElement) : -1;
  node.replaceChildren(...make(data).filter((child) => child));
  if (at >= 0) focusable(node)[at]?.focus({ preventScroll: true });
}

const focusable = (node) => [...node.querySelectorAll("a, button, input, select, summary, textarea, [tabindex]")];

/**
 * Make the children of `list` those of `items`, in their order. `make(item)` makes a child once for each `key(item)`;
 * `show(child, item)` brings it up to date. So what is open, selected or focused in a child stays while it is there.
 */
export function keyed(list, items, key, make, show) {
  const known = new Map([...list.children].map((child) => [child.dataset.id, child]));
  const children = items.map((item) => {
    const child = known.get(key(item)) ?? make(item);
    child.dataset.id = key(item);
    show(child, item);
    return child;
  });
  setChildren(list, children);
}

/** Make `children` those of `list`; only what is out of its place is moved, and what has the focus keeps it. */
export function setChildren(list, children) {
  const kept = new Set(children);
  const focused = document.activeElement;
  for (const child of [...list.children]) if (!kept.has(child)) child.remove();
  children.forEach((child, index) => {
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
  if (list.contains(focused)) focused.focus({ preventScroll: true });
}
