/** Counts one dollar after the other in the ledger `argv[2]` for the workspace `argv[3]`, with a dot after each, until it is killed. */
import { writeSync } from 'node:fs';
import { DayLedger } from '../../../src/agent/store/day-ledger.ts';

const [, , file = '', workspace = ''] = process.argv;
const ledger = new DayLedger({ file, workspace });
for (;;) {
  ledger.add(1);
  // Not `process.stdout`: once the pipe is full, it buffers the text, and a kill loses the buffer.
  writeSync(1, '.');
}
