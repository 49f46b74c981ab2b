import type { Places } from './types.ts';

export const turn: Places = {
  laptop: [
    'checkingEnd busy        compacting   .           confirming',
    'preparing   asking      inferring    retrying    scheduled',
    'beginning   securing    runningTools checking    budgetReached',
    'resuming    fallingBack reviewing    concluding  awaitingApproval',
    'storing     cancelling  .            .           .',
    '.           .           cancelled    failed      completed',
  ],
  phone: [
    'beginning     awaitingApproval .',
    'preparing     fallingBack      .',
    '.             .                compacting',
    'checking      inferring        .',
    'checkingEnd   concluding       reviewing',
    'resuming      runningTools     retrying',
    'budgetReached .                securing',
    'confirming    scheduled        .',
    'busy          asking           .',
    'cancelling    .                storing',
    'cancelled     failed           completed',
  ],
};
