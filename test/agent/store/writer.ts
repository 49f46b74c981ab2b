/**
 * Writes a conversation into the store of the directory it is given, for ever, and says so after each commit: one line
 * of JSON. With a limit of the file size (`ulimit -f`) it prints the error of the store at the limit, and the content that
 * can still be read. Its parent kills it.
 */
import { writeSync } from 'node:fs';
import { openStore } from '../../../src/agent/store/index.ts';
import { StorageError } from '../../../src/agent/thread-store.ts';
import { event, message, piece, pieces, type Refused, type Said, said, thread, turn } from './helpers.ts';

const piecesPerTurn = 20;

const [, , directory, threadId] = process.argv;
if (directory === undefined || threadId === undefined) throw new Error('give a directory and the id of a thread');
/** A disk may take a small write after it has refused traces: those are announced only as far as none was refused. */
let hasRefusedTraces = false;
const { threads, traces } = openStore(directory, {
  onFault: () => {
    hasRefusedTraces = true;
  },
});
/** A pipe whose reader is slow may ask to be tried again. */
function say(what: Said | Refused): void {
  const line = Buffer.from(`${JSON.stringify(what)}\n`);
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(1, line, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

function converse(threadId: string): never {
  let traced = 0;
  for (let number = 1; ; number += 1) {
    const answer = number * 2;
    threads.transaction(() => {
      threads.putTurn(turn(threadId, number, { status: 'running' }));
      threads.putItem(threadId, said(number, answer - 1, 'go on'));
      threads.putItem(threadId, message(number, answer, '', { status: 'streaming' }));
    });
    say({ turn: number, pieces: 0, isEnded: false, traces: traced });
    for (let count = 0; count < piecesPerTurn; count += 1) {
      threads.appendItemText(threadId, `item_${answer}`, piece(count));
      say({ turn: number, pieces: count + 1, isEnded: false, traces: traced });
    }
    for (let count = 0; count < 50; count += 1) traces.append(event(threadId, { data: { text: 'x'.repeat(200) } }));
    traces.flush();
    if (!hasRefusedTraces) traced += 50;
    threads.transaction(() => {
      threads.putItem(threadId, message(number, answer, pieces(piecesPerTurn)));
      threads.putTurn(turn(threadId, number));
    });
    say({ turn: number, pieces: piecesPerTurn, isEnded: true, traces: traced });
  }
}

function codeOf(work: () => void): string {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof StorageError) return error.code;
    throw error;
  }
}

// Else the signal that comes with a file too long would end us before the error does.
process.on('SIGXFSZ', () => {});
threads.putThread(thread(threadId));
const code = codeOf(() => converse(threadId));
const again = codeOf(() => threads.putThread(thread('another', { displayName: 'x'.repeat(200_000) })));
say({ code, again, turns: threads.turns(threadId, { limit: 100_000 }).length });
