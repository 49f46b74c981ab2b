import * as v from 'valibot';
import { BackgroundProcessInfo } from '../protocol/index.ts';
import type { Conversation } from './conversation.ts';
import type { Output } from './output.ts';
import { inLine } from './render.ts';

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

const chatCommands: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: '',
    summary: 'shows these commands',
    run: (_, __, output) => {
      for (const [name, { usage, summary }] of Object.entries(chatCommands)) {
        output.line(`  ${`/${name} ${usage}`.trim().padEnd(18)} ${output.colors.dim(summary)}`);
      }
      return undefined;
    },
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
  exit: { usage: '', summary: 'leaves the conversation, as Ctrl-D does', run: () => undefined },
};

/** Runs a line that is a command of the conversation. @returns the prompt that the line stands for; empty: none */
export async function runChatCommand(line: string, conversation: Conversation, output: Output): Promise<string> {
  const [name = '', ...words] = line.split(/\s+/);
  const command = name.startsWith('/') && Object.hasOwn(chatCommands, name.slice(1)) && chatCommands[name.slice(1)];
  if (!command) return line;
  return (await command.run(words, conversation, output)) ?? '';
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
