import type { Places } from './types.ts';

export const automation: Places = {
  laptop: [
    'waiting  queued     starting   working',
    'deciding .          .          interrupting',
    'paused   finished   backingOff removed',
  ],
  phone: [
    'waiting  queued     .',
    'deciding starting   working',
    'paused   .          interrupting',
    'finished backingOff removed',
  ],
};
