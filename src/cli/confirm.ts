import { createInterface } from 'node:readline/promises';
import type { Output } from './output.ts';

/** Whether a question can be asked: a person is at the keyboard and sees standard error. */
export const canConfirm = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Asks at the terminal; every answer but `y` or `yes` is no. @throws when `signal` aborts */
export async function confirm(output: Output, question: string, signal: AbortSignal): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline takes Ctrl-C away from the process.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const answer = await terminal.question(output.question(`${question} [y/N] `), { signal });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
