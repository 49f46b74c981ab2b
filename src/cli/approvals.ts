import { createInterface, type Interface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import * as v from 'valibot';
import type { AppServerClientOptions } from '../client/index.ts';
import { count, foldBlankLines } from '../lib/index.ts';
import { type ApprovalDecision, ApprovalRequest, placeInWords, placeOf } from '../protocol/index.ts';
import type { Output } from './output.ts';
import { inLine } from './render.ts';

export type Approver = NonNullable<AppServerClientOptions['onRequest']> & {
  /** Withdraws a question that another client, the policy or a deadline has decided. */
  readonly resolved?: (requestId: string, decision: string, client?: string) => void;
};

type Question = Pick<
  ApprovalRequest,
  'tool' | 'operation' | 'target' | 'workingDirectory' | 'covers' | 'reason' | 'scopeKey' | 'proposedRule'
>;
type Painted = Pick<Output, 'colors' | 'question' | 'note'>;

const declined = { decision: 'decline' satisfies ApprovalDecision, unattended: true };

/** Declines every request, because no user is there to ask, and prints each operation that `--yes` would have allowed. */
export const declineUnattended =
  (output: Pick<Output, 'warn'>): Approver =>
  (method, params) => {
    const request = v.safeParse(ApprovalRequest, params);
    if (method === 'item/approval/request' && request.success) {
      const { operation, target, workingDirectory } = request.output;
      const place = workingDirectory === undefined ? '' : ` in ${workingDirectory}`;
      output.warn(`Declined: needs approval; use --yes. ${inLine(`${operation} ${target}${place}`)}`);
    }
    return declined;
  };

const decisions: Readonly<Record<string, ApprovalDecision>> = {
  y: 'accept',
  yes: 'accept',
  s: 'acceptForSession',
  a: 'acceptAlways',
  n: 'decline',
  no: 'decline',
  c: 'cancel',
};

/** Shows the words, then returns the typed line. Only the last line is the prompt, which a terminal may draw again. */
async function askAtPrompt(terminal: Interface, output: Writable, words: string, signal: AbortSignal): Promise<string> {
  const at = words.lastIndexOf('\n') + 1;
  output.write(words.slice(0, at));
  return terminal.question(words.slice(at), { signal });
}

/** `Allowed in an editor, until the thread ends.` */
function resolvedWords(decision: string, client: string | undefined): string {
  if (decision === 'cancel') return 'No longer needed: the turn has ended.';
  const where = client === undefined ? 'elsewhere' : inLine(placeInWords(placeOf(client)));
  const scopes: Readonly<Record<string, string>> = {
    acceptForSession: ', until the thread ends',
    acceptAlways: ', in every thread of this workspace',
  };
  return `${decision.startsWith('accept') ? 'Allowed' : 'Declined'} ${where}${scopes[decision] ?? ''}.`;
}

/** Asks a person; `ask` shows the words and returns the typed line, until its signal aborts. One question at a time. */
export function askPerson(ask: (words: string, signal: AbortSignal) => Promise<string>, output: Painted): Approver {
  let line: Promise<unknown> = Promise.resolve();
  const open = new Map<string, AbortController>();
  const onRequest = async (method: string, params: unknown) => {
    const request = v.safeParse(ApprovalRequest, params);
    if (method !== 'item/approval/request' || !request.success) return declined;
    const { requestId } = request.output;
    const withdrawing = new AbortController();
    open.set(requestId, withdrawing);
    const words = output.question(questionOf(request.output, output));
    const answered = line.then(() => {
      withdrawing.signal.throwIfAborted();
      return ask(words, withdrawing.signal);
    });
    line = answered.catch(() => undefined);
    try {
      return { decision: decisions[(await answered).trim().toLowerCase()] ?? ('decline' as const) };
    } catch (error) {
      if (!withdrawing.signal.aborted) throw error;
      // The server has forgotten the request and drops this answer.
      return declined;
    } finally {
      open.delete(requestId);
    }
  };
  const resolved = (requestId: string, decision: string, client?: string) => {
    const withdrawing = open.get(requestId);
    if (!withdrawing || withdrawing.signal.aborted) return;
    withdrawing.abort();
    output.note(output.colors.dim(resolvedWords(decision, client)));
  };
  return Object.assign(onRequest, { resolved });
}

/**
 * The words of a question: every line of the target behind a gutter, the directory, the reason, and the scope of each answer.
 * Foreign text stands on lines that begin with the gutter or a label, so that it cannot imitate a question.
 */
export function questionOf(
  { tool, operation, target, workingDirectory, covers, reason, scopeKey, proposedRule }: Question,
  { colors }: Pick<Output, 'colors'>,
): string {
  const { yellow, bold, dim } = colors;
  const gutter = dim('  │ ');
  const thing = covers ?? scopeKey;
  const always = proposedRule ? `commands that begin with: ${proposedRule.prefix.join(' ')}` : thing;
  return [
    '',
    `${yellow('?')} May the agent ${bold(inLine(operation))} this? ${dim(`(${inLine(tool)})`)}`,
    ...foldBlankLines(target)
      .split('\n')
      .map((line) => `${gutter}${bold(inLine(foldBlanks(line)))}`),
    ...(workingDirectory === undefined ? [] : [`  ${dim('directory')}  ${inLine(workingDirectory)}`]),
    ...(reason === undefined ? [] : [`  ${dim('reason')}     ${inLine(reason)}`]),
    ...lengthOf(target).map((words) => `  ${dim('length')}     ${inLine(words)}`),
    `  [y]es      ${dim('once: this call only')}`,
    `  [s]ession  ${dim(`session: ${inLine(thing)}, until the thread ends`)}`,
    `  [a]lways   ${dim(`always: ${inLine(always)}, in every thread of this workspace`)}`,
    `  [n]o       ${dim('decline')}`,
    `  [c]ancel   ${dim('decline and end the turn')}`,
    '  › ',
  ].join('\n');
}

/** Characters of a target that needs no repetition, and of the beginning that is repeated. */
const inSight = { target: 200, beginning: 80 };

/** A run of blanks is its number: it cannot push the rest of a line out of sight. */
const foldBlanks = (line: string): string => line.replace(/[\p{Zs}\t\u2800]{40,}/gu, (run) => ` ␣ × ${run.length} `);

/** Length and beginning of a long target, whose beginning is out of sight beside the answers. */
function lengthOf(target: string): readonly string[] {
  const lines = target.split('\n');
  if (lines.length === 1 && target.length <= inSight.target) return [];
  const length = lines.length === 1 ? count(target.length, 'character') : count(lines.length, 'line');
  const first = foldBlanks(lines[0] ?? '');
  const beginning = first.length > inSight.beginning ? `${first.slice(0, inSight.beginning)}…` : first;
  return [`${length}, beginning with: ${beginning}`];
}

/** Asks at the terminal for one answer only: for commands that hold no conversation. */
export function askAt(input: Readable, stderr: Writable, output: Painted): Approver {
  return askPerson(async (words, signal) => {
    const terminal = createInterface({ input, output: stderr });
    try {
      return await askAtPrompt(terminal, stderr, words, signal);
    } finally {
      terminal.close();
    }
  }, output);
}
