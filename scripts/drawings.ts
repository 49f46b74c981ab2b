/**
 * Drawings of the machines, kept under version control: elkjs takes a minute for all of them, and they change as rarely as
 * the machines. `npm run docs` draws the stale ones again, `npm run check` fails for them.
 */
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { catalogue, type MachineWords, machineWords } from '../machines/index.ts';
import { wholeOf } from '../src/inspect/chart.ts';
import { encodeWhole } from '../src/inspect/encode.ts';
import { fingerprintOf } from '../src/inspect/fingerprint.ts';
import { graphOf, type MachineGraph } from '../src/inspect/graph.ts';
import type { Drawings } from '../src/inspect/picture.ts';
import { picturesOf } from '../src/inspect/plan.ts';
import { projections } from '../src/inspect/projections.ts';
import { noWords } from '../src/inspect/words.ts';
import { root } from './toolchain.mjs';

/** Files that decide how a machine is drawn. */
const code = ['chart', 'detail', 'encode', 'layout', 'measure', 'picture', 'plan', 'words'];

const directory = 'src/ui/views/actors/drawn';
const ending = '.generated.json';
const fileOf = (name: string): string => join(root, directory, `${name}${ending}`);
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

export function wordsFor(name: string): MachineWords {
  const words: Readonly<Record<string, MachineWords>> = machineWords;
  return words[name] ?? noWords;
}

let codeHash: string | undefined;

/** Hash of all that a machine's drawings are made from. */
function drawingKey(graph: MachineGraph, words: MachineWords): string {
  codeHash ??= createHash('sha256')
    .update(code.map((name) => withoutComments(textOf(`src/inspect/${name}.ts`))).join('\0'))
    .update(JSON.parse(textOf('package.json')).devDependencies.elkjs)
    .digest('hex');
  return createHash('sha256')
    .update(JSON.stringify([codeHash, graph, words, factsOf(graph.name)]))
    .digest('hex')
    .slice(0, 24);
}

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

/** The drawings of a machine; undefined when they are missing or of another version of it. */
export function currentDrawings(name: string, machine: AnyStateMachine): Drawings | undefined {
  let text: string;
  try {
    text = readFileSync(fileOf(name), 'utf8');
  } catch {
    return undefined;
  }
  const drawings: Drawings = JSON.parse(text);
  return drawings.key === drawingKey(graphOf(name, machine), wordsFor(name)) ? drawings : undefined;
}

export async function drawMachine(name: string, machine: AnyStateMachine): Promise<Drawings> {
  const graph = graphOf(name, machine);
  const words = wordsFor(name);
  return {
    key: drawingKey(graph, words),
    fingerprint: fingerprintOf(graph),
    words,
    facts: factsOf(name),
    whole: encodeWhole(graph, await wholeOf(graph)),
    pictures: await picturesOf(graph, words),
  };
}

/** Names of machines whose drawings are missing or stale, and of drawings without a machine. */
export function staleDrawings(): { readonly machines: readonly string[]; readonly strays: readonly string[] } {
  const machines = Object.entries(catalogue).filter(([name, machine]) => !currentDrawings(name, machine));
  const strays = globSync(`${directory}/*${ending}`, { cwd: root })
    .map((file) => basename(file, ending))
    .filter((name) => !Object.hasOwn(catalogue, name));
  return { machines: machines.map(([name]) => name), strays };
}

/** Draws stale machines again. Takes seconds for each. */
export async function renewDrawings(): Promise<void> {
  const { machines, strays } = staleDrawings();
  for (const name of machines) {
    const machine = catalogue[name];
    if (!machine) continue;
    mkdirSync(dirname(fileOf(name)), { recursive: true });
    writeFileSync(fileOf(name), printed(await drawMachine(name, machine)));
  }
  for (const name of strays) rmSync(fileOf(name));
}

/** A line for each state, so that a change of a machine is a small one of the file. */
function printed({ pictures, ...rest }: Drawings): string {
  const lines = Object.entries(pictures).map(([leaf, picture]) => `${JSON.stringify(leaf)}:${JSON.stringify(picture)}`);
  return `${JSON.stringify(rest).slice(0, -1)},"pictures":{\n${lines.join(',\n')}\n}}\n`;
}
