import type { Places } from './types.ts';

export const apiProxy: Places = {
  laptop: [
    'spawning         probing              running          .              deciding',
    'aborting.killing aborting.stuck       unhealthy        .              backingOff',
    '.                ending.terminating   ending.killing   ending.stuck   resting',
    'stopped          stopping.terminating stopping.killing stopping.stuck givenUp',
  ],
  phone: [
    'spawning             probing          running',
    'aborting.killing     aborting.stuck   unhealthy',
    'ending.terminating   ending.killing   ending.stuck',
    'deciding             backingOff       .',
    'resting              givenUp          .',
    'stopping.terminating stopping.killing stopping.stuck',
    'stopped              .                .',
  ],
};
