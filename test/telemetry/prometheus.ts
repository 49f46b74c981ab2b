/** Parses the exposition format 0.0.4 of Prometheus. Reports the problems that `promtool check metrics` reports. No product code. */

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly series: Series[];
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/** @throws Error with the line that breaks the format */
export function parse(text: string): Map<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line must end with a line feed');
  const families = new Map<string, ParsedFamily>();
  let help: { name: string; text: string } | undefined;
  let current: ParsedFamily | undefined;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') help = { name, text: rest };
    else if (keyword === 'TYPE') {
      if (families.has(name)) throw new Error(`second TYPE: ${line}`);
      if (help?.name !== name) throw new Error(`TYPE without HELP: ${line}`);
      current = { name, help: help.text, type: rest, series: [] };
      families.set(name, current);
    } else if (!line.startsWith('#')) {
      const series = seriesOf(line);
      if (!current || !belongs(series.name, current)) throw new Error(`sample outside of its family: ${line}`);
      current.series.push(series);
    }
  }
  return families;
}

function seriesOf(line: string): Series {
  const [, name = '', pairs = '', value = ''] = sampleLine.exec(line) ?? [];
  if (name === '') throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  labelPair.lastIndex = 0;
  while (labelPair.lastIndex < pairs.length) {
    const found = labelPair.exec(pairs);
    if (!found) throw new Error(`not labels: ${line}`);
    const [, label = '', text = ''] = found;
    if (label in labels) throw new Error(`label twice: ${line}`);
    labels[label] = text.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  const number = value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value);
  if (Number.isNaN(number) && value !== 'NaN') throw new Error(`not a number: ${line}`);
  return { name, labels, value: number };
}

function belongs(name: string, { name: family, type }: ParsedFamily): boolean {
  if (type !== 'histogram') return name === family;
  return ['bucket', 'sum', 'count'].some((suffix) => name === `${family}_${suffix}`);
}

/** Violations of the conventions, one sentence each. */
export function lint(families: ReadonlyMap<string, ParsedFamily>): string[] {
  return [...families.values()].flatMap((family) => [
    ...namesOf(family),
    ...duplicatesOf(family),
    ...bucketsOf(family),
  ]);
}

function* namesOf({ name, help, type }: ParsedFamily): Generator<string> {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) yield `${name} is not snake case`;
  if (help.trim() === '') yield `${name} has no help`;
  if (!['counter', 'gauge', 'histogram'].includes(type)) yield `${name} has the type ${type}`;
  if ((type === 'counter') !== name.endsWith('_total')) yield `${name}: counters, and only they, end with _total`;
  if (/_(count|sum|bucket)$/.test(name)) yield `${name} ends like a part of a histogram`;
  if (/(milliseconds|_ms|minutes|hours|kilobytes|megabytes|_kb|_mb|percent)(_|$)/.test(name))
    yield `${name} has no base unit`;
  if (name.includes(type)) yield `${name} has its type in its name`;
}

function* duplicatesOf({ name, series }: ParsedFamily): Generator<string> {
  const seen = new Set<string>();
  for (const { name: sample, labels } of series) {
    const key = JSON.stringify([sample, Object.entries(labels).sort()]);
    if (seen.has(key)) yield `${name} has a series twice: ${key}`;
    seen.add(key);
  }
}

function* bucketsOf({ name, type, series }: ParsedFamily): Generator<string> {
  if (type !== 'histogram') return;
  for (const group of histograms(series)) {
    const values = group.buckets.map(({ value }) => value);
    const bounds = group.buckets.map(({ labels }) => Number(labels['le']?.replace('+Inf', 'Infinity')));
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) yield `${name} has no +Inf bucket`;
    if (bounds.some((bound, index) => index > 0 && !(bound > (bounds[index - 1] ?? 0))))
      yield `${name}: bounds do not rise`;
    if (values.some((value, index) => index > 0 && value < (values[index - 1] ?? 0))) yield `${name} is not cumulative`;
    if (values.at(-1) !== group.count) yield `${name}: the +Inf bucket is not the count`;
    if (!(group.sum >= 0)) yield `${name}: sum ${group.sum}`;
  }
}

function histograms(series: readonly Series[]) {
  const groups = new Map<string, { buckets: Series[]; sum: number; count: number }>();
  for (const each of series) {
    const { le: _, ...labels } = each.labels;
    const key = JSON.stringify(labels);
    const group = groups.get(key) ?? { buckets: [], sum: Number.NaN, count: Number.NaN };
    groups.set(key, group);
    if (each.name.endsWith('_bucket')) group.buckets.push(each);
    else if (each.name.endsWith('_sum')) group.sum = each.value;
    else group.count = each.value;
  }
  return groups.values();
}

/** The value of one series; undefined when it is not there. */
export function value(
  families: ReadonlyMap<string, ParsedFamily>,
  sample: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const all = [...families.values()].flatMap(({ series }) => series);
  const wanted = Object.entries(labels);
  return all.find(
    ({ name, labels: has }) =>
      name === sample && wanted.length === Object.keys(has).length && wanted.every(([key, text]) => has[key] === text),
  )?.value;
}
