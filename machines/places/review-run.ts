import type { Places } from './types.ts';

export const reviewRun: Places = {
  laptop: [
    'interrupting .          backingOff awaitingWrites .',
    'reviewing    preparing  queued     .              .',
    'cancelling   .          drafting   publishing     .',
    'cancelled    superseded failed     givenBack      abandoned done',
  ],
  phone: [
    'interrupting .         .',
    'reviewing    drafting  backingOff',
    '.            .         .',
    'cancelling   preparing publishing',
    '.            queued    awaitingWrites',
    'cancelled    givenBack abandoned',
    'failed       superseded done',
  ],
};
