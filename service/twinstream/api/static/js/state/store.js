// All that the page knows, and where it has it from: the stream tells what changes; what was before is fetched,
// and only of what is shown. Nothing here touches the document.

import { comparisonPath, get, parseExactly } from "../base/api.js";
import { Comparison } from "./model.js";
import { asQuery } from "./route.js";

const LOAD_AGAIN_MILLISECONDS = 3000;
const FEW = 12; // comparisons: of more, the overview shows no single divergence
const MOST = 500; // divergences of a list: as many as one answer has

export class Store {
  /** `changed()` is called whenever there is something new to show. */
  constructor(changed) {
    this.changed = changed;
    this.comparisons = new Map();
    this.asked = false; // whether the service has said which comparisons there are
    this.live = false;
    this.single = null; // the divergence that is shown: { name, id, report, gone }
    this.service = null; // its version, and where Kafka is
    this.route = null;
  }

  /** The comparisons of which there is enough to show. */
  get known() {
    return [...this.comparisons.values()].filter((comparison) => comparison.known);
  }

  get many() {
    return this.comparisons.size > FEW;
  }

  comparison(name) {
    if (!this.comparisons.has(name)) this.comparisons.set(name, new Comparison(name));
    return this.comparisons.get(name);
  }

  // -- what the stream tells ----------------------------------------------------------------------------------

  take(name, text) {
    TAKE[name]?.(this, name === "divergence" ? parseExactly(text) : JSON.parse(text));
    const shown = this.comparisons.get(this.route?.name);
    if (this.asked && shown?.known && !shown.detailed) this.fetch(this.route).catch(() => this.later());
    this.changed();
  }

  takeStatus(status) {
    const comparison = this.comparison(status.name);
    if (!comparison.takeStatus(status)) return;
    comparison.detailed = false; // if it is shown, it is fetched next
    if (comparison.newest.asked) this.fetchNewest(comparison).catch(() => this.later());
  }

  takeDivergence(report) {
    this.comparison(report.comparison).takeDivergence(report);
    this.tellSingle(report.id, { report, gone: null });
  }

  withdraw({ comparison, id }) {
    this.comparison(comparison).withdraw(id);
    this.tellSingle(id, { gone: WITHDRAWN });
  }

  tellSingle(id, told) {
    if (this.single?.id === id) Object.assign(this.single, told, { asked: null });
  }

  // -- what is fetched ----------------------------------------------------------------------------------------

  /** After each beginning of the stream: what it does not repeat. */
  async load(route) {
    this.live = true;
    this.route = route;
    const before = [...this.comparisons.keys()];
    try {
      const [{ items }, service] = await Promise.all([get("v1/comparisons"), get("v1/service")]);
      this.service = service;
      this.asked = true;
      const there = new Set(items.map(({ name }) => name));
      before.filter((name) => !there.has(name)).forEach((name) => this.comparisons.delete(name));
      there.forEach((name) => this.comparison(name));
      this.comparisons.forEach((comparison) => (comparison.detailed = false));
      await this.fetch(this.route); // where a person has gone meanwhile
    } catch {
      this.later();
    }
    this.changed();
  }

  /** A person goes to another part of the page. */
  open(route) {
    this.route = route;
    const { name, id } = route;
    this.single = id && { name, id, report: this.listed(name, id), gone: null };
    this.fetch(route).catch(() => this.later());
  }

  /** After a failure; while the connection is lost it is the stream that loads when it is back. */
  later() {
    setTimeout(() => this.live && this.load(this.route), LOAD_AGAIN_MILLISECONDS);
  }

  async fetch({ name, id, filters }) {
    if (!name) return this.many ? undefined : Promise.all([...this.comparisons.values()].filter(differs).map((one) => this.fetchNewest(one)));
    const comparison = this.comparisons.get(name);
    if (!comparison && this.asked && this.single) this.single.gone = `There is no comparison ${name}.`;
    if (!comparison) return undefined;
    const same = asQuery(comparison.filters) === asQuery(filters);
    if (!same) comparison.list(filters);
    if (same && comparison.detailed) return id && this.fetchSingle();
    const jobs = [this.fetchListing(comparison, comparison.settled), this.fetchListing(comparison, comparison.open)];
    if (!comparison.detailed) jobs.push(this.fetchPast(comparison));
    if (!comparison.detailed) comparison.ofGroups.clear(); // they are asked for again as they are shown
    comparison.detailed = true;
    jobs.push(id ? this.fetchSingle() : this.look());
    return Promise.all(jobs);
  }

  async fetchPast(comparison) {
    const [history, timeline] = await Promise.all(
      ["/history", "/timeline"].map((rest) => get(comparisonPath(comparison.name, rest))),
    );
    comparison.takeHistory(history.items);
    comparison.takeTimeline(timeline.items);
    this.changed();
  }

  /** Of a group that somebody opens. */
  fetchRows(comparison, listing) {
    this.fetchListing(comparison, listing).catch(() => this.later());
  }

  /** The drafts of a group that somebody opens. */
  async fetchDrafts(comparison, id) {
    const path = comparisonPath(comparison.name, `/groups/${encodeURIComponent(id)}/drafts`);
    comparison.drafts.set(id, await told(() => get(path)));
    this.changed();
  }

  /** The comparison file, for somebody who opens it. */
  async fetchFile(comparison) {
    const digest = comparison.status.spec_digest;
    comparison.file = { digest };
    const text = await told(() => get(comparisonPath(comparison.name, "/file"), String));
    if (comparison.file.digest === digest) comparison.file = { digest, ...text };
    this.changed();
  }

  fetchNewest(comparison) {
    return this.fetchListing(comparison, comparison.newest);
  }

  async fetchListing(comparison, listing) {
    const { filters, provisional, size } = listing;
    const more = { limit: size, ...(provisional !== null && { provisional }) };
    const query = asQuery({ ...filters, ...more });
    await listing.fetch(() => get(comparisonPath(comparison.name, `/divergences?${query}`), parseExactly));
    this.changed();
  }

  async fetchSingle() {
    const single = this.single;
    if (!single) return;
    const question = (single.asked = {}); // what the stream tells meanwhile is newer than the answer
    try {
      const report = await get(comparisonPath(single.name, `/divergences/${encodeURIComponent(single.id)}`), parseExactly);
      if (single.asked === question) Object.assign(single, { report, gone: null });
    } catch (error) {
      if (error.status !== 404) throw error;
      if (single.asked === question) single.gone = single.report ? WITHDRAWN : UNKNOWN;
    }
    this.changed();
  }

  /** What no stream tells of the comparison that is shown: which events wait, and what its trial would change. */
  async look() {
    const comparison = this.comparisons.get(this.route?.name);
    if (!this.live || !comparison?.known || this.route.id) return;
    try {
      comparison.waiting = (await get(comparisonPath(comparison.name, "/unmatched?limit=50"), parseExactly)).items;
      const tried = this.known.some(({ status }) => status.trial_of === comparison.name);
      comparison.trial = tried ? await get(comparisonPath(comparison.name, "/trial")) : null;
    } catch {
      return; // the next look is soon
    }
    this.changed();
  }

  // -- what a person asks for ---------------------------------------------------------------------------------

  /** The list from its newest on. */
  again({ name }, which) {
    const comparison = this.comparisons.get(name);
    this.fetchListing(comparison, comparison[which]).catch(() => this.later());
  }

  /** More of the list. */
  more({ name }, which) {
    const comparison = this.comparisons.get(name);
    const listing = comparison[which];
    if (listing.showMore(MOST)) this.fetchListing(comparison, listing).catch(() => this.later());
    this.changed();
  }

  /** A divergence that is in some list. */
  listed(name, id) {
    const listings = this.comparisons.get(name)?.listings ?? [];
    return listings.map(({ reports }) => reports.get(id)).find(Boolean) ?? null;
  }

  /** The divergence that a route names, if it is known. */
  report({ id }) {
    return this.single && this.single.id === id ? this.single.report : null;
  }

  /** The same with what became of it. */
  found({ id }) {
    return this.single?.id === id ? this.single : { report: null, gone: null };
  }
}

/** The answer of the service as `{ found }`, or why there is none as `{ problem }`. */
async function told(ask) {
  try {
    return { found: await ask() };
  } catch (error) {
    return { problem: error.message };
  }
}

/** Whether there may be divergences of a comparison to fetch: of hundreds most have none. */
const differs = ({ status }) => status?.divergences.total !== 0;

const TAKE = {
  status: (store, data) => store.takeStatus(data),
  gate: (store, data) => (store.comparison(data.comparison).gate = data),
  sample: (store, data) => store.comparison(data.comparison).takeSample(data),
  phase: (store, data) => store.comparison(data.comparison).takePhase(data),
  divergence: (store, data) => store.takeDivergence(data),
  withdrawn: (store, data) => store.withdraw(data),
};

const WITHDRAWN =
  "This divergence no longer stands: it was provisional and is explained otherwise now, or the comparison was reset.";
const UNKNOWN =
  "There is no such divergence any more: it was provisional and has been replaced, the comparison was reset, or it is " +
  "older than the newest 1,000, which are kept.";
