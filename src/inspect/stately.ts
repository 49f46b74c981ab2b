import type { AnyStateMachine } from 'xstate';
import type { ActorRecord, DeadLetterRecord, InspectionRecord, TransitionRecord } from '../protocol/index.ts';
import { actionName, guardName } from './names.ts';

/** The part that all messages of `@statelyai/inspect` 0.7 have. Its own inspectors leave `id` null as well. */
interface StatelyBase {
  readonly _version: string;
  readonly id: null;
  readonly sessionId: string;
  readonly rootId: string;
  /** Milliseconds since the Unix epoch, as text. */
  readonly createdAt: string;
}

interface StatelySnapshot {
  readonly status: 'active' | 'done' | 'error';
  readonly value: StateValue;
  /** The allow-listed projection: the context itself never leaves the process. */
  readonly context: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

type StateValue = string | { readonly [key: string]: StateValue };

export type StatelyMessage = StatelyBase &
  (
    | {
        readonly type: '@xstate.actor';
        readonly name: string;
        readonly parentId: string | undefined;
        readonly definition: string | undefined;
        readonly snapshot: StatelySnapshot;
      }
    | {
        readonly type: '@xstate.event';
        readonly event: { readonly type: string };
        readonly sourceId: string | undefined;
      }
    | {
        readonly type: '@xstate.snapshot';
        readonly event: { readonly type: string };
        readonly snapshot: StatelySnapshot;
      }
  );

export interface StatelyOptions {
  /** Machines by chart name, for the definitions that Stately's viewer draws. */
  readonly machines: Readonly<Record<string, AnyStateMachine>>;
  /** Current or last state of an actor. */
  readonly actorOf: (id: string) => ActorRecord | undefined;
}

/** The version of `@statelyai/inspect` whose messages these are. */
const messageVersion = '0.7.2';

/**
 * Creates a translator from our records to messages of `@statelyai/inspect`: an event and a snapshot for a transition,
 * no message for a record that Stately's tools do not know.
 */
export function statelyMessages(options: StatelyOptions): (record: InspectionRecord) => readonly StatelyMessage[] {
  const { machines, actorOf } = options;
  const definitions = new Map<string, string>();

  function definitionOf(name: string): string | undefined {
    const machine = machines[name];
    if (!machine) return undefined;
    const known = definitions.get(name) ?? definitionText(machine);
    definitions.set(name, known);
    return known;
  }

  function rootOf(id: string): string {
    const parent = actorOf(id)?.parent;
    return parent === null || parent === undefined ? id : rootOf(parent);
  }

  const base = (id: string, at: Date): StatelyBase => ({
    _version: messageVersion,
    id: null,
    sessionId: id,
    rootId: rootOf(id),
    createdAt: String(at.getTime()),
  });

  const sent = (record: TransitionRecord | DeadLetterRecord): StatelyMessage => ({
    ...base(record.id, record.at),
    type: '@xstate.event',
    event: { type: record.event },
    sourceId: record.source ?? undefined,
  });

  return (record) => {
    switch (record.type) {
      case 'dropped':
        return [];
      case 'deadLetter':
        return [sent(record)];
      case 'actor': {
        const { id, parent, at, title, machine, states, projection, endedAt } = record;
        const status = endedAt ? 'done' : 'active';
        const snapshot = { status, value: stateValue(states), context: projection } as const;
        const definition = definitionOf(machine);
        const parentId = parent ?? undefined;
        return [{ ...base(id, at), type: '@xstate.actor', name: title, parentId, definition, snapshot }];
      }
      case 'transition': {
        const { id, at, event, to, projection } = record;
        const snapshot = { status: 'active', value: stateValue(to), context: projection } as const;
        return [sent(record), { ...base(id, at), type: '@xstate.snapshot', event: { type: event }, snapshot }];
      }
      case 'gone': {
        const { id, at, error } = record;
        const last = actorOf(id);
        const snapshot = {
          status: error === undefined ? 'done' : 'error',
          value: stateValue(last?.states ?? []),
          context: last?.projection ?? {},
          ...(error !== undefined && { error }),
        } as const;
        return [{ ...base(id, at), type: '@xstate.snapshot', event: { type: 'xstate.stop' }, snapshot }];
      }
    }
  };
}

interface Branch {
  [key: string]: Branch;
}

/** `['running', 'running.steady']` as XState writes it: `{running: 'steady'}`. */
export function stateValue(states: readonly string[]): StateValue {
  const root: Branch = {};
  for (const id of states) {
    let at = root;
    for (const key of id.split('.')) {
      at[key] ??= {};
      at = at[key];
    }
  }
  return nestedValue(root);
}

function nestedValue(branch: Branch): StateValue {
  const children = Object.entries(branch);
  const [only] = children;
  if (only && children.length === 1 && Object.keys(only[1]).length === 0) return only[0];
  return Object.fromEntries(children.map(([key, below]) => [key, nestedValue(below)]));
}

/**
 * The configuration that a machine was made with, as Stately's viewer wants it: JSON, functions by their names. A context
 * that was given as a value would be in there too, and is left out.
 */
function definitionText(machine: AnyStateMachine): string {
  const { context: _, ...config } = machine.config as { readonly context?: unknown };
  return JSON.stringify(config, (key, value: unknown) => {
    if (typeof value !== 'function') return value;
    return { type: key === 'guard' ? guardName(value) : actionName(value) };
  });
}
