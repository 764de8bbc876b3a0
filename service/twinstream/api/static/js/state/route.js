// Where the page is: the view and its filters. All of it stands in the fragment of the address, so that a reload
// and a link that is passed on show the same, while no server's log ever sees the values that somebody filters by.
//
//   #/                                    all comparisons            ?verdict=DIVERGED&q=ads&sort=lag
//   #/ads-views                           one comparison             ?kind=missing&scope=ad_id%3D17&late=false
//   #/ads-views/5f0c2e1a9b7d4433          one divergence, with the filters of the list it was found in
//
// A view has its own filters; those of another are dropped.

const MANY = ["scope", "field"]; // may stand there more than once
const OF_COMPARISONS = ["q", "verdict", "sort"];
const OF_DIVERGENCES = [...MANY, "kind", "from", "to", "explained", "late", "tainted"];

/** The route that a fragment names: `{ name, id, filters }`, both null in the overview. */
export function parse(fragment) {
  const text = fragment.replace(/^#/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const [name = null, id = null] = path.split("/").filter(Boolean).map(decoded);
  const params = new URLSearchParams(at < 0 ? "" : text.slice(at + 1));
  return { name, id, filters: filtersOf(params, name ? OF_DIVERGENCES : OF_COMPARISONS) };
}

/** The fragment of a route. */
export function href({ name = null, id = null, filters = {} }) {
  const path = [name, id].filter(Boolean).map(encodeURIComponent).join("/");
  const query = asQuery(filters);
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Filters as a query, for the fragment and for the API alike. */
export const asQuery = (filters) => new URLSearchParams(pairs(filters)).toString();

/** The filters with some of them changed; null and "" take one away. */
export function changed(filters, changes) {
  const kept = Object.entries({ ...filters, ...changes }).filter(
    ([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length),
  );
  return Object.fromEntries(kept);
}

/** The filters with one more value of a kind that may be there several times. */
export const added = (filters, name, value) =>
  changed(filters, { [name]: [...new Set([...(filters[name] ?? []), value])] });

/** The filters without one value. */
export function without(filters, name, value) {
  const left = MANY.includes(name) ? filters[name].filter((one) => one !== value) : null;
  return changed(filters, { [name]: left });
}

/** Each filter with its value, those that are there several times one by one. */
export const pairs = (filters) =>
  Object.entries(filters).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one) => [name, one]) : [[name, value]],
  );

function filtersOf(params, names) {
  const given = names.map((name) => [name, params.getAll(name).filter(Boolean)]).filter(([, values]) => values.length);
  return Object.fromEntries(given.map(([name, values]) => [name, MANY.includes(name) ? values : values[0]]));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not a link of this page: shown as unknown
  }
}
