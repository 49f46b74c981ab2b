/**
 * Drawings of the machines, kept under version control: they take a minute, and change as rarely as
 * the machines. `npm run docs` draws the stale ones again, `npm run check` fails for them.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { catalogue, type MachineWords, machineWords } from '../machines/index.ts';
import { machinePlaces, type Places } from '../machines/places/index.ts';
import { chartOf, drawChart, wholeOf } from '../src/inspect/chart.ts';
import { picturesOf } from '../src/inspect/draw.ts';
import { decodeWhole, encodeWhole, type Whole } from '../src/inspect/encode.ts';
import { fingerprintOf } from '../src/inspect/fingerprint.ts';
import { graphOf, type MachineGraph } from '../src/inspect/graph.ts';
import type { Drawings } from '../src/inspect/picture.ts';
import { projections } from '../src/inspect/projections.ts';
import { noWords } from '../src/inspect/words.ts';
import type { Chart } from '../src/protocol/index.ts';
import { root } from './toolchain.mjs';

/** Files that decide how a machine is drawn, and how the whole of it is laid out. */
const code = {
  drawings: ['bundles', 'draw', 'picture', 'places', 'route', 'words'],
  whole: ['bundles', 'chart', 'encode', 'layout', 'measure'],
} as const;

const directory = 'src/ui/views/actors/drawn';
/** Layouts of whole machines: the build needs them, the page gets them from the server. */
const wholeDirectory = 'src/inspect/whole';
const ending = '.generated.json';
const fileOf = (name: string): string => join(root, directory, `${name}${ending}`);
const wholeFileOf = (name: string): string => join(root, wholeDirectory, `${name}${ending}`);
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

export function wordsFor(name: string): MachineWords {
  const words: Readonly<Record<string, MachineWords>> = machineWords;
  return words[name] ?? noWords;
}

function placesFor(name: string): Places | undefined {
  const places: Readonly<Record<string, Places>> = machinePlaces;
  return places[name];
}

const hashOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 24);

const codeHashes = new Map<keyof typeof code, string>();

function codeHash(kind: keyof typeof code): string {
  const known =
    codeHashes.get(kind) ?? hashOf(...code[kind].map((name) => withoutComments(textOf(`src/inspect/${name}.ts`))));
  codeHashes.set(kind, known);
  return known;
}

/** Hash of all that a machine's drawings are made from. */
const drawingKey = (graph: MachineGraph): string =>
  hashOf(
    codeHash('drawings'),
    JSON.stringify([graph, wordsFor(graph.name), placesFor(graph.name), factsOf(graph.name)]),
  );

/** Hash of all that the layout of a whole machine is made from. */
const wholeKey = (graph: MachineGraph): string =>
  hashOf(codeHash('whole'), JSON.parse(textOf('package.json')).devDependencies.elkjs, JSON.stringify(graph));

/** Names of a projection whose values are unchanged fields of the context. */
function factsOf(name: string): string[] {
  const marks = new Map<string, object>();
  // Stands for every value: a fact that is worked out from it is another object.
  const derived = (): object =>
    new Proxy(() => {}, {
      get: (_, field) => (field === Symbol.toPrimitive ? () => 0 : derived()),
      apply: () => derived(),
    });
  const context = new Proxy(
    {},
    {
      get(_, field) {
        const mark = marks.get(String(field)) ?? derived();
        marks.set(String(field), mark);
        return mark;
      },
    },
  );
  const shown = projections[name]?.(context as never) ?? {};
  return Object.entries(shown).flatMap(([fact, value]) => (marks.get(fact) === (value as unknown) ? [fact] : []));
}

/** The text of a generated file; undefined when it is missing or made from something else. */
function currentFile<T extends { readonly key: string }>(file: string, key: string): T | undefined {
  if (!existsSync(file)) return undefined;
  const made: T = JSON.parse(readFileSync(file, 'utf8'));
  return made.key === key ? made : undefined;
}

/** The drawings of a machine; undefined when they are missing or of another version of it. */
export const currentDrawings = (graph: MachineGraph): Drawings | undefined =>
  currentFile<Drawings>(fileOf(graph.name), drawingKey(graph));

/** The layout of a whole machine; undefined when it is missing or of another version of it. */
export const currentWhole = (graph: MachineGraph): Whole | undefined =>
  currentFile<Whole & { readonly key: string }>(wholeFileOf(graph.name), wholeKey(graph));

/** The chart of a machine from its drawings; it is laid out, which takes a second, when they are of another version of it. */
export async function drawnChart(name: string, machine: AnyStateMachine): Promise<Chart> {
  const graph = graphOf(name, machine);
  const whole = currentWhole(graph);
  return whole ? drawChart(graph, decodeWhole(graph, whole)) : chartOf(name, machine);
}

export function drawingsOf(graph: MachineGraph): Drawings {
  return {
    key: drawingKey(graph),
    fingerprint: fingerprintOf(graph),
    words: wordsFor(graph.name),
    facts: factsOf(graph.name),
    pictures: picturesOf(graph, placesFor(graph.name)),
  };
}

/** Names of machines whose drawings are missing or stale, and of drawings without a machine. */
export function staleDrawings(): { readonly machines: readonly string[]; readonly strays: readonly string[] } {
  const machines = graphs().filter((graph) => !currentDrawings(graph) || !currentWhole(graph));
  const strays = globSync(`{${directory},${wholeDirectory}}/*${ending}`, { cwd: root })
    .map((file) => basename(file, ending))
    .filter((name) => !Object.hasOwn(catalogue, name));
  return { machines: machines.map(({ name }) => name), strays: [...new Set(strays)] };
}

const graphs = (): MachineGraph[] => Object.entries(catalogue).map(([name, machine]) => graphOf(name, machine));

/** Draws stale machines again. Takes seconds for each. */
export async function renewDrawings(): Promise<void> {
  for (const folder of [directory, wholeDirectory]) mkdirSync(join(root, folder), { recursive: true });
  for (const graph of graphs()) {
    if (!currentDrawings(graph)) writeFileSync(fileOf(graph.name), printed(drawingsOf(graph)));
    if (currentWhole(graph)) continue;
    const whole = { key: wholeKey(graph), ...encodeWhole(graph, await wholeOf(graph)) };
    writeFileSync(wholeFileOf(graph.name), `${JSON.stringify(whole)}\n`);
  }
  for (const name of staleDrawings().strays)
    for (const file of [fileOf(name), wholeFileOf(name)]) rmSync(file, { force: true });
}

/** A line for each size, so that a change of a machine is a small one of the file. */
function printed({ pictures, ...rest }: Drawings): string {
  const lines = Object.entries(pictures).map(([size, picture]) => `${JSON.stringify(size)}:${JSON.stringify(picture)}`);
  return `${JSON.stringify(rest).slice(0, -1)},"pictures":{\n${lines.join(',\n')}\n}}\n`;
}
