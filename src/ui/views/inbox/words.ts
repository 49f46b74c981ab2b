import { clockTime } from '../../parts/time.ts';

const places: Readonly<Record<string, string>> = {
  terminal: 'in the terminal',
  page: 'on a page',
  editor: 'in an editor',
};

/** `Allowed in the terminal, 12:03:04`. @param at milliseconds since the epoch */
export function outcomeOf(decision: string, decidedBy: string, at: number): string {
  const time = clockTime(at);
  if (decidedBy === 'withdrawn' || decidedBy === 'policy') return `Withdrawn, ${time}`;
  if (decidedBy === 'timeout') return `Declined: no answer in time, ${time}`;
  const word = decision.startsWith('accept') ? 'Allowed' : 'Declined';
  return `${word} ${places[decidedBy] ?? `by ${decidedBy}`}, ${time}`;
}
