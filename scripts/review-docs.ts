/**
 * Writes the tables of `docs/review-backend.md` that are made from the sources: settings and routes. With `--check` it writes
 * nothing and fails when one of them is not what it should be.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toJsonSchema } from '@valibot/to-json-schema';
import { type ReviewRoute, reviewRoutes } from '../src/review/api/index.ts';
import { BackendSettings } from '../src/review/settings/schema.ts';
import { cell, fieldRows, type Shape } from './shape-docs.ts';
import { root } from './toolchain.mjs';

const file = join(root, 'docs', 'review-backend.md');
const sections = { settings: settingsTable, routes: routesTable };

/** Every setting with its type, default and meaning. What was only kept for older files is left out. */
function settingsTable(): string {
  const shape = toJsonSchema(BackendSettings, { typeMode: 'input', errorMode: 'ignore' }) as unknown as Shape;
  const { DotCraft: _, ...rooms } = shape.properties ?? {};
  return [
    '| Setting | Type and default | Meaning |',
    '|---|---|---|',
    ...Object.entries(rooms).flatMap(([name, room]) =>
      fieldRows({ properties: { [name]: room } })
        .slice(1)
        .map(threeColumns),
    ),
  ].join('\n');
}

/** Which fields may be left out is told in a sentence: all of them. */
function threeColumns(row: string): string {
  const [, field = '', type = '', rest = '', meaning = ''] = row.split(/(?<!\\)\|/);
  const fallback = /default (`.*`)/.exec(rest)?.[1];
  return `|${field}|${type.trimEnd()}${fallback === undefined ? '' : `, ${fallback}`} |${meaning}|`;
}

function routesTable(): string {
  const routes: readonly ReviewRoute[] = Object.values(reviewRoutes);
  return [
    '| Route | For |',
    '|---|---|',
    ...routes.map(({ method, path, summary }) => `| \`${method} ${path}\` | ${cell(summary)} |`),
  ].join('\n');
}

const marked = (name: string) => ({ begin: `<!-- ${name}: generated -->`, end: `<!-- ${name}: end -->` });

/** The document with its tables as they should be. @throws Error when a mark is missing */
export function reviewDocument(text: string): string {
  return Object.entries(sections).reduce((document, [name, table]) => {
    const { begin, end } = marked(name);
    const [before, after] = [document.indexOf(begin), document.indexOf(end)];
    if (before < 0 || after < before) throw new Error(`docs/review-backend.md has no place for its ${name}.`);
    return `${document.slice(0, before + begin.length)}\n${table()}\n${document.slice(after)}`;
  }, text);
}

function main(): void {
  const text = readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
  const wanted = reviewDocument(text);
  if (!process.argv.includes('--check')) writeFileSync(file, wanted);
  else if (text !== wanted) {
    console.error('docs/review-backend.md is not what the sources say: run "node scripts/review-docs.ts".');
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
