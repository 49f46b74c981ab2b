import type { Places } from './types.ts';

export const externalAgent: Places = {
  laptop: [
    'absent           starting         ready             working            cancelling',
    '.                exited.sweeping  deciding          unhealthy.killing  unhealthy.stuck',
    '.                resting          backingOff        .                  .',
    'retiring.closing retiring.killing retiring.stuck    retiring.sweeping  .',
    'stopping.closing stopping.killing stopping.stuck    stopping.sweeping  .',
  ],
  phone: [
    '.                 cancelling        ready',
    '.                 working           starting',
    'unhealthy.killing unhealthy.stuck   absent',
    'exited.sweeping   deciding          .',
    'resting           backingOff        .',
    'retiring.closing  retiring.killing  .',
    'retiring.sweeping .                 retiring.stuck',
    '.                 stopping.killing  stopping.closing',
    'stopping.sweeping .                 stopping.stuck',
  ],
};
