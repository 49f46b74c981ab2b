import type { Places } from './types.ts';

export const move: Places = {
  laptop: [
    'asking   preparing offering    sending   committing',
    'waiting  .         .           .         finishing',
    'choosing withdrawing releasing .         .',
    '.        unconfirmed cancelled .         moved',
  ],
  phone: [
    'asking    waiting   choosing',
    'preparing .         withdrawing',
    'offering  .         releasing',
    'sending   .         cancelled',
    'committing finishing unconfirmed',
    '.         moved     .',
  ],
};
