/** Has the store of the directory `argv[2]` open, appends an event for every line it reads, and answers with the newest id. */
import { createInterface } from 'node:readline';
import { openStore } from '../../../src/agent/store/index.ts';
import { event } from './helpers.ts';

const { traces, close } = openStore(process.argv[2] ?? '');
createInterface({ input: process.stdin })
  .on('line', (line) => {
    traces.append(event(line, { type: 'turn.started', data: { text: line } }));
    traces.flush();
    console.log(traces.newestId);
  })
  .once('close', () => close());
