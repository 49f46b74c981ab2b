import type { Family, Labels, Metric } from './metric.ts';

/** One series per set of label values, made when it is first needed. */
class Series<L extends string, V> {
  readonly #names: readonly L[];
  readonly #make: () => V;
  readonly #byKey = new Map<string, { readonly labels: Labels<L>; readonly value: V }>();

  constructor(metric: Metric<L>, make: () => V) {
    this.#names = Object.keys(metric.labels) as L[];
    this.#make = make;
  }

  of(labels: Labels<L>): V {
    const key = this.#names.map((name) => labels[name]).join('\0');
    let found = this.#byKey.get(key);
    if (!found) {
      found = { labels, value: this.#make() };
      this.#byKey.set(key, found);
    }
    return found.value;
  }

  all() {
    return [...this.#byKey.values()];
  }
}

/** Counts events as they happen. Costs an addition; it becomes text only at a scrape. */
export class Counter<L extends string = never> {
  readonly #metric: Metric<L>;
  readonly #series: Series<L, { count: number }>;

  /** @param known label values that exist from the beginning, at zero, so that a missing event is visible */
  constructor(metric: Metric<L>, known: readonly Labels<L>[] = []) {
    this.#metric = metric;
    this.#series = new Series(metric, () => ({ count: 0 }));
    for (const labels of known) this.#series.of(labels);
  }

  add(labels: Labels<L>, amount = 1): void {
    this.#series.of(labels).count += amount;
  }

  family(): Family {
    const samples = this.#series.all().map(({ labels, value }) => ({ labels, value: value.count }));
    return { metric: this.#metric, samples };
  }
}

interface Distribution {
  /** How many fell into each bucket, the one of everything else last. */
  readonly counts: number[];
  sum: number;
}

/** Sorts durations (seconds) or sizes (bytes) into the buckets of its metric. */
export class Histogram<L extends string = never> {
  readonly #metric: Metric<L>;
  readonly #series: Series<L, Distribution>;

  constructor(metric: Metric<L>, known: readonly Labels<L>[] = []) {
    this.#metric = metric;
    this.#series = new Series(metric, () => ({ counts: Array(metric.buckets.length + 1).fill(0), sum: 0 }));
    for (const labels of known) this.#series.of(labels);
  }

  /** Not a number, or below zero, is not counted: it comes from a clock that was set back. */
  observe(labels: Labels<L>, value: number): void {
    if (!(value >= 0)) return;
    const { buckets } = this.#metric;
    const distribution = this.#series.of(labels);
    const found = buckets.findIndex((bound) => value <= bound);
    const at = found === -1 ? buckets.length : found;
    distribution.counts[at] = (distribution.counts[at] ?? 0) + 1;
    distribution.sum += value;
  }

  family(): Family {
    const samples = this.#series.all().map(({ labels, value: { counts, sum } }) => {
      let count = 0;
      const upTo = counts.map((inBucket) => {
        count += inBucket;
        return count;
      });
      return { labels, value: { buckets: upTo.slice(0, -1), sum, count } };
    });
    return { metric: this.#metric, samples };
  }
}
