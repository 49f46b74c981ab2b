import type { Places } from './types.ts';

export const conversation: Places = {
  laptop: [
    'opening listening probing      empty        sending',
    '.       idle      running      interrupting interrupted',
    '.       none      fresh        answerable   deciding',
    '.       reconnecting refused   gone         .',
  ],
  phone: [
    'opening      .            .',
    'listening    probing      .',
    'empty        sending      .',
    'idle         running      .',
    'interrupted  interrupting .',
    'none         fresh        .',
    'deciding     answerable   .',
    'reconnecting refused      gone',
  ],
};
