import * as v from 'valibot';
import { notCoveredLines, turnDiff, uncoveredBefore, uncoveredLines, undoTurns } from '../../client/index.ts';
import { closestOf, count, messageOf, price } from '../../lib/index.ts';
import { BackgroundProcessInfo, noTurnWords, takenBackWords, threadName } from '../../protocol/index.ts';
import { diffLines } from '../approvals.ts';
import type { Conversation } from '../conversation.ts';
import { CliError } from '../errors.ts';
import type { Output } from '../output.ts';
import { columns, inLine } from '../render.ts';
import { commandIn, linesOf, refusalOf, restoreArguments } from '../restores.ts';

/** A command of `oratorio chat`, beside the prompt commands of the workspace. */
interface ChatCommand {
  /** Words after the name, as the help shows them. */
  readonly usage: string;
  readonly summary: string;
  /** @returns a prompt for the agent; absent: none */
  readonly run: (
    words: readonly string[],
    conversation: Conversation,
    output: Output,
  ) => Promise<string | undefined> | string | undefined;
}

/** Lines that end the conversation. */
export const leaving: ReadonlySet<string> = new Set(['/quit', '/exit']);

const chatCommands: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: '',
    summary: 'shows these commands',
    run: (_, __, output) => {
      for (const [name, { usage, summary }] of Object.entries(chatCommands)) {
        output.line(`  ${`/${name} ${usage}`.trim().padEnd(18)} ${output.colors.dim(summary)}`);
      }
      output.line(
        output.colors.dim('  A backslash at the end of a line, or Ctrl-J, begins another line of the message.'),
      );
      return undefined;
    },
  },
  model: {
    usage: '[NAME]',
    summary: 'shows the models, or uses this one from now on',
    run: ([name], conversation, output) =>
      name === undefined ? listModels(conversation, output) : useModel(name, conversation, output),
  },
  undo: {
    usage: '[TURNS] [force]',
    summary: 'takes back the last turns with their files; force overwrites later changes',
    run: (words, conversation, output) => undo(words, conversation, output),
  },
  compact: {
    usage: '',
    summary: 'summarises the older turns now',
    run: (_, conversation, output) => compact(conversation, output),
  },
  resume: {
    usage: '[THREAD]',
    summary: 'lists the conversations, or continues one',
    run: ([thread], conversation, output) =>
      thread === undefined ? listThreads(conversation, output) : resume(thread, conversation, output),
  },
  ps: {
    usage: '[stop ID]',
    summary: 'lists the background processes of the agent, or ends one',
    run: ([action, id], conversation, output) =>
      action === 'stop' && id !== undefined ? stop(id, conversation, output) : list(conversation, output),
  },
  plan: {
    usage: '[PROMPT|off]',
    summary: 'has the agent only read and end with a plan, until /accept or /plan off',
    run: (words, conversation, output) => {
      const isOff = words.join(' ') === 'off';
      conversation.mode = isOff ? 'default' : 'plan';
      output.note(output.colors.dim(isOff ? 'The agent may change things again.' : 'The agent only plans now.'));
      return isOff ? undefined : words.join(' ');
    },
  },
  accept: {
    usage: '[WORDS]',
    summary: 'accepts the plan: the agent carries it out',
    run: (words, conversation) => {
      conversation.mode = 'default';
      return ['The plan is accepted. Carry it out.', ...words].join(' ');
    },
  },
  new: {
    usage: '',
    summary: 'begins another conversation in this workspace',
    run: (_, conversation, output) => begin(conversation, output),
  },
  diff: {
    usage: '',
    summary: 'shows the changes of the last turn',
    run: (_, conversation, output) => diff(conversation, output),
  },
  cost: {
    usage: '',
    summary: 'shows the tokens and the cost of this conversation',
    run: (_, conversation, output) => cost(conversation, output),
  },
  quit: { usage: '', summary: 'leaves the conversation, as Ctrl-D does', run: () => undefined },
};

/**
 * Runs a line that is a command of the conversation. A path is not a command.
 *
 * @returns the prompt to send; empty: none
 * @throws CliError for an unknown command, which must not reach the model
 */
export async function runChatCommand(line: string, conversation: Conversation, output: Output): Promise<string> {
  const [, name, rest = ''] = /^\/([\w:.-]+)(?:\s+([\s\S]*))?$/.exec(line) ?? [];
  if (name === undefined) return line;
  const words = rest.split(/\s+/).filter((word) => word !== '');
  const command = Object.hasOwn(chatCommands, name) ? chatCommands[name] : undefined;
  if (!command) {
    const prompts = await promptCommands(conversation);
    if (prompts.includes(name)) return line;
    throw unknownCommand(name, [...Object.keys(chatCommands), ...prompts]);
  }
  return (await command.run(words, conversation, output)) ?? '';
}

const PromptCommands = v.object({ data: v.array(v.looseObject({ name: v.string() })) });

/** Names of the prompt commands of the workspace. */
async function promptCommands({ server }: Conversation): Promise<readonly string[]> {
  const { data } = v.parse(PromptCommands, await server.request('command/list', {}));
  return data.map(({ name }) => name);
}

function unknownCommand(name: string, known: readonly string[]): CliError {
  const closest = closestOf(name, known);
  const hint = closest === undefined ? '' : `Did you mean /${inLine(closest)}? `;
  return new CliError('usage', `There is no command /${inLine(name)}; nothing was sent.`, `${hint}All commands: /help`);
}

const ThreadWithProcesses = v.object({
  thread: v.object({ backgroundProcesses: v.optional(v.array(BackgroundProcessInfo), []) }),
});

async function list({ server, threadId }: Conversation, output: Output): Promise<undefined> {
  const { thread } = v.parse(ThreadWithProcesses, await server.request('thread/read', { threadId }));
  if (thread.backgroundProcesses.length === 0) output.line(output.colors.dim('No background processes.'));
  for (const { id, state, pid, exitCode, command } of thread.backgroundProcesses) {
    const how = exitCode === undefined ? '' : ` (exit code ${exitCode})`;
    output.line(inLine(`${id}  ${state}${how}  ${pid ?? '–'}  ${command}`));
  }
}

async function stop(processId: string, { server, threadId }: Conversation, output: Output): Promise<undefined> {
  await server.request('process/stop', { threadId, processId });
  output.line(output.colors.dim(inLine(`${processId} has ended.`)));
}

const Models = v.union([
  v.looseObject({ success: v.literal(true), models: v.array(v.looseObject({ id: v.string() })) }),
  v.looseObject({ success: v.literal(false), errorMessage: v.string() }),
]);

async function listModels({ server }: Conversation, output: Output): Promise<undefined> {
  const answer = v.parse(Models, await server.request('model/list'));
  if (!answer.success) throw new CliError('failure', `The models cannot be listed: ${answer.errorMessage}`);
  for (const { id } of answer.models) output.line(`  ${inLine(id)}`);
  output.line(output.colors.dim('  Use one with: /model NAME'));
}

async function useModel(model: string, { server, threadId }: Conversation, output: Output): Promise<undefined> {
  await server.request('thread/config/update', { threadId, config: { model } });
  output.note(output.colors.dim(inLine(`From now on this conversation uses ${model}.`)));
}

/** Undoes turns with their files, like `oratorio undo`. @throws CliError with the conflicts */
async function undo(words: readonly string[], { server, threadId }: Conversation, output: Output): Promise<undefined> {
  const count = words.find((word) => word !== 'force') ?? '1';
  const turns = Number(count);
  if (!Number.isInteger(turns) || turns < 1)
    throw new CliError('usage', `/undo takes a number of turns, not ${count}.`, 'For example: /undo 2');
  try {
    const uncovered = await uncoveredBefore(server, threadId, { turns });
    if (uncovered.turns === 0) throw new CliError('failure', noTurnWords);
    for (const line of uncoveredLines(uncovered)) output.note(output.colors.dim(line));
    const answer = await undoTurns(server, threadId, { turns, force: words.includes('force') });
    output.note(output.colors.dim(takenBackWords(uncovered.turns)));
    const back = commandIn({ options: {} }, ...restoreArguments(threadId, answer));
    for (const line of linesOf(answer, back)) output.note(output.colors.dim(line));
  } catch (error) {
    throw refusalOf(error, turns === 1 ? '/undo force' : `/undo ${turns} force`) ?? error;
  }
}

async function compact({ server, threadId }: Conversation, output: Output): Promise<undefined> {
  await server.request('thread/compact', { threadId });
  output.note(output.colors.dim('The older turns are summarised.'));
}

const Threads = v.looseObject({
  data: v.array(
    v.looseObject({
      id: v.string(),
      displayName: v.optional(v.string()),
      firstInput: v.optional(v.string()),
      lastActiveAt: v.optional(v.string(), ''),
    }),
  ),
});
/** Conversations that a list shows. */
const shownThreads = 10;

async function listThreads({ server, threadId }: Conversation, output: Output): Promise<undefined> {
  const { data } = v.parse(Threads, await server.request('thread/list'));
  const rows = data
    .slice(0, shownThreads)
    .map((thread) => [
      thread.id === threadId ? '*' : '',
      thread.id,
      thread.lastActiveAt.slice(0, 16).replace('T', ' '),
      threadName(thread),
    ]);
  for (const line of columns(['', 'THREAD', 'LAST ACTIVE (UTC)', 'NAME'], rows, output)) output.line(line);
}

async function resume(threadId: string, conversation: Conversation, output: Output): Promise<undefined> {
  try {
    await conversation.server.request('thread/resume', { threadId });
  } catch (error) {
    throw new CliError('failure', `${threadId} cannot be resumed: ${messageOf(error)}`, 'See: /resume');
  }
  conversation.threadId = threadId;
  output.note(output.colors.dim(inLine(`Continuing ${threadId}.`)));
}

async function begin(conversation: Conversation, output: Output): Promise<undefined> {
  await conversation.begin();
  output.note(output.colors.dim(inLine(`A new conversation: ${conversation.threadId}`)));
}

async function diff({ server, threadId }: Conversation, output: Output): Promise<undefined> {
  const answer = await turnDiff(server, threadId, { format: 'unified' });
  for (const line of notCoveredLines(answer.notCovered, answer.notCoveredTotal)) output.note(line);
  if (answer.files.length === 0 && answer.notCovered.length === 0) output.note('No files have changed.');
  for (const line of diffLines((answer.diff ?? '').trimEnd(), output.colors)) output.line(line);
  if (answer.isCut) output.note('More has changed than is shown.');
}

const ThreadCost = v.object({
  thread: v.looseObject({
    turns: v.optional(
      v.array(
        v.looseObject({
          tokenUsage: v.optional(v.looseObject({ totalTokens: v.number(), costUsd: v.optional(v.number()) })),
        }),
      ),
      [],
    ),
    hasOlderTurns: v.optional(v.boolean(), false),
  }),
});
/** Most turns in one response of the server. */
const mostTurns = 1_000;

async function cost({ server, threadId }: Conversation, output: Output): Promise<undefined> {
  const asked = { threadId, includeTurns: true, turnLimit: mostTurns };
  const { thread } = v.parse(ThreadCost, await server.request('thread/read', asked));
  const used = thread.turns.flatMap(({ tokenUsage }) => tokenUsage ?? []);
  const tokens = used.reduce((sum, { totalTokens }) => sum + totalTokens, 0);
  const usd = used.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
  const isPriced = used.some(({ costUsd }) => costUsd !== undefined);
  const spent = isPriced ? price(usd) : 'price unknown';
  const scope = thread.hasOlderTurns ? ` (last ${mostTurns} turns)` : '';
  output.line(`${tokens.toLocaleString('en-GB')} tokens · ${spent} · ${count(thread.turns.length, 'turn')}${scope}`);
}
