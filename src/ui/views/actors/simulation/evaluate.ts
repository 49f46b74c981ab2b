/** Guards and assignments of a machine, over the values that the page knows. */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { attempt, changedBy, type Fields, partlyKnown } from './known.ts';

export type ConditionResult = 'yes' | 'no' | 'unknown';

/** Result of a guard over the known values. */
export interface GuardResult {
  readonly verdict: ConditionResult;
  readonly missing: string | null;
}

export function evaluateGuard(
  machine: AnyStateMachine,
  { guard }: AnyTransitionDefinition,
  known: Fields,
  fields: Fields,
): GuardResult {
  const args = { context: partlyKnown(known), event: partlyKnown(fields) };
  const resultOf = (value: boolean): GuardResult => ({ verdict: value ? 'yes' : 'no', missing: null });
  const evaluate = (each: unknown): GuardResult => {
    if (each === undefined || each === null) return resultOf(true);
    if (typeof each === 'function' && 'guards' in each && Array.isArray(each.guards)) {
      return combined(each.name, each.guards.map(evaluate));
    }
    const { type, params } = (typeof each === 'object' ? each : { type: each }) as { type?: unknown; params?: unknown };
    const check: unknown = typeof type === 'function' ? type : machine.implementations.guards[String(type)];
    if (typeof check !== 'function') return { verdict: 'unknown', missing: String(type) };
    const given = typeof params === 'function' ? attempt(() => params(args)) : { value: params };
    const result = attempt(() => Boolean(check(args, 'value' in given ? given.value : partlyKnown({}))));
    return 'value' in result ? resultOf(result.value) : { verdict: 'unknown', missing: result.unknown };
  };
  return evaluate(guard);
}

/** `not`, `and` and `or` of partly unknown guards. */
function combined(kind: string, parts: readonly GuardResult[]): GuardResult {
  const [first] = parts;
  const opposite = { yes: 'no', no: 'yes', unknown: 'unknown' } as const;
  if (kind === 'not')
    return first ? { ...first, verdict: opposite[first.verdict] } : { verdict: 'unknown', missing: null };
  const deciding = kind === 'and' ? 'no' : 'yes';
  const found = parts.find(({ verdict }) => verdict === deciding) ?? parts.find(({ verdict }) => verdict === 'unknown');
  return found ?? { verdict: opposite[deciding], missing: null };
}

type Assignment = Readonly<Record<string, unknown>> | ((args: never, params: never) => unknown);

/** Known fields after an action. A field assigned from unknown values becomes unknown. */
export function applied(machine: AnyStateMachine, known: Fields, action: unknown, fields: Fields): Fields {
  const { type, params } = (typeof action === 'object' && action !== null ? action : { type: action }) as {
    type?: unknown;
    params?: unknown;
  };
  const implementation: unknown = typeof type === 'string' ? machine.implementations.actions[type] : type;
  if (typeof implementation !== 'function') return known;
  const assignment = (implementation as { readonly assignment?: Assignment }).assignment;
  if (assignment === undefined) {
    // `enqueueActions` may assign anything; actions that send or log change nothing here.
    return 'collect' in implementation ||
      String((implementation as { type?: unknown }).type) === 'xstate.enqueueActions'
      ? {}
      : known;
  }
  const args = { context: partlyKnown(known), event: partlyKnown(fields) };
  const given = typeof params === 'function' ? attempt(() => params(args)) : { value: params };
  const parameters = 'value' in given ? given.value : partlyKnown({});
  const run = (work: (args: never, params: never) => unknown) =>
    attempt(() => work(args as never, parameters as never));
  if (typeof assignment !== 'function') {
    const next: Record<string, unknown> = { ...known };
    for (const [name, value] of Object.entries(assignment)) {
      const result = typeof value === 'function' ? run(value as never) : { value };
      if ('value' in result) next[name] = result.value;
      else delete next[name];
    }
    return next;
  }
  const result = run(assignment);
  if ('value' in result) return { ...known, ...(result.value as object) };
  const changed = changedBy(assignment, Object.keys(known));
  return changed === null ? {} : without(known, changed);
}

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
