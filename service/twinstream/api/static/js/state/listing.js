// A list of divergences as the page holds it: the newest that are asked for, and what has come since. Nothing here
// touches the document.
//
// It stays calm under a flood: once a page is full, what is new is only counted, until somebody asks for it. So
// nothing moves away from under a pointer.

import { wanted } from "./filters.js";

export const PAGE_SIZE = 20;
const FIRST_SHOWN = 5; // until somebody asks for more

export class Listing {
  /** `provisional`: only those that may still change (true), only the others (false), or both (null). */
  constructor(filters, { provisional = null, size = PAGE_SIZE } = {}) {
    this.filters = filters;
    this.provisional = provisional;
    this.size = size;
    this.shown = Math.min(FIRST_SHOWN, size);
    this.reports = new Map();
    this.newer = new Set(); // what came when the page was full
    this.older = false; // whether the service has more than is shown
    this.loaded = false;
    this.problem = ""; // why the service refuses to tell it
    this.meanwhile = null; // what comes while the list is fetched, which may not have it
    this.questions = 0;
  }

  /** Whether the service has been asked for it. */
  get asked() {
    return this.questions > 0;
  }

  /** The part of it that is shown. */
  get visible() {
    return this.items.slice(0, this.shown);
  }

  /** Whether there is more than is shown. */
  get hasMore() {
    return this.older || this.reports.size > this.shown;
  }

  /** Show more of it. Whether the service has to be asked for that. */
  showMore(most) {
    const known = this.shown < this.size;
    if (!known) this.size = Math.min(most, this.size + PAGE_SIZE);
    this.shown = this.size;
    return !known;
  }

  /** The list, newest first. */
  get items() {
    return [...this.reports.values()];
  }

  /**
   * The list as `ask()` tells it, and each change since it was asked. Where it is asked again before an answer
   * came, only the last answer counts: an earlier one would take away what came between. A question that would be
   * refused again, such as a filter of no meaning, leaves the list empty with the problem.
   */
  async fetch(ask) {
    const question = ++this.questions;
    this.meanwhile = [];
    try {
      const page = await ask();
      if (question === this.questions) this.fill(page);
    } catch (error) {
      if (!error.lasts) throw error;
      if (question === this.questions) this.fill({ items: [], next: null }, error.message);
    } finally {
      if (question === this.questions) this.catchUp();
    }
  }

  fill({ items, next }, problem = "") {
    this.reports = new Map(items.map((report) => [report.id, report]));
    this.newer.clear();
    this.older = next !== null;
    this.loaded = true;
    this.problem = problem;
  }

  catchUp() {
    const missed = this.meanwhile;
    this.meanwhile = null;
    missed.forEach((change) => change());
  }

  /** A divergence is new, or more is known of it. */
  take(report) {
    this.meanwhile?.push(() => this.take(report));
    if (!wanted(report, this.filters, this.provisional)) return this.drop(report.id);
    if (this.reports.has(report.id)) this.reports.set(report.id, report);
    else if (this.reports.size < this.size) this.reports = new Map([[report.id, report], ...this.reports]);
    else if (report.first_seen < this.items.at(-1).first_seen) this.older = true;
    else this.newer.add(report.id);
  }

  /** A provisional divergence no longer stands. */
  withdraw(id) {
    this.meanwhile?.push(() => this.withdraw(id));
    this.drop(id);
  }

  drop(id) {
    this.reports.delete(id);
    this.newer.delete(id);
  }

  /** The divergences before and after one of them, each undefined where there is none. */
  around(id) {
    const keys = [...this.reports.keys()];
    const at = keys.indexOf(id);
    return at < 0 ? {} : { before: keys[at - 1], after: keys[at + 1] };
  }
}
