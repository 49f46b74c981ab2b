/** A metric: declared once in `table.ts`, rendered at a scrape, listed in `docs/observability.md`. */
export interface Metric<L extends string = string> {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Label names with the values that they can have, in words. */
  readonly labels: Readonly<Record<L, string>>;
  /** Upper bounds of a histogram, ascending; the last bucket, of everything, is not among them. */
  readonly buckets: readonly number[];
}

export type Labels<L extends string = string> = Readonly<Record<L, string>>;

/** Counts of a histogram, as Prometheus defines them: `buckets[i]` counts all values up to the metric's `buckets[i]`. */
export interface Observed {
  readonly buckets: readonly number[];
  readonly sum: number;
  readonly count: number;
}

/** The value of one metric for one set of label values. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number | Observed;
}

/** A metric with all its values at one moment. */
export interface Family {
  readonly metric: Metric;
  readonly samples: readonly Sample[];
}

/** Only goes up, from the start of the process; its name ends with `_total`. */
export const counter = <L extends string = never>(
  name: string,
  help: string,
  labels = {} as Readonly<Record<L, string>>,
): Metric<L> => ({ name, type: 'counter', help, labels, buckets: [] });

/** Goes up and down. */
export const gauge = <L extends string = never>(
  name: string,
  help: string,
  labels = {} as Readonly<Record<L, string>>,
): Metric<L> => ({ name, type: 'gauge', help, labels, buckets: [] });

export const histogram = <L extends string = never>(
  name: string,
  help: string,
  buckets: readonly number[],
  labels = {} as Readonly<Record<L, string>>,
): Metric<L> => ({ name, type: 'histogram', help, labels, buckets });

/** One value of a metric without labels. */
export const plain = (metric: Metric<never>, value: number): Family => ({ metric, samples: [{ labels: {}, value }] });

/** One value for each value of the only label. */
export function byLabel<L extends string>(
  metric: Metric<L>,
  label: L,
  values: Iterable<readonly [string, number]>,
): Family {
  return { metric, samples: Array.from(values, ([name, value]) => ({ labels: { [label]: name }, value })) };
}
