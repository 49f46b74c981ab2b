/**
 * Writes the results in docs/performance.md from bench/results: `node bench/performance-page.ts`, and after each full run.
 * A benchmark without a results file of a full run has no section.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Check, checkLine, describeMachine, renderTable } from './report.ts';

/** Sections in this order; others follow by name. */
const order = [
  'sse-fanout',
  'hub-requests',
  'hub-lifecycle',
  'places',
  'hosts',
  'transition-to-wire',
  'agent-chat',
  'responses',
  'agent-runtime',
  'turn-cost',
  'agent-craft',
  'git-protection',
  'models',
  'lab',
  'traces',
  'inspection',
  'automations',
  'page',
  'chat-page',
  'page-proxy',
  'review-anchors',
  'review-intake',
  'review-queue',
  'review-scheduling',
  'review-sync',
];

/** A number that is not finite is null in JSON. */
const figure = v.pipe(
  v.nullable(v.number()),
  v.transform((value) => value ?? Number.NaN),
);

/** `bench/results/<benchmark>.json`, as `save` writes it. */
const SavedResult = v.object({
  benchmark: v.string(),
  title: v.string(),
  command: v.pipe(
    v.string(),
    v.check((command) => !command.includes('--quick'), 'the command of a full run'),
  ),
  at: v.pipe(v.string(), v.isoTimestamp()),
  machine: v.object({
    cpu: v.string(),
    cores: v.number(),
    memoryGiB: v.number(),
    node: v.string(),
    kernel: v.string(),
  }),
  rounds: v.pipe(v.number(), v.minValue(5, 'the five rounds of a full run')),
  tables: v.array(
    v.object({
      title: v.string(),
      columns: v.array(v.string()),
      rows: v.array(v.array(v.union([v.string(), figure]))),
    }),
  ),
  notes: v.array(v.string()),
  checks: v.array(
    v.object({
      what: v.string(),
      measured: figure,
      atLeast: v.optional(v.number()),
      atMost: v.optional(v.number()),
      unit: v.optional(v.string()),
      met: v.boolean(),
    }),
  ),
});
export type SavedResult = v.InferOutput<typeof SavedResult>;

const beside = (path: string): string => join(import.meta.dirname, path);
export const resultsDirectory = beside('results');
export const pageFile = beside('../docs/performance.md');

/** Results of full runs in the order of the page. @throws when a file is not one */
export function readResults(directory = resultsDirectory): SavedResult[] {
  const place = ({ benchmark }: SavedResult): number =>
    (order.indexOf(benchmark) + order.length + 1) % (order.length + 1);
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json') && !name.endsWith('.local.json'))
    .sort()
    .map((name) => {
      const result = v.parse(SavedResult, JSON.parse(readFileSync(join(directory, name), 'utf8')));
      if (`${result.benchmark}.json` !== name) throw new Error(`${name} holds the results of ${result.benchmark}`);
      return result;
    })
    .sort((a, b) => place(a) - place(b));
}

function sectionOf({ benchmark, title, command, machine, tables, notes, checks, at }: SavedResult): string {
  const lines = checks.map((check) => checkLine(check as Check, check.met));
  const text = [
    `## ${title}`,
    `\`${command}\` on ${describeMachine(machine)}`,
    ...tables.map(renderTable),
    ...notes,
    ...(lines.length > 0 ? [lines.join('\n')] : []),
    `Measured ${at.slice(0, 10)}.`,
  ].join('\n\n');
  return `<!-- begin ${benchmark} -->\n${text}\n<!-- end ${benchmark} -->`;
}

const heading = '# Results\n';

/** The page with exactly these results. Everything above the heading of the results is written by hand. */
export function renderPage(page: string, results: readonly SavedResult[]): string {
  const end = page.indexOf(heading);
  if (end < 0) throw new Error(`docs/performance.md has no heading "${heading.trim()}"`);
  const intro = 'Written by `node bench/performance-page.ts` from `bench/results/*.json`, the results of full runs.';
  return `${[`${page.slice(0, end)}${heading}`.trimEnd(), intro, ...results.map(sectionOf)].join('\n\n')}\n`;
}

/** Brings docs/performance.md up to date. */
export function publish(): void {
  writeFileSync(pageFile, renderPage(readFileSync(pageFile, 'utf8'), readResults()));
}

if (process.argv[1] === import.meta.filename) publish();
