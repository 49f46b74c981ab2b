import type { Places } from './types.ts';

export const webhookIngress: Places = {
  laptop: [
    'found    validating secret   ports    files',
    'enabled  recreate   start    validate .',
    'disabled removing   stopping undoing  damaged',
  ],
  phone: [
    'found      .        .',
    'validating secret   ports',
    'start      validate files',
    'recreate   .        .',
    'enabled    undoing  damaged',
    'disabled   removing stopping',
  ],
};
