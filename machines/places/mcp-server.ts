import type { Places } from './types.ts';

export const mcpServer: Places = {
  laptop: [
    'disabled connecting       .              ready            deciding',
    '.        aborting.killing aborting.stuck clearing         backingOff',
    '.        .                .              needsLogin       failed',
    'stopped  closing          terminating    stopping.killing stopping.stuck',
  ],
  phone: [
    'disabled         connecting       .',
    '.                aborting.killing aborting.stuck',
    'ready            clearing         deciding',
    '.                .                backingOff',
    '.                needsLogin       failed',
    'closing          terminating      stopped',
    'stopping.killing stopping.stuck   .',
  ],
};
