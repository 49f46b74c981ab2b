/**
 * Checks imports against the table in `docs/architecture.md`: they point downwards only, and enter another room through its
 * `index.ts`. The same holds between the parts of a room that has an order of parts. Uses a real parser: strings and comments are
 * not imports, types and `import()` are.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { root } from './toolchain.mjs';

const lower = ['http', 'events', 'config', 'log', 'protocol', 'machines', 'rpc', 'lib', 'addresses'];

/** Rooms that each room may import besides itself. */
export const allowed: Readonly<Record<string, readonly string[]>> = {
  machines: ['lib'],
  lib: [],
  addresses: [],
  rpc: ['lib'],
  protocol: ['machines'],
  http: ['protocol', 'machines', 'lib'],
  events: ['protocol', 'machines', 'lib'],
  config: ['protocol', 'machines', 'lib'],
  log: ['protocol', 'machines', 'lib'],
  agent: ['git', 'supervise', ...lower],
  supervise: lower,
  places: ['supervise', ...lower],
  git: ['supervise', 'lib'],
  inspect: lower,
  // Separate package: the recorder for other programs.
  inspector: ['inspect', ...lower],
  checkpoints: ['git', 'supervise', ...lower],
  client: ['protocol', 'supervise', 'config', 'rpc', 'lib'],
  // Hubs of other machines.
  hosts: ['client', 'supervise', ...lower],
  hub: ['hosts', 'agent', 'dashboard', 'telemetry', 'places', 'supervise', 'inspect', 'client', ...lower],
  mcp: ['agent', 'supervise', ...lower],
  external: ['agent', 'supervise', ...lower],
  chat: ['agent', ...lower],
  agui: ['agent', ...lower],
  acp: ['client', ...lower],
  automations: ['agent', 'supervise', ...lower],
  telemetry: ['agent', 'inspect', ...lower],
  dashboard: ['agent', 'checkpoints', 'automations', 'telemetry', 'inspect', 'supervise', ...lower],
  appserver: [
    'agent',
    'checkpoints',
    'mcp',
    'external',
    'chat',
    'agui',
    'automations',
    'telemetry',
    'dashboard',
    'places',
    'supervise',
    'inspect',
    'client',
    ...lower,
  ],
  // The App at GitHub, for reviews and for their deployment.
  github: lower,
  review: ['github', 'client', 'telemetry', 'git', 'supervise', 'inspect', ...lower],
  deploy: ['github', 'client', 'git', 'supervise', ...lower],
  cli: [
    'hub',
    'hosts',
    'appserver',
    'review',
    'deploy',
    'mcp',
    'external',
    'dashboard',
    'acp',
    'client',
    'agent',
    'git',
    'places',
    'supervise',
    'inspect',
    ...lower,
  ],
  // The browser page: bundled on its own, speaks HTTP to the Hub.
  ui: ['protocol', 'inspect', 'rpc', 'lib', 'machines'],
};

/**
 * Parts of a room, lowest first: each imports only parts further up this list, through their `index.ts` (`x.ts` is a part of one
 * file). A part may have an order of its own parts.
 */
export const orders: Readonly<Record<string, readonly string[]>> = {
  'src/agent': [
    'errors.ts',
    'model.ts',
    'printed-call.ts',
    'tokens.ts',
    'picture-formats.ts',
    'pictures.ts',
    'history.ts',
    'schema-parts.ts',
    'tool-schema.ts',
    'turn-actor-store.ts',
    'tool.ts',
    'question.ts',
    'delegate.ts',
    'thread-store.ts',
    'schedule-store.ts',
    'chat-request-store.ts',
    'response-store.ts',
    'store',
    'providers',
    'connect',
    'tools',
    'model-call.ts',
    'rules',
    'hooks',
    'library',
    'worktrees',
    'context',
    'instructions',
    'runtime',
    'index.ts',
  ],
  'src/agent/runtime': [
    'clock.ts',
    'feed.ts',
    'journal.ts',
    'past-steps.ts',
    'tracer.ts',
    'types.ts',
    'services.ts',
    'turn',
    'thread',
    'runtime.ts',
    'index.ts',
  ],
  'src/deploy': [
    'errors.ts',
    'file-error.ts',
    'defaults.ts',
    'providers.ts',
    'once.ts',
    'layout.ts',
    'stack-plan.ts',
    'host',
    'files',
    'stack',
    'plan',
    'engine',
    'git',
    'github',
    'apply',
    'doctor',
    'operations',
    'index.ts',
  ],
  'src/review': [
    'errors.ts',
    'store',
    'settings',
    'anchors',
    'git',
    'github',
    'agent',
    'webhook',
    'runs',
    'jobs',
    'api',
    'page',
    'backend',
    'demo',
    'index.ts',
  ],
};

/** Rooms of which only types may be imported, by importing room. */
const typesOnly: Readonly<Record<string, readonly string[]>> = { protocol: ['machines'] };

interface Import {
  readonly specifier: string;
  readonly isType: boolean;
  /** `import()`: loaded on first use. */
  readonly isDynamic: boolean;
  readonly line: number;
}

/** Every module that a source text names, in any form of import. */
export function importsOf(file: string, source: string): Import[] {
  const { module } = parseSync(file, source);
  const lineAt = (offset: number) => source.slice(0, offset).split('\n').length;
  const statically = module.staticImports.map(({ moduleRequest, start, end, entries }) => ({
    specifier: moduleRequest.value,
    isType:
      /^import\s+type\b/.test(source.slice(start, end)) ||
      (entries.length > 0 && entries.every(({ isType }) => isType)),
    isDynamic: false,
    line: lineAt(start),
  }));
  const exported = module.staticExports.flatMap(({ entries, start }) =>
    entries.flatMap(({ moduleRequest, isType }) =>
      moduleRequest ? [{ specifier: moduleRequest.value, isType, isDynamic: false, line: lineAt(start) }] : [],
    ),
  );
  const dynamically = module.dynamicImports.map(({ moduleRequest, start }) => ({
    specifier: source.slice(moduleRequest.start, moduleRequest.end).replace(/^['"`]|['"`]$/g, ''),
    isType: false,
    isDynamic: true,
    line: lineAt(start),
  }));
  return [...statically, ...exported, ...dynamically];
}

/** The room a path (from the root of the checkout) is in; undefined outside of them. */
export function roomOf(path: string): string | undefined {
  const [first = '', second = ''] = path.split(sep);
  if (first === 'machines') return 'machines';
  return first === 'src' ? second : undefined;
}

/** The only files of a room that others may name. The page and the machines get faces without Node in them. */
function facesOf(room: string, importer: string): string[] {
  // The catalogue is a face of its own, which programs load on first use.
  if (room === 'machines')
    return ['index.ts', 'catalogue.ts', ...(importer === 'ui' ? ['browser.ts'] : [])].map((face) =>
      join('machines', face),
    );
  const browser = join('src', room, 'browser.ts');
  if (importer === 'ui' && (room === 'inspect' || room === 'rpc')) return [browser];
  if (room === 'lib' && (importer === 'ui' || importer === 'machines' || importer === 'rpc')) return [browser];
  const index = join('src', room, 'index.ts');
  return importer === 'ui' ? [index, browser] : [index];
}

/** Problem of one import of `file`; undefined without one. Paths are from the root of the checkout. */
export function problemOf(
  file: string,
  { specifier, isType }: Pick<Import, 'specifier' | 'isType'>,
): string | undefined {
  const room = roomOf(file);
  if (room === undefined || !specifier.startsWith('.')) return undefined;
  const rules = allowed[room];
  if (!rules) return `room ${room} is not in the table of docs/architecture.md`;
  const target = join(dirname(file), specifier);
  const other = roomOf(target);
  if (other === room) return orderProblemOf(join('src', room), file, target);
  if (other === undefined) return target === 'package.json' ? undefined : `${target} is in no room`;
  if (!rules.includes(other)) return `${room} must not import ${other}`;
  if (!isType && typesOnly[room]?.includes(other)) return `${room} may import only types of ${other}`;
  const faces = facesOf(other, room);
  if (!faces.includes(target)) return `${other} is entered through ${faces.join(' or ')}, not ${target}`;
  return undefined;
}

/** Checks an import within a room, or a part of it, whose parts have an order. @returns the problem; undefined without one */
function orderProblemOf(room: string, file: string, target: string): string | undefined {
  const order = orders[room];
  if (!order) return undefined;
  const partOf = (path: string) => relative(room, path).split(sep)[0] ?? '';
  const [part, other] = [partOf(file), partOf(target)];
  if (part === other) return orderProblemOf(join(room, part), file, target);
  for (const each of [part, other]) if (!order.includes(each)) return `${room}/${each} is not in the order of parts`;
  if (order.indexOf(other) > order.indexOf(part)) return `${room}/${part} must not import ${room}/${other}`;
  const face = other.endsWith('.ts') ? join(room, other) : join(room, other, 'index.ts');
  return target === face ? undefined : `${room}/${other} is entered through ${face}, not ${target}`;
}

/** First cycle of static imports, types included, from each file that begins one. @param imported files that each file imports */
export function cyclesOf(imported: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const follow = (file: string) => {
    const start = path.indexOf(file);
    if (start !== -1) cycles.push([...path.slice(start), file]);
    if (start !== -1 || done.has(file)) return;
    path.push(file);
    for (const next of imported.get(file) ?? []) follow(next);
    path.pop();
    done.add(file);
  };
  for (const file of imported.keys()) follow(file);
  return cycles;
}

/** All problems of the checkout, one per line: `file:line  what`. */
export function checkImports(base: string = root): string[] {
  const files = globSync(['src/**/*.{ts,tsx}', 'machines/**/*.ts'], { cwd: base }).sort();
  const imports = files.map((file) => [file, importsOf(file, readFileSync(join(base, file), 'utf8'))] as const);
  const problems = imports.flatMap(([file, each]) =>
    each.flatMap((one) => {
      const problem = problemOf(relative('.', file), one);
      return problem === undefined ? [] : [`${file}:${one.line}  ${problem}`];
    }),
  );
  const loaded = imports.map(([file, each]) => {
    const ofFile = each.filter(({ isDynamic, specifier }) => !isDynamic && specifier.startsWith('.'));
    return [file, ofFile.map(({ specifier }) => join(dirname(file), specifier))] as const;
  });
  return [...problems, ...cyclesOf(new Map(loaded)).map((cycle) => `import cycle: ${cycle.join(' → ')}`)];
}

if (process.argv[1]?.endsWith('check-imports.ts')) {
  const problems = checkImports();
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
