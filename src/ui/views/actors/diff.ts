import type { Actor, LogEntry } from './model.ts';

export type Fact = Actor['projection'][string];

/** States and facts after a record. */
export interface Situation {
  readonly states: readonly string[];
  readonly projection: Actor['projection'];
}

/** `+` only in the later one, `−` only in the earlier one, `~` in both, with another value. */
export interface Difference {
  readonly sign: '+' | '−' | '~' | '=';
  readonly name: string;
  readonly before?: Fact;
  readonly after?: Fact;
}

export const situationOf = ({ record }: LogEntry): Situation => ({ states: record.to, projection: record.projection });

export const isSame = (a: Fact | undefined, b: Fact | undefined): boolean =>
  a instanceof Date && b instanceof Date ? a.getTime() === b.getTime() : Object.is(a, b);

/** States that were left (−) and entered (+), innermost and ancestors alike. */
export function statesBetween(before: Situation, after: Situation): Difference[] {
  return [
    ...before.states.filter((name) => !after.states.includes(name)).map((name): Difference => ({ sign: '−', name })),
    ...after.states.filter((name) => !before.states.includes(name)).map((name): Difference => ({ sign: '+', name })),
  ];
}

/** Facts of both, those without a change too, in the order of the later one. */
export function factsBetween(before: Situation, after: Situation): Difference[] {
  const names = [...new Set([...Object.keys(after.projection), ...Object.keys(before.projection)])];
  return names.map((name) => {
    const [old, now] = [presentIn(before, name), presentIn(after, name)];
    if (old === undefined)
      return { sign: now === undefined ? '=' : '+', name, ...(now !== undefined && { after: now }) };
    if (now === undefined) return { sign: '−', name, before: old };
    return { sign: isSame(old, now) ? '=' : '~', name, before: old, after: now };
  });
}

/** Value of a fact; undefined: missing or null. */
function presentIn({ projection }: Situation, name: string): Exclude<Fact, null> | undefined {
  return projection[name] ?? undefined;
}
