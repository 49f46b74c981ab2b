/**
 * States and transitions of a machine, read from its configuration without the code of the drawings, which are compared with it.
 * Supports `on`, `after`, `always`, `invoke`, `onDone`, targets by key, `.child` and `#id.path`.
 */
import type { AnyStateMachine } from 'xstate';

export interface WalkedState {
  readonly path: string;
  readonly parent: string | null;
  readonly description: string;
  readonly kind: string;
  readonly isInitial: boolean;
  readonly invokes: readonly string[];
  readonly entry: readonly string[];
  readonly exit: readonly string[];
}

export interface WalkedTransition {
  readonly source: string;
  /** Null for a transition without a target. */
  readonly target: string | null;
  readonly event: string;
  readonly guard: string | null;
  readonly actions: readonly string[];
  readonly delayMs: number | null;
}

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const list = (value: unknown): unknown[] => (value === undefined ? [] : Array.isArray(value) ? value : [value]);
const join = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);
const above = (path: string): string => path.split('.').slice(0, -1).join('.');

/** Name of an action or a guard. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isObject(value) && typeof value['type'] === 'string') return value['type'];
  if (typeof value !== 'function') return '(inline)';
  const parts = 'guards' in value && Array.isArray(value.guards) ? value.guards.map(nameOf) : undefined;
  if (parts) return value.name === 'not' ? `not ${parts[0]}` : parts.join(` ${value.name} `);
  if ('type' in value && typeof value.type === 'string') return value.type.replace('xstate.', '');
  return value.name || '(inline)';
}

export function walk(machine: AnyStateMachine): { states: WalkedState[]; transitions: WalkedTransition[] } {
  const root = machine.config as Json;
  const delays = machine.implementations.delays as Readonly<Record<string, unknown>>;
  const states: WalkedState[] = [];
  const transitions: WalkedTransition[] = [];

  function targetOf(source: string, target: unknown): string | null {
    if (target === undefined) return null;
    const text = String(target);
    if (text.startsWith('#')) {
      const path = text.slice(1);
      const id = String(root['id']);
      if (path === id) return '';
      if (!path.startsWith(`${id}.`)) throw new Error(`${text} is not in ${id}`);
      return path.slice(id.length + 1);
    }
    if (text.startsWith('.')) return join(source, text.slice(1));
    return source === '' ? text : join(above(source), text);
  }

  function add(source: string, event: string, given: unknown, delayMs: number | null = null): void {
    for (const each of list(given)) {
      const transition: Json = isObject(each) ? each : { target: each };
      const guard = transition['guard'] === undefined ? null : nameOf(transition['guard']);
      const actions = list(transition['actions']).map(nameOf);
      const targets = transition['target'] === undefined ? [undefined] : list(transition['target']);
      for (const target of targets) {
        transitions.push({ source, target: targetOf(source, target), event, guard, actions, delayMs });
      }
    }
  }

  function delayMs(delay: string): number | null {
    const given = /^\d+$/.test(delay) ? Number(delay) : delays[delay];
    return typeof given === 'number' ? given : null;
  }

  function visit(config: Json, path: string, parent: Json | null): void {
    const children = Object.entries((config['states'] ?? {}) as Readonly<Record<string, Json>>);
    const invoked = list(config['invoke']).filter(isObject);
    const kind = config['type'] ?? (children.length > 0 ? 'compound' : 'atomic');
    states.push({
      path,
      parent: parent === null ? null : above(path),
      description: String(config['description'] ?? ''),
      kind: String(kind),
      isInitial:
        parent !== null && parent['type'] !== 'parallel' && join(above(path), String(parent['initial'])) === path,
      invokes: invoked.map(({ src }) => String(src)),
      entry: list(config['entry']).map(nameOf),
      exit: list(config['exit']).map(nameOf),
    });
    add(path, 'always', config['always']);
    for (const [event, given] of Object.entries((config['on'] ?? {}) as Json)) {
      add(path, event.replace(/^xstate\.(done|error)\.actor\.\*$/, '$1(*)'), given);
    }
    for (const [delay, given] of Object.entries((config['after'] ?? {}) as Json)) {
      add(path, `after(${delay})`, given, delayMs(delay));
    }
    for (const invoke of invoked) {
      const name = String(invoke['id'] ?? invoke['src']);
      add(path, `done(${name})`, invoke['onDone']);
      add(path, `error(${name})`, invoke['onError']);
      add(path, `snapshot(${name})`, invoke['onSnapshot']);
    }
    add(path, `done(${path.split('.').at(-1)})`, config['onDone']);
    for (const [key, child] of children) visit(child, join(path, key), config);
  }

  visit(root, '', null);
  return { states, transitions };
}
