import type { Places } from './types.ts';

export const host: Places = {
  laptop: [
    'disabled dialling       proving   listing current',
    'released waiting        .         .       behind',
    '.        .              .         .       .',
    'hostKey  authentication noProgram version notProven',
  ],
  phone: [
    'disabled  dialling  released',
    'waiting   proving   .',
    '.         listing   .',
    'behind    current   .',
    '.         .         .',
    'hostKey   authentication noProgram',
    'version   notProven .',
  ],
};
