// Asks the service. Knows the service's time too, since a page that says "3 s ago" by a wrong clock is worse
// than one that says nothing.

let ahead = 0;

/** Now by the clock of the service, in milliseconds. */
export const serviceNow = () => Date.now() + ahead;

/** The service answered, and did not do what was asked for. */
export class Refused extends Error {
  constructor(status, message) {
    super(message || `status ${status}`);
    this.status = status;
  }

  /** Whether the same question would be refused again. */
  get lasts() {
    return [400, 403, 422].includes(this.status);
  }
}

/** The JSON at `path`. Throws when it cannot be had; the message says what the service said. */
export async function get(path, read = JSON.parse) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  noteTime(response.headers.get("Date"));
  const text = await response.text();
  if (response.status === 401) signIn();
  if (!response.ok) throw new Refused(response.status, detail(text) ?? response.statusText);
  return read(text);
}

/** Send JSON to `path`, and hand back the JSON of the answer. Throws as `get` does. */
export async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { Accept: "application/json", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status === 401) signIn();
  if (!response.ok) throw new Refused(response.status, detail(text) ?? response.statusText);
  return JSON.parse(text);
}

/** The path of a comparison, or of something under it; relative, since a proxy may have put a prefix before. */
export const comparisonPath = (name, rest = "") => `v1/comparisons/${encodeURIComponent(name)}${rest}`;

/** A number that JavaScript would show otherwise than it was sent: kept as it was written. */
export class WrittenNumber {
  constructor(text) {
    this.text = text;
  }
  valueOf() {
    return Number(this.text);
  }
  toJSON() {
    return { number: this.text };
  }
}

/** JSON of records with numbers as written: two ids beyond 2^53 must not look equal side by side. */
export const parseExactly = (text) =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && context?.source && String(value) !== context.source
      ? new WrittenNumber(context.source)
      : value,
  );

/** The token was withdrawn: ask for another one, and come back to this place. */
const signIn = () => location.assign(`login${location.hash}`);

/** The Date header is exact to a second; a smaller difference is none, nor is one to a date that cannot be read. */
function noteTime(header) {
  const difference = header ? Date.parse(header) - Date.now() : 0;
  ahead = Math.abs(difference) >= 2000 ? difference : 0;
}

function detail(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return undefined;
  }
}
