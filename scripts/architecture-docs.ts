/**
 * Generated tables of `docs/architecture.md`: levels and imports of rooms, from the rules of `check-imports.ts`, and the rooms that
 * each program loads, from the imports of its entry files.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { allowed, importsOf, roomOf } from './check-imports.ts';
import { root } from './toolchain.mjs';

const file = 'docs/architecture.md';

/** A program that this repository builds. */
export interface Program {
  readonly name: string;
  /** Starter of the program, for the table. */
  readonly start: string;
  /** Paths from the root of the checkout, loaded in this order. */
  readonly entries: readonly string[];
}

const command = (name: string): readonly string[] => ['src/cli/main.ts', `src/cli/commands/${name}.ts`];

const serverCommands = ['src/cli/main.ts', ...globSync('src/cli/commands/server-*.ts', { cwd: root }).sort()];

export const programs: readonly Program[] = [
  { name: 'command line', start: 'the user: `oratorio`, before the file of a command', entries: ['src/cli/main.ts'] },
  { name: 'Hub', start: '`oratorio hub`; a client that finds no Hub', entries: command('hub') },
  { name: 'agent server', start: 'the Hub', entries: ['src/appserver/main.ts'] },
  { name: 'agent server by hand', start: '`oratorio app-server`, `api`, `gateway`', entries: command('app-server') },
  { name: 'log redactor', start: 'the Hub, beside a sidecar', entries: ['src/supervise/redact-main.ts'] },
  {
    name: 'thread of checkpoints',
    start: 'an agent server, before the first tool that may change files',
    entries: ['src/checkpoints/thread-main.ts'],
  },
  { name: 'read-only viewer', start: '`oratorio dashboard`', entries: command('dashboard') },
  { name: 'editor bridge', start: 'an editor: `oratorio acp`', entries: command('acp') },
  { name: 'tools for other agents', start: 'an agent: `oratorio mcp`', entries: command('mcp') },
  { name: 'review backend', start: '`oratorio backend`', entries: command('backend') },
  { name: 'deployment commands', start: '`oratorio server …`', entries: serverCommands },
  { name: 'page', start: 'a browser', entries: ['src/ui/main.tsx'] },
  { name: 'SDK', start: 'a program: `oratorio/client`', entries: ['src/client/index.ts'] },
];

/** Rooms of a program. One in both lists is in `atStart` only. */
export interface Loaded {
  readonly atStart: readonly string[];
  readonly onFirstUse: readonly string[];
}

interface ImportedFile {
  readonly path: string;
  readonly isDynamic: boolean;
}

/** Imports of each file that has been read: most files are part of several programs. */
const known = new Map<string, readonly ImportedFile[]>();

/** Files that `path` imports, from the root of the checkout; types are left out. */
function importedBy(path: string): readonly ImportedFile[] {
  const found = known.get(path) ?? readImports(path);
  known.set(path, found);
  return found;
}

function readImports(path: string): readonly ImportedFile[] {
  return importsOf(path, readFileSync(join(root, path), 'utf8')).flatMap(({ specifier, isType, isDynamic }) => {
    const target = join(dirname(path), specifier);
    const isSource = specifier.startsWith('.') && /\.tsx?$/.test(target) && existsSync(join(root, target));
    return isSource && !isType ? [{ path: target, isDynamic }] : [];
  });
}

/** `entries` and everything they import, through any number of files. @param follows - `import()` too */
export function closureOf(entries: readonly string[], follows: (path: string) => boolean): ReadonlySet<string> {
  const found = new Set(entries);
  for (const path of found) {
    for (const each of importedBy(path)) if (!each.isDynamic || follows(path)) found.add(each.path);
  }
  return found;
}

const roomsOf = (paths: Iterable<string>): string[] =>
  [...new Set([...paths].map((path) => roomOf(path.split('/').join(sep)) ?? ''))].sort();

/** The rooms that a program loads. A table of commands loads the one that is asked for, so its other imports do not count. */
export function loadedBy({ entries }: Program): Loaded {
  const atStart = roomsOf(closureOf(entries, () => false));
  const isOfTable = (path: string) => /^src\/cli\/[^/]*\.ts$/.test(path);
  const all = roomsOf(closureOf(entries, (path) => !isOfTable(path)));
  return { atStart, onFirstUse: all.filter((room) => !atStart.includes(room)) };
}

/** Level of each room: one above the highest room that it may import. */
export function levels(): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const levelOf = (room: string): number => {
    const known = found.get(room);
    if (known !== undefined) return known;
    const level = 1 + Math.max(-1, ...(allowed[room] ?? []).map(levelOf));
    found.set(room, level);
    return level;
  };
  for (const room of Object.keys(allowed)) levelOf(room);
  return found;
}

const quoted = (rooms: readonly string[]): string => rooms.map((room) => `\`${room}\``).join(', ') || '–';

/** Imports that a room may have, in short: whole levels first, then the other rooms by name. */
function mayImport(room: string, of: ReadonlyMap<string, number>): string {
  const rooms = allowed[room] ?? [];
  const isWhole = (level: number) =>
    [...of].every(([each, its]) => its !== level || rooms.includes(each) || each === 'ui');
  let whole = -1;
  while (whole < (of.get(room) ?? 0) - 1 && isWhole(whole + 1)) whole += 1;
  const named = rooms.filter((each) => (of.get(each) ?? 0) > whole).sort();
  const below = whole === 0 ? 'level 0' : `levels 0–${whole}`;
  if (whole < 0) return quoted(named);
  return named.length === 0 ? below : `${below}, ${quoted(named)}`;
}

function roomTable(): string {
  const of = levels();
  const rows = [...of].toSorted(([one, a], [other, b]) => b - a || one.localeCompare(other));
  return [
    '| Level | Room | May import |',
    '|---|---|---|',
    ...rows.map(([room, level]) => `| ${level} | \`${room}\` | ${mayImport(room, of)} |`),
  ].join('\n');
}

function programTable(): string {
  return [
    '| Program | Started by | Rooms at start | Rooms on first use |',
    '|---|---|---|---|',
    ...programs.map((program) => {
      const { atStart, onFirstUse } = loadedBy(program);
      return `| ${program.name} | ${program.start} | ${quoted(atStart)} | ${quoted(onFirstUse)} |`;
    }),
  ].join('\n');
}

const tables = { rooms: roomTable, programs: programTable };

/** `docs/architecture.md`: its own text, with the tables between the marks as they should be. @throws Error when a mark is missing */
export function architectureDocument(): string {
  const text = readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');
  return Object.entries(tables).reduce((document, [name, table]) => {
    const begin = `<!-- ${name}: generated by "npm run docs". Do not edit. -->`;
    const end = `<!-- ${name}: end -->`;
    const [before, after] = [document.indexOf(begin), document.indexOf(end)];
    if (before < 0 || after < before) throw new Error(`${file} has no place for its table of ${name}.`);
    return `${document.slice(0, before + begin.length)}\n${table()}\n${document.slice(after)}`;
  }, text);
}
