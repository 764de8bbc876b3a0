// What a person has chosen for this browser. Where nothing can be kept, as in a private window, it lasts as long as the
// page.

const kept = new Map();
const NAME = "twinstream.";

/** The choice with this name; `fallback` where there is none, or one that `allowed` does not have. */
export function chosen(name, allowed, fallback = allowed[0]) {
  if (!kept.has(name)) kept.set(name, stored(name));
  const value = kept.get(name);
  return allowed.includes(value) ? value : fallback;
}

/** Keep a choice, a text. */
export function choose(name, value) {
  kept.set(name, value);
  try {
    localStorage.setItem(NAME + name, value);
  } catch {
    // No storage, or a full one: the choice is that of this page.
  }
}

function stored(name) {
  try {
    return localStorage.getItem(NAME + name);
  } catch {
    return null;
  }
}
