import type { Actor } from './actors.ts';

/** How a state is shown: a shape and a colour, so that neither has to be told apart alone. */
export type Tone = 'neutral' | 'progress' | 'ok' | 'warn' | 'danger';
export type Shape = 'ring' | 'arc' | 'disc' | 'triangle' | 'square' | 'cross' | 'diamond';

interface Look {
  readonly tone: Tone;
  readonly shape: Shape;
}

const looks: Readonly<Record<string, Look>> = {
  stopped: { tone: 'neutral', shape: 'ring' },
  starting: { tone: 'progress', shape: 'arc' },
  running: { tone: 'ok', shape: 'disc' },
  unhealthy: { tone: 'warn', shape: 'triangle' },
  stopping: { tone: 'progress', shape: 'arc' },
  exited: { tone: 'danger', shape: 'cross' },
  booting: { tone: 'progress', shape: 'arc' },
  claiming: { tone: 'progress', shape: 'arc' },
  listening: { tone: 'progress', shape: 'arc' },
  serving: { tone: 'ok', shape: 'disc' },
  draining: { tone: 'progress', shape: 'arc' },
  closing: { tone: 'progress', shape: 'arc' },
  yielded: { tone: 'neutral', shape: 'ring' },
  failed: { tone: 'danger', shape: 'cross' },
};
const unknown: Look = { tone: 'neutral', shape: 'diamond' };

/** The public state of an actor: its outermost active state. */
export const publicState = (states: readonly string[]): string => states[0] ?? '–';

/** The state in full: `starting · probing`; regions side by side are joined by a comma. */
export function fullState(states: readonly string[]): string {
  const leaves = states.filter((state) => !states.some((other) => other.startsWith(`${state}.`)));
  return leaves.map((leaf) => leaf.split('.').join(' · ')).join(', ') || '–';
}

export function lookOf(actor: Pick<Actor, 'states' | 'projection'>): Look {
  const state = publicState(actor.states);
  const isAtRest = state === 'exited' && actor.projection['exitCode'] === 0;
  return isAtRest ? { tone: 'neutral', shape: 'square' } : (looks[state] ?? unknown);
}
