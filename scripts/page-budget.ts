/**
 * Fails when the built page is larger than it may be, or names an address of another origin.
 *
 *   node scripts/page-budget.ts [directory]      default: dist/ui
 *
 * Sizes are those of brotli at its highest quality, in KiB.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';

const kibibyte = 1024;

/** Limits of the page, in bytes of brotli. */
export const budget = {
  /** Scripts that the page needs before its first view. */
  initialScripts: 45 * kibibyte,
  /** Everything that is ever fetched, styles and pictures included; not the drawings. */
  everything: 278 * kibibyte,
  /** Drawings of all machines together; a viewer fetches those of the machines that it shows. */
  drawings: 40 * kibibyte,
} as const;

/** Shipped beside the page, never fetched by it. */
const notFetched = new Set(['licenses.txt']);
/** Names that look like addresses but are namespaces of the DOM. */
const namespaces = /^http:\/\/www\.w3\.org\/(?:1999\/xhtml|1999\/xlink|2000\/svg|1998\/Math\/MathML|2000\/xmlns)/;
/** Addresses in texts of libraries that are never fetched: messages of superjson, marked and highlight.js. */
const mentions =
  /^https:\/\/github\.com\/(?:blitz-js\/superjson\/issues\/|markedjs\/marked\.|highlightjs\/highlight\.js\/)/;
const textual = new Set(['.js', '.css', '.html', '.svg']);

export interface PageWeight {
  /** Bytes of brotli by path. */
  readonly files: ReadonlyMap<string, number>;
  readonly initialScripts: number;
  readonly everything: number;
  readonly drawings: number;
  /** `path: address` of each address of another origin. */
  readonly foreign: readonly string[];
}

/** Weighs a built page. Throws when the directory has no `index.html`. */
export function weighPage(directory: string): PageWeight {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !notFetched.has(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  const files = new Map(
    paths.map((path) => [path, brotliCompressSync(readFileSync(join(directory, path))).byteLength]),
  );
  const html = readFileSync(join(directory, 'index.html'), 'utf8');
  const drawings = [...files].filter(([path]) => path.includes('.generated-')).map(([, bytes]) => bytes);
  const initial = [...files].filter(([path]) => extname(path) === '.js' && html.includes(path));
  return {
    files,
    initialScripts: sum(initial.map(([, bytes]) => bytes)),
    everything: sum([...files.values()]) - sum(drawings),
    drawings: sum(drawings),
    foreign: paths.filter((path) => textual.has(extname(path))).flatMap((path) => foreignIn(directory, path)),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

function foreignIn(directory: string, path: string): string[] {
  const text = readFileSync(join(directory, path), 'utf8');
  const addresses = text.match(/(?:https?:|wss?:)?\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)+[^\s"'`)<]*/gi) ?? [];
  return addresses
    .filter((address) => !namespaces.test(address) && !mentions.test(address))
    .map((address) => `${path}: ${address}`);
}

/** Problems of a page of this weight, in sentences; empty without one. */
export function faultsOf({ initialScripts, everything, drawings, foreign }: PageWeight): string[] {
  const kib = (bytes: number) => `${(bytes / kibibyte).toFixed(1)} KiB`;
  return [
    ...(initialScripts > budget.initialScripts
      ? [`The scripts before the first view weigh ${kib(initialScripts)}; ${kib(budget.initialScripts)} are allowed.`]
      : []),
    ...(everything > budget.everything
      ? [`The page weighs ${kib(everything)}; ${kib(budget.everything)} are allowed.`]
      : []),
    ...(drawings > budget.drawings
      ? [`The drawings weigh ${kib(drawings)}; ${kib(budget.drawings)} are allowed.`]
      : []),
    ...foreign.map((address) => `An address of another origin: ${address}`),
  ];
}

function main(): void {
  const directory = process.argv[2] ?? fileURLToPath(new URL('../dist/ui', import.meta.url));
  const weight = weighPage(directory);
  const faults = faultsOf(weight);
  const kib = (bytes: number) => (bytes / kibibyte).toFixed(1).padStart(6);
  for (const [path, bytes] of [...weight.files].sort(([, a], [, b]) => b - a))
    console.log(`${kib(bytes)} KiB  ${path}`);
  console.log(`${kib(weight.initialScripts)} KiB  scripts before the first view`);
  console.log(`${kib(weight.everything)} KiB  everything`);
  console.log(`${kib(weight.drawings)} KiB  drawings`);
  for (const fault of faults) console.error(`✖ ${fault}`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
