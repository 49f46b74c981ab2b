import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import * as v from 'valibot';
import type { HubClient, InboxHistoryAnswer, InboxItemAnswer } from '../../client/index.ts';
import { visible } from '../../lib/index.ts';
import {
  type ApprovalDecision,
  decisionWord,
  fieldsOf,
  type InboxAnswer,
  isAllowed,
  placeInWords,
  QuestionContent,
} from '../../protocol/index.ts';
import { changeLines } from '../approvals.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { clientInfo, withHub } from '../hub.ts';
import { askFields, fieldLines, questionLines } from '../questions.ts';
import { hostsOf } from '../remote.ts';
import { eventLine, inLine } from '../render.ts';

/** `oratorio inbox` */
export async function list(context: CommandContext): Promise<number> {
  const { output, options, signal } = context;
  return withHub(context, async ({ hub }) => {
    if (options['history'] === true) return history(context, hub);
    if (options['watch'] === true) return watch(context, hub);
    const items = await itemsOf(hub, signal);
    if (output.json) output.document(items);
    else if (items.length === 0) {
      output.line('Nothing waits for you.');
      for (const { state, displayName } of await hub.list({ signal }))
        if (state === 'starting')
          output.note(`${inLine(displayName)} is starting: its requests are listed when it runs.`);
    } else for (const item of items) for (const line of linesOf(item, context)) output.line(line);
    return exitCodes.ok.code;
  });
}

type ListedItem = InboxItemAnswer & { readonly host?: string | null; readonly asOf?: string | null };

/** Requests of this machine, and of all hosts if there are any. */
async function itemsOf(hub: HubClient, signal: AbortSignal): Promise<ListedItem[]> {
  return (await hostsOf(hub, signal)).length === 0 ? hub.inbox({ signal }) : hub.fleetInbox({ signal });
}

/** Name of a workspace, after the name of its host: an answer takes effect on that host. */
const placeOfItem = ({ host, displayName }: ListedItem): string =>
  typeof host === 'string' ? `${host}:${displayName}` : displayName;

/** Prints the present requests first; a request that arrives in between may be printed twice. */
async function watch({ output, signal }: CommandContext, hub: HubClient): Promise<number> {
  const allHosts = (await hostsOf(hub, signal)).length > 0;
  const events = hub.events({ signal, allHosts });
  const show = async (requestId?: string) => {
    for (const item of await itemsOf(hub, signal)) {
      if (requestId !== undefined && item.request.requestId !== requestId) continue;
      if (!output.json) for (const line of linesOf(item, { output })) output.line(line);
    }
  };
  await show();
  for await (const event of events) {
    if (event.kind !== 'inbox.added' && event.kind !== 'inbox.resolved') continue;
    if (output.json) output.jsonLine(event);
    else if (event.kind === 'inbox.added') await show(String(event.data['requestId']));
    else output.line(eventLine(event, output.colors));
  }
  return exitCodes.ok.code;
}

/** Prints the last decisions, newest first. */
async function history({ output, options, signal }: CommandContext, hub: HubClient): Promise<number> {
  const limit = Number(options['limit'] ?? 20);
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
    throw usageError('--limit must be a whole number from 1 to 1000.', 'inbox');
  const entries = await hub.inboxHistory({ limit, signal });
  if (output.json) output.document(entries);
  else if (entries.length === 0) output.line('No request was decided yet.');
  else for (const entry of entries) output.line(decisionLine(entry, output.colors));
  return exitCodes.ok.code;
}

const reasons: Readonly<Record<string, string>> = {
  expired: 'expired',
  turnEnded: 'withdrawn',
  agentServerEnded: 'withdrawn',
};

/** `allowed on a page`, `expired` */
const outcomeOf = ({ requestId, decision, decidedBy, reason }: InboxHistoryAnswer): string =>
  reasons[reason] ?? `${decisionWord(decision, requestId).toLowerCase()} ${placeInWords(decidedBy)}`;

/** `2026-01-01T12:00:09.000Z  allowed on a page  site  Exec: run npm test` */
function decisionLine(entry: InboxHistoryAnswer, { bold, dim }: CommandContext['output']['colors']): string {
  const { at, workspacePath, tool, operation, target } = entry;
  const what = inLine(outcomeOf(entry));
  return `${dim(inLine(at))}  ${bold(what)}  ${inLine(basename(workspacePath))}  ${inLine(`${tool}: ${operation} ${target}`)}`;
}

function linesOf(item: ListedItem, { output }: Pick<CommandContext, 'output'>): string[] {
  const { request } = item;
  const displayName = placeOfItem(item);
  const { bold, dim } = output.colors;
  const { requestId, tool, operation, target, workingDirectory, covers, reason, diff, proposedRule, expiresAt, until } =
    request;
  if (request.question) {
    const { question } = request;
    return [
      `${bold(inLine(requestId))}  ${inLine(displayName)}  ${inLine(tool)}: question`,
      ...questionLines(question, output.colors),
      ...fieldsOf(question).flatMap((field) => fieldLines(field, output.colors)),
      `  ${dim(`oratorio inbox answer ${inLine(requestId)} · expires at ${expiresAt}`)}`,
    ];
  }
  const facts = [
    ...(workingDirectory === undefined ? [] : [`in ${inLine(workingDirectory)}`]),
    ...(covers === undefined || until !== undefined ? [] : [`--for session: ${inLine(covers)}`]),
    ...(proposedRule ? [`--for always: commands that begin with ${inLine(proposedRule.prefix.join(' '))}`] : []),
    ...(reason === undefined ? [] : [inLine(reason)]),
    // The target has the time at which a turn that waits for a quota continues.
    ...(until !== undefined && operation === 'continue' ? [] : [`declined at ${expiresAt}`]),
    ...(typeof item.asOf === 'string' ? [`${item.host} is not connected, as of ${inLine(item.asOf)}`] : []),
  ];
  // Every line of a target is indented, so that none passes for a line of ours.
  const change = diff === undefined ? [] : changeLines(diff, output.colors);
  const shown = [...visible(target).split('\n'), ...change];
  return [
    `${bold(inLine(requestId))}  ${inLine(displayName)}  ${inLine(tool)}: ${inLine(operation)}`,
    ...shown.map((line) => `    ${line}`),
    `  ${dim(facts.join(' · '))}`,
  ];
}

const scopes: Readonly<Record<string, ApprovalDecision>> = {
  once: 'accept',
  session: 'acceptForSession',
  always: 'acceptAlways',
  now: 'now',
};

/** `oratorio inbox allow` */
export const allow = (context: CommandContext): Promise<number> =>
  answer(context, scopes[String(context.options['for'] ?? 'once')] ?? 'accept');

/** `oratorio inbox decline` */
export const decline = (context: CommandContext): Promise<number> =>
  answer(context, context.options['end-turn'] === true ? 'cancel' : 'decline');

/** `oratorio inbox answer` */
export const answerQuestion = (context: CommandContext): Promise<number> =>
  send(context, async ({ request }) => {
    const { question, requestId } = request;
    if (!question)
      throw new CliError('failure', `${requestId} is not a question.`, `Decide it: oratorio inbox allow ${requestId}`);
    const { content } = context.options;
    if (typeof content === 'string') return { action: 'accept', content: contentOf(content) };
    if (process.stdin.isTTY !== true || process.stderr.isTTY !== true)
      throw usageError('Without a terminal, --content is required.', 'inbox answer');
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
      const ask = (words: string) => terminal.question(words, { signal: context.signal });
      return await askFields(question, ask, context.output);
    } finally {
      terminal.close();
    }
  });

/** @throws CliError when the text is not JSON with answers by field */
function contentOf(text: string): QuestionContent {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), QuestionContent), text);
  if (parsed.success) return parsed.output;
  throw usageError(`--content must be JSON such as '{"Library":"zod"}'.`, 'inbox answer');
}

const answer = (context: CommandContext, decision: ApprovalDecision): Promise<number> =>
  send(context, async ({ request: { question, requestId } }) => {
    if (question && isAllowed(decision))
      throw new CliError('failure', `${requestId} is a question.`, `Answer it: oratorio inbox answer ${requestId}`);
    return { decision };
  });

type Given = Omit<InboxAnswer, 'client'>;

async function send(context: CommandContext, given: (item: InboxItemAnswer) => Promise<Given>): Promise<number> {
  const { argument, output, signal } = context;
  if (argument === undefined) throw usageError('The id of a request is missing. List them: oratorio inbox', 'inbox');
  return withHub(context, async ({ hub }) => {
    const item: ListedItem = one(await itemsOf(hub, signal), argument) ?? (await refuseDecided(context, hub, argument));
    const { workspaceId, request } = item;
    const { requestId, operation, target } = request;
    const { host } = item;
    const decided = { ...(await given(item)), client: clientInfo.name };
    const made =
      typeof host === 'string'
        ? await hub.answerOnHost(host, workspaceId, requestId, decided, { signal })
        : await hub.answerInbox(workspaceId, requestId, decided, { signal });
    const word = decisionWord(made.decision, requestId);
    if (output.json) output.document({ requestId, ...made });
    else output.line(`${word}: ${inLine(`${typeof host === 'string' ? `${host}: ` : ''}${operation} ${target}`)}`);
    return exitCodes.ok.code;
  });
}

/**
 * @returns undefined when no request waits under this id
 * @throws CliError when the id is the beginning of several
 */
function one(items: readonly ListedItem[], id: string): ListedItem | undefined {
  const exact = items.filter(({ request }) => request.requestId === id);
  const found = exact.length > 0 ? exact : items.filter(({ request }) => request.requestId.startsWith(id));
  const [only] = found;
  if (found.length <= 1) return only;
  throw new CliError(
    'failure',
    `${found.length} requests begin with ${id}.`,
    'List the waiting requests: oratorio inbox',
  );
}

/** Decisions that are searched for the id of a request that no longer waits. */
const searchedDecisions = 1_000;

/** @throws CliError with the decision, its time and the person's client, or that no request has this id */
async function refuseDecided({ signal }: CommandContext, hub: HubClient, id: string): Promise<never> {
  const entries = await hub.inboxHistory({ limit: searchedDecisions, signal });
  const entry = entries.find(({ requestId }) => requestId.startsWith(id));
  if (!entry) throw new CliError('failure', `No request ${id} waits.`, 'List the waiting requests: oratorio inbox');
  const { requestId, at, tool, operation, target } = entry;
  const what = `Request ${requestId} was ${outcomeOf(entry)} at ${at}: ${tool}: ${operation} ${target}`;
  const { decision, decidedBy, reason } = entry;
  const details = { requestId, decision, decidedBy, reason, at };
  throw new CliError('failure', inLine(what), 'See all decisions: oratorio inbox --history', 'alreadyDecided', details);
}
