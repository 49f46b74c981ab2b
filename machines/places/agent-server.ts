import type { Places } from './types.ts';

export const agentServer: Places = {
  laptop: [
    'clearing       preparing        spawning       running      deciding',
    'replacingProxy proxying         probing        unhealthy    backingOff',
    'readyingPlace  aborting.killing aborting.stuck .            resting',
    'stopped        terminating      stopping.killing stopping.stuck givenUp',
    'asleep         settling         stoppingProxy  agreeing     .',
  ],
  phone: [
    'clearing       preparing        spawning',
    'replacingProxy proxying         probing',
    'readyingPlace  aborting.killing aborting.stuck',
    'stopped        running          deciding',
    'asleep         unhealthy        backingOff',
    '.              .                resting',
    '.              .                givenUp',
    'settling       terminating      stopping.killing',
    'stoppingProxy  agreeing         stopping.stuck',
  ],
};
