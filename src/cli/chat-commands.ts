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
  readonly run: (words: readonly string[], conversation: Conversation, output: Output) => Promise<void> | void;
}

const chatCommands: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: '',
    summary: 'shows these commands',
    run: (_, __, output) => {
      for (const [name, { usage, summary }] of Object.entries(chatCommands)) {
        output.line(`  ${`/${name} ${usage}`.trim().padEnd(18)} ${output.colors.dim(summary)}`);
      }
    },
  },
  ps: {
    usage: '[stop ID]',
    summary: 'lists the background processes of the agent, or ends one',
    run: ([action, id], conversation, output) =>
      action === 'stop' && id !== undefined ? stop(id, conversation, output) : list(conversation, output),
  },
  exit: { usage: '', summary: 'leaves the conversation, as Ctrl-D does', run: () => undefined },
};

/** Runs a line that is a command of the conversation. @returns false: it is a prompt */
export async function runChatCommand(line: string, conversation: Conversation, output: Output): Promise<boolean> {
  const [name = '', ...words] = line.split(/\s+/);
  const command = name.startsWith('/') && Object.hasOwn(chatCommands, name.slice(1)) && chatCommands[name.slice(1)];
  if (!command) return false;
  await command.run(words, conversation, output);
  return true;
}

const ThreadWithProcesses = v.object({
  thread: v.object({ backgroundProcesses: v.optional(v.array(BackgroundProcessInfo), []) }),
});

async function list({ server, threadId }: Conversation, output: Output): Promise<void> {
  const { thread } = v.parse(ThreadWithProcesses, await server.request('thread/read', { threadId }));
  if (thread.backgroundProcesses.length === 0) output.line(output.colors.dim('No background processes.'));
  for (const { id, state, pid, exitCode, command } of thread.backgroundProcesses) {
    const how = exitCode === undefined ? '' : ` (exit code ${exitCode})`;
    output.line(inLine(`${id}  ${state}${how}  ${pid ?? '–'}  ${command}`));
  }
}

async function stop(processId: string, { server, threadId }: Conversation, output: Output): Promise<void> {
  await server.request('process/stop', { threadId, processId });
  output.line(output.colors.dim(inLine(`${processId} has ended.`)));
}
