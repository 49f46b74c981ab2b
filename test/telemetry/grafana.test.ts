import { readFileSync } from 'node:fs';
import t from 'tap';
import * as v from 'valibot';
import { metricTables } from '../../src/telemetry/index.ts';

const Target = v.object({
  datasource: v.object({ type: v.literal('prometheus'), uid: v.literal('${datasource}') }),
  expr: v.pipe(v.string(), v.nonEmpty()),
  legendFormat: v.pipe(v.string(), v.nonEmpty()),
  refId: v.pipe(v.string(), v.regex(/^[A-Z]$/)),
});
const gridPos = v.object({ h: v.number(), w: v.number(), x: v.number(), y: v.number() });
const Panel = v.variant('type', [
  v.object({ type: v.literal('row'), id: v.number(), title: v.string(), gridPos }),
  v.object({
    type: v.picklist(['timeseries', 'stat']),
    id: v.number(),
    title: v.pipe(v.string(), v.nonEmpty()),
    gridPos,
    datasource: v.object({ uid: v.literal('${datasource}') }),
    fieldConfig: v.object({ defaults: v.object({ unit: v.pipe(v.string(), v.nonEmpty()) }) }),
    targets: v.pipe(v.array(Target), v.nonEmpty()),
  }),
]);
const Dashboard = v.object({
  uid: v.string(),
  title: v.string(),
  schemaVersion: v.number(),
  panels: v.array(Panel),
  templating: v.object({ list: v.array(v.object({ name: v.string(), type: v.string(), query: v.unknown() })) }),
});

const file = new URL('../../docs/grafana/oratorio.json', import.meta.url);
const dashboard = v.parse(Dashboard, JSON.parse(readFileSync(file, 'utf8')));
const tables = Object.values(metricTables).flatMap((table) => Object.values(table));
const byName = new Map<string, (typeof tables)[number]>(tables.map((metric) => [metric.name, metric]));
const panels = dashboard.panels.flatMap((panel) => (panel.type === 'row' ? [] : [panel]));

/** Names with the labels that are asked of them. Functions and labels of `by (…)` are followed by no selector here: ours always have one. */
function selectorsOf(expr: string) {
  return [...expr.matchAll(/\b([a-z_]+)\{([^}]*)\}/g)].map(([, name = '', inner = '']) => ({
    name,
    labels: [...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = '', text = '']) => ({
      label,
      text,
    })),
  }));
}

t.test('every expression uses metrics and labels of the table, and rates of counters only', (t) => {
  for (const { title, targets } of panels) {
    for (const { expr, legendFormat } of targets) {
      const selectors = selectorsOf(expr);
      t.ok(selectors.length > 0, `${title}: ${expr}`);
      for (const { name, labels } of selectors) {
        const metric = byName.get(name) ?? byName.get(name.replace(/_(bucket|sum|count)$/, ''));
        if (!metric) {
          t.fail(`${title} asks for ${name}`);
          continue;
        }
        t.equal(metric.type === 'histogram', name.endsWith('_bucket'), `${title}: ${name}`);
        const own: Readonly<Record<string, string>> = metric.labels;
        for (const { label, text } of labels) {
          if (label === 'job') continue;
          t.ok(label in own, `${title}: ${name} has no label ${label}`);
          for (const each of text.split('|')) t.match(own[label], `\`${each}\``, `${title}: ${label} is never ${each}`);
        }
        const isRated = new RegExp(`(rate|increase)\\(${name}\\{`).test(expr);
        t.equal(isRated, metric.type !== 'gauge', `${title}: ${name} is a ${metric.type}`);
        for (const [, group = ''] of [...expr.matchAll(/by \(([^)]*)\)/g)]) {
          for (const label of group.split(', ')) t.ok(label === 'le' || label in own, `${title}: by ${label}`);
        }
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
          t.ok(['job', 'instance'].includes(label) || label in own, `${title}: legend ${label}`);
        }
      }
      t.equal((expr.match(/\(/g) ?? []).length, (expr.match(/\)/g) ?? []).length, `${title}: brackets`);
    }
  }
  t.end();
});

t.test('the dashboard has a variable as data source, unique ids and no overlapping panels', (t) => {
  t.match(dashboard.templating.list[0], { name: 'datasource', type: 'datasource', query: 'prometheus' });
  t.strictSame(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  const taken = new Set<string>();
  for (const {
    gridPos: { x, y, w, h },
    title,
  } of dashboard.panels) {
    t.ok(x + w <= 24, title);
    for (let column = x; column < x + w; column += 1) {
      for (let line = y; line < y + h; line += 1) {
        const cell = `${column},${line}`;
        if (taken.has(cell)) t.fail(`${title} lies over another panel`);
        taken.add(cell);
      }
    }
  }
  const seconds = panels.filter(({ targets }) => targets.some(({ expr }) => expr.includes('_seconds_bucket')));
  for (const { title, fieldConfig } of seconds) t.equal(fieldConfig.defaults.unit, 's', title);
  t.end();
});
