import { visible } from '../../../lib/browser.ts';
import { placeInWords } from '../../../protocol/browser.ts';
import { clockTime } from '../../parts/time.ts';

/** `Allowed in the terminal, 12:03:04`. @param at milliseconds since the epoch */
export function outcomeOf(decision: string, decidedBy: string, at: number): string {
  const time = clockTime(at);
  if (decidedBy === 'agent' || decidedBy === 'policy') return `Withdrawn: the agent no longer asks, ${time}`;
  if (decidedBy === 'timeout') return `Declined: no answer in time, ${time}`;
  const word = decision.startsWith('accept') ? 'Allowed' : 'Declined';
  return `${word} ${visible(placeInWords(decidedBy), { multiline: false })}, ${time}`;
}
