import type { AnyStateNode, AnyTransitionDefinition } from 'xstate';

/** Path of a state inside its machine, `running.steady`; the machine's root is ''. */
export const nodeId = (node: AnyStateNode): string => node.path.join('.');

/**
 * The event that takes a transition, as people read it: `PROBE.FAILED`, `after(backoff)`, `done(readiness)`, `always`.
 * It comes from the machine's definition, never from an event that was received, so it cannot carry a secret.
 *
 * @param active states before the transition: they name the actor where a composite state takes the ends or errors of all its actors,
 * which is `done(*)` or `error(*)` without them
 */
export function eventName(transition: AnyTransitionDefinition, active: Iterable<AnyStateNode> = []): string {
  const { eventType: descriptor, source } = transition;
  if (descriptor === '') return 'always';
  const internal = /^xstate\.(after|done\.actor|done\.state|error\.actor|snapshot)\.(.*)$/s.exec(descriptor);
  if (!internal) return descriptor;
  const [, kind = '', rest = ''] = internal;
  if (kind === 'after') return `after(${rest.slice(0, -source.id.length - 1)})`;
  if (kind === 'done.state') return `done(${source.key})`;
  const end = kind.split('.')[0];
  if (rest === '*') return `${end}(${invokedIn(active, source) ?? rest})`;
  const invoked = source.invoke.find((invoke) => invoke.id === rest);
  const isGenerated = /^\d+\./.test(rest);
  return `${end}(${isGenerated && invoked ? String(invoked.src) : rest})`;
}

/** Id of the only actor that the active states at or below `owner` run; undefined: they run several, or nothing. */
function invokedIn(active: Iterable<AnyStateNode>, owner: AnyStateNode): string | undefined {
  const ids = [...active].flatMap((node) => (owner.path.every((key, at) => node.path[at] === key) ? node.invoke : []));
  return ids.length === 1 ? ids[0]?.id : undefined;
}

/** Name of an action as given to `setup()`; that of the function, or `(inline)`, for an inline action. */
export function actionName(action: unknown): string {
  if (typeof action === 'string') return action;
  const type =
    typeof action === 'object' || typeof action === 'function' ? (action as { type?: unknown } | null)?.type : null;
  if (typeof type === 'string') return type.replace(/^xstate\./, '');
  return (typeof action === 'function' && action.name) || '(inline)';
}

/** Name of a guard, composed ones written out: `not hasProcess`, `isOurs and isIdle`. */
export function guardName(guard: unknown): string | null {
  if (guard === undefined || guard === null) return null;
  if (typeof guard === 'string') return guard;
  if (typeof guard === 'object') return String((guard as { type?: unknown }).type ?? '(inline)');
  if (typeof guard !== 'function') return '(inline)';
  const parts = 'guards' in guard && Array.isArray(guard.guards) ? guard.guards.map((part) => guardName(part)) : [];
  if (guard.name === 'not') return `not ${parts[0]}`;
  if (guard.name === 'and' || guard.name === 'or') return parts.join(` ${guard.name} `);
  return guard.name || '(inline)';
}
