import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type { AppServerClientOptions } from '../client/index.ts';
import type { ApprovalDecision } from '../protocol/index.ts';
import type { Output } from './output.ts';

export type Approver = NonNullable<AppServerClientOptions['onRequest']>;

/** Nobody is there to ask. */
export const declineAll: Approver = () => ({ decision: 'decline' satisfies ApprovalDecision });

const decisions: Readonly<Record<string, ApprovalDecision>> = {
  y: 'accept',
  yes: 'accept',
  s: 'acceptForSession',
  a: 'acceptAlways',
  n: 'decline',
  no: 'decline',
  c: 'cancel',
};

/** Asks a person; `question` puts the words to them and gives back what they type. One question at a time. */
export function askPerson(question: (words: string) => Promise<string>, { colors }: Pick<Output, 'colors'>): Approver {
  let line: Promise<unknown> = Promise.resolve();
  const { yellow, bold, dim } = colors;
  const choices = dim('[y]es, for this [s]ession, [a]lways here, [n]o, [c]ancel the turn');
  return (method, { operation, target }) => {
    if (method !== 'item/approval/request') return declineAll(method, {});
    const words = `\n${yellow('?')} May the agent ${String(operation)} ${bold(String(target))}?\n  ${choices} › `;
    const answered = line.then(() => question(words));
    line = answered.catch(() => undefined);
    return answered.then((answer) => ({ decision: decisions[answer.trim().toLowerCase()] ?? 'decline' }));
  };
}

/** Asks at the terminal for one answer only: for commands that hold no conversation. */
export function askAt(input: Readable, stderr: Writable, output: Pick<Output, 'colors'>): Approver {
  return askPerson(async (words) => {
    const terminal = createInterface({ input, output: stderr });
    try {
      return await terminal.question(words);
    } finally {
      terminal.close();
    }
  }, output);
}
