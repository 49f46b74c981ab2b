import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import type { AnyStateMachine } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { graphOf, transitionsOf, withDescendants } from '../../src/inspect/graph.ts';
import { actionName, guardName, nodeId } from '../../src/inspect/names.ts';

const directory = join(import.meta.dirname, '../../machines');
const files = readdirSync(directory, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.ts'));

/** The source without comments: words in them do nothing. */
function codeOf(file: string): string {
  return readFileSync(join(directory, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '');
}

t.test('machines import only XState, each other and src/lib/browser.ts', async (t) => {
  for (const file of files) {
    for (const [, from = ''] of codeOf(file).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]/g)) {
      const isOwn = from.startsWith('.') && files.includes(join(dirname(file), from));
      t.ok(isOwn || from === 'xstate' || from === '../src/lib/browser.ts', `${file} imports ${from}`);
    }
  }
});

t.test('machines use no clock, random numbers, process or network', async (t) => {
  const impure =
    /\b(?:Date\b|performance\b|Math\.random|crypto\b|(?<!-)process\.\w|globalThis|fetch\(|set(?:Timeout|Interval|Immediate)|queueMicrotask|console\.|require\(|eval\()/g;
  for (const file of files) t.same(codeOf(file).match(impure) ?? [], [], file);
});

/** Functions inside a machine's configuration, by path, apart from the ones that read an event (`input`, `params`, `context`). */
function inlineFunctions(value: unknown, path: string): string[] {
  if (typeof value === 'function') {
    const reader = /\.(input|params|context)$/.test(path);
    // `not(guard)` and its like are XState's own, over names.
    const composed = 'guards' in value;
    return reader || composed ? [] : [path];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => inlineFunctions(inner, `${path}.${key}`));
}

/** Guards of a composed guard, down to the names. */
function guardLeaves(guard: unknown): unknown[] {
  if (typeof guard === 'function' && 'guards' in guard && Array.isArray(guard.guards)) {
    return guard.guards.flatMap(guardLeaves);
  }
  return guard === undefined ? [] : [typeof guard === 'object' && guard && 'type' in guard ? guard.type : guard];
}

/** The names that `setup()` was given for one kind of part. */
function namesOf(machine: AnyStateMachine, kind: 'actions' | 'guards' | 'actors' | 'delays'): string[] {
  return Object.keys(machine.implementations[kind]);
}

for (const [name, machine] of Object.entries(catalogue)) {
  const nodes = withDescendants(machine.root);

  t.test(`${name}: every action, guard, actor and delay has a name`, async (t) => {
    t.same(inlineFunctions(machine.config, name), []);
    for (const node of nodes) {
      const actions = [...node.entry, ...node.exit, ...transitionsOf(node).flatMap((transition) => transition.actions)];
      for (const action of actions) {
        const called = actionName(action);
        if (called === 'raise' || called === 'cancel') continue;
        t.ok(namesOf(machine, 'actions').includes(called), `${nodeId(node)}: action ${called}`);
      }
      for (const guard of transitionsOf(node).flatMap((transition) => guardLeaves(transition.guard))) {
        t.ok(namesOf(machine, 'guards').includes(String(guard)), `${nodeId(node)}: guard ${guardName(guard)}`);
      }
      for (const invoke of node.invoke) {
        t.ok(namesOf(machine, 'actors').includes(String(invoke.src)), `${nodeId(node)}: actor ${String(invoke.src)}`);
        t.notMatch(invoke.id, /^\d+\./, `${nodeId(node)}: ${String(invoke.src)} has an id of its own`);
      }
      for (const delay of Object.keys(node.config.after ?? {})) {
        t.ok(namesOf(machine, 'delays').includes(delay), `${nodeId(node)}: delay ${delay}`);
      }
    }
  });

  t.test(`${name}: every declared implementation is used`, async (t) => {
    const config = JSON.stringify(machine.config, (_, value) =>
      typeof value === 'function' && 'guards' in value ? guardLeaves(value) : value,
    );
    const source = files.map(codeOf).join('\n');
    for (const action of namesOf(machine, 'actions')) t.ok(config.includes(`"${action}"`), `action ${action}`);
    for (const guard of namesOf(machine, 'guards')) t.ok(config.includes(`"${guard}"`), `guard ${guard}`);
    for (const delay of namesOf(machine, 'delays')) t.ok(config.includes(`"${delay}"`), `delay ${delay}`);
    for (const actor of namesOf(machine, 'actors')) {
      // An actor is invoked by a state, or spawned by an action.
      const used = config.includes(`"src":"${actor}"`) || source.includes(`spawnChild('${actor}'`);
      t.ok(used, `actor ${actor}`);
    }
  });

  t.test(`${name}: the description of every state is a sentence`, async (t) => {
    for (const { id, description } of graphOf(name, machine).nodes) {
      t.match(description, /^[A-Z].*[.?]$/s, `${id || '(machine)'}: ${description}`);
    }
  });

  t.test(`${name}: the definition as JSON has every action`, async (t) => {
    const text = JSON.stringify(machine.definition);
    t.notMatch(text, /"(entry|exit|actions)":\[[^\]]*\bnull\b/, 'an inline action would be null');
    t.notMatch(text, /"guard":null/);
    t.equal(JSON.stringify(JSON.parse(text)), text);
  });

  t.test(`${name}: every invoked or spawned actor has an id`, async (t) => {
    for (const [, call = ''] of files
      .map(codeOf)
      .join('\n')
      .matchAll(/spawnChild\(([\s\S]{0,40})/g)) {
      t.match(call, /\{\s*id: '/, call);
    }
  });
}
