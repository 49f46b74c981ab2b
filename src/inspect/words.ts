import type { MachineWords } from '../../machines/index.ts';

export type Words = MachineWords;

export const noWords: Words = { guards: {}, actions: {} };

/** Words of an action; its name when they are missing. */
export const actionWords = ({ actions }: Words, name: string): string =>
  (Object.hasOwn(actions, name) ? actions[name] : undefined) ?? name;

/** A guard as a clause: `it is idle`, `not (a process is left)`; names without words stay names. */
export function clauseWords({ guards }: Words, guard: string): string {
  const clauseOf = (name: string) => (Object.hasOwn(guards, name) ? guards[name] : undefined) ?? name;
  const joint = / or /.test(guard) ? ' or ' : ' and ';
  return guard
    .split(/ (?:and|or) /)
    .map((part) => (part.startsWith('not ') ? `not (${clauseOf(part.slice(4))})` : clauseOf(part)))
    .join(joint);
}

/** A guard as a condition: `if it is idle`, `unless a process is left`. */
export function guardWords(words: Words, guard: string): string {
  const isNegated = guard.startsWith('not ') && !/ (?:and|or) /.test(guard);
  return isNegated ? `unless ${clauseWords(words, guard.slice(4))}` : `if ${clauseWords(words, guard)}`;
}
