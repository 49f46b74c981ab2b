import { createInterface, type Interface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import * as v from 'valibot';
import type { AppServerClientOptions } from '../client/index.ts';
import { count, foldBlankLines } from '../lib/index.ts';
import {
  type ApprovalDecision,
  ApprovalRequest,
  answersTo,
  decisionWord,
  hazardsOf,
  placeInWords,
  placeOf,
  type QuestionAnswer,
  type QuestionRequest,
} from '../protocol/index.ts';
import type { Output } from './output.ts';
import { askFields } from './questions.ts';
import { inLine } from './render.ts';

export interface ResolvedRequest {
  readonly requestId: string;
  readonly decision: string;
  readonly decidedBy?: string | undefined;
  /** Program through which a user decided. */
  readonly client?: string | undefined;
}

export type Approver = NonNullable<AppServerClientOptions['onRequest']> & {
  /** No user is there: the agent cannot ask questions. */
  readonly isUnattended?: boolean;
  /** Asks a person a question; undefined: it was answered elsewhere. Absent: this client answers none. */
  readonly asked?: (request: QuestionRequest) => Promise<QuestionAnswer | undefined>;
  /** Withdraws a question that another client, the policy or a deadline has decided. */
  readonly resolved?: (request: ResolvedRequest) => void;
  /** Withdraws all questions after the loss of the connection: the next connection asks them again. */
  readonly withdraw?: () => void;
};

type Question = Pick<
  ApprovalRequest,
  'tool' | 'operation' | 'target' | 'workingDirectory' | 'covers' | 'reason' | 'diff' | 'scopeKey' | 'proposedRule'
> &
  Partial<Pick<ApprovalRequest, 'approvalType' | 'until'>>;
type Painted = Pick<Output, 'colors' | 'question' | 'note'>;

const declined = { decision: 'decline' satisfies ApprovalDecision, unattended: true };

/** Declines every request, because no user is there to ask, and prints each operation that `--yes` would have allowed. */
export const declineUnattended = (output: Pick<Output, 'warn'>): Approver => {
  const onRequest: Approver = (method, params) => {
    const request = v.safeParse(ApprovalRequest, params);
    if (method === 'item/approval/request' && request.success) {
      const { operation, target, workingDirectory } = request.output;
      const place = workingDirectory === undefined ? '' : ` in ${workingDirectory}`;
      output.warn(`Declined: needs approval; use --yes. ${inLine(`${operation} ${target}${place}`)}`);
    }
    return declined;
  };
  return Object.assign(onRequest, { isUnattended: true });
};

const decisions: Readonly<Record<string, ApprovalDecision>> = {
  y: 'accept',
  yes: 'accept',
  s: 'acceptForSession',
  a: 'acceptAlways',
  n: 'decline',
  no: 'decline',
  c: 'cancel',
  now: 'now',
};

/** Shows the words, then returns the typed line. Only the last line is the prompt, which a terminal may draw again. */
async function askAtPrompt(terminal: Interface, output: Writable, words: string, signal: AbortSignal): Promise<string> {
  const at = words.lastIndexOf('\n') + 1;
  output.write(words.slice(0, at));
  return terminal.question(words.slice(at), { signal });
}

/** `Allowed in an editor, until this conversation ends.` */
function resolvedWords({ requestId, decision, decidedBy, client }: ResolvedRequest): string {
  if (decision === 'cancel') return 'No longer needed: the turn has ended.';
  const isUnanswered = decidedBy === 'policy' || decidedBy === 'timeout';
  const place = client === undefined ? 'elsewhere' : inLine(placeInWords(placeOf(client)));
  const where = isUnanswered ? 'without an answer' : place;
  const scopes: Readonly<Record<string, string>> = {
    acceptForSession: ', until this conversation ends',
    acceptAlways: ', in every conversation of this workspace',
  };
  return `${decisionWord(decision, requestId)} ${where}${scopes[decision] ?? ''}.`;
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
      const decision = decisions[(await answered).trim().toLowerCase()];
      const isOffered = answersTo(request.output).some((offered) => offered.decision === decision);
      return { decision: isOffered && decision ? decision : ('decline' as const) };
    } catch (error) {
      if (!withdrawing.signal.aborted) throw error;
      // The server has forgotten the request and drops this answer.
      return declined;
    } finally {
      open.delete(requestId);
    }
  };
  const asked = async ({ requestId, question }: QuestionRequest): Promise<QuestionAnswer | undefined> => {
    if (open.has(requestId)) return undefined;
    const withdrawing = new AbortController();
    const { signal } = withdrawing;
    open.set(requestId, withdrawing);
    const answered = line.then(() => {
      signal.throwIfAborted();
      return askFields(question, (words) => ask(words, signal), output);
    });
    line = answered.catch(() => undefined);
    try {
      return await answered;
    } catch (error) {
      if (!signal.aborted) throw error;
      return undefined;
    } finally {
      open.delete(requestId);
    }
  };
  const resolved = (request: ResolvedRequest) => {
    const withdrawing = open.get(request.requestId);
    if (!withdrawing || withdrawing.signal.aborted) return;
    withdrawing.abort();
    output.note(output.colors.dim(resolvedWords(request)));
  };
  const withdraw = () => {
    for (const withdrawing of open.values()) withdrawing.abort();
  };
  return Object.assign(onRequest, { resolved, asked, withdraw });
}

/**
 * The words of a question: every line of the target and of its change behind a gutter, the directory, the reason, and the scope of
 * each answer, in the words of the page.
 * Foreign text stands on lines that begin with the gutter or a label, so that it cannot imitate a question.
 */
export function questionOf(question: Question, { colors }: Pick<Output, 'colors'>): string {
  const { tool, operation, target, workingDirectory, reason, diff, until } = question;
  const { yellow, bold, dim } = colors;
  const gutter = dim('  │ ');
  const words = until === undefined ? `May the agent ${bold(inLine(operation))} this?` : quotaWords(operation);
  return [
    '',
    `${yellow('?')} ${words} ${dim(`(${inLine(tool)})`)}`,
    ...foldBlankLines(target)
      .split('\n')
      .map((line) => `${gutter}${bold(inLine(foldBlanks(line)))}`),
    ...(diff === undefined ? [] : changeLines(diff, colors).map((line) => gutter + line)),
    ...hazardsIn(question).map((words) => `  ${dim('risk')}       ${words}`),
    ...(workingDirectory === undefined ? [] : [`  ${dim('directory')}  ${inLine(workingDirectory)}`]),
    ...(reason === undefined ? [] : [`  ${dim('reason')}     ${inLine(reason)}`]),
    ...lengthOf(target).map((words) => `  ${dim('length')}     ${inLine(words)}`),
    ...answersTo(question).map(
      ({ decision, label, means }) => `  ${keyNames[decision].padEnd(9)}  ${inLine(label)}${dim(`: ${inLine(means)}`)}`,
    ),
    '  › ',
  ].join('\n');
}

const quotaWords = (operation: string): string =>
  operation === 'continue' ? 'The turn waits for a quota. Continue now?' : 'A quota is used up. May the turn wait?';

/** Dangers of a request, as the page shows them. */
const hazardsIn = ({ approvalType, ...request }: Question): readonly string[] =>
  approvalType === undefined ? [] : hazardsOf({ ...request, approvalType });

/** Keys of the answers, as the question shows them. */
const keyNames: Readonly<Record<ApprovalDecision, string>> = {
  accept: '[y]es',
  acceptForSession: '[s]ession',
  acceptAlways: '[a]lways',
  decline: '[n]o',
  cancel: '[c]ancel',
  now: '[now]',
};

/** A unified diff, coloured. */
export function diffLines(diff: string, { green, red, cyan, bold, dim }: Output['colors']): string[] {
  const paints: Readonly<Record<string, (text: string) => string>> = { '+': green, '-': red, '@': cyan };
  const paintOf = (line: string) => (/^(?:diff |--- |\+\+\+ )/.test(line) ? bold : (paints[line.charAt(0)] ?? dim));
  return diff.split('\n').map((line) => paintOf(line)(inLine(line)));
}

/** Lines of the diff of one file whose name is shown already. */
export const changeLines = (diff: string, colors: Output['colors']): string[] =>
  diffLines(diff.startsWith('--- ') ? diff.split('\n').slice(2).join('\n') : diff, colors);

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
