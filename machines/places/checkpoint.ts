import type { Places } from './types.ts';

export const checkpoint: Places = {
  laptop: [
    'recovering markingDeath .    marking  pruning',
    '.          .            idle serving  .',
    'resting    releasing    .    planning applying',
    'closed     unusable     .    .        concluding',
  ],
  phone: [
    'recovering markingDeath serving',
    'marking    idle         releasing',
    'pruning    planning     resting',
    '.          applying     .',
    'unusable   concluding   .',
    'closed     .            .',
  ],
};
