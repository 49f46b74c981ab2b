/** Loaded with the first scrape: a process without scrapes never pays for prom-client. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Family, Metric, Sample } from './metric.ts';

export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/** The text that Prometheus reads (exposition format 0.0.4). */
export async function expose(families: readonly Family[]): Promise<MetricsText> {
  const registry = new Registry();
  for (const family of families) register(family, registry);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

function register({ metric, samples }: Family, registry: Registry): void {
  const { name, help, type } = metric;
  const settings = { name, help, labelNames: Object.keys(metric.labels), registers: [registry] };
  switch (type) {
    case 'counter': {
      const counter = new Counter(settings);
      for (const { labels, value } of samples) counter.inc(labels, Number(value));
      return;
    }
    case 'gauge': {
      const gauge = new Gauge(settings);
      for (const { labels, value } of samples) gauge.set(labels, Number(value));
      return;
    }
    case 'histogram':
      new CountedHistogram({ ...settings, buckets: [...metric.buckets] }).take(metric, samples);
  }
}

interface Line {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** A histogram whose observations were counted elsewhere: prom-client's own can only observe. */
class CountedHistogram extends Histogram<string> {
  #metric: Metric | undefined;
  #lines: readonly Line[] = [];

  take(metric: Metric, samples: readonly Sample[]): void {
    this.#metric = metric;
    this.#lines = samples.flatMap((sample) => linesOf(metric, sample));
  }

  /** Method that the registry calls on a metric; prom-client's types omit it. */
  async getForPromString() {
    return { ...this.#metric, values: this.#lines };
  }
}

function linesOf({ name, buckets }: Metric, { labels, value }: Sample): Line[] {
  if (typeof value === 'number') throw new TypeError(`${name} is a histogram`);
  const line = (suffix: string, count: number, le?: string | number): Line => ({
    metricName: `${name}_${suffix}`,
    labels: le === undefined ? labels : { ...labels, le },
    value: count,
  });
  return [
    ...buckets.map((bound, index) => line('bucket', value.buckets[index] ?? 0, bound)),
    line('bucket', value.count, '+Inf'),
    line('sum', value.sum),
    line('count', value.count),
  ];
}
