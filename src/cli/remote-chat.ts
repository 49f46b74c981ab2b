import { hostFiles, overControl, programWord, sshEnvironment } from '../hosts/index.ts';
import { shellWord } from '../lib/index.ts';
import { runProgram } from '../supervise/index.ts';
import type { CommandContext } from './command.ts';
import { withHub } from './hub.ts';
import { hostNamed, notConnected } from './remote.ts';
import type { RemoteWorkspace } from './workspace.ts';

/** Options of `chat` that are passed on with their values. */
const passed = ['thread', 'model', 'effort'] as const;
const switches = ['plan', 'yes'] as const;

/** Command line for the remote shell that opens the same conversation. */
export function remoteChatCommand(
  program: string,
  path: string,
  { options, argument }: Pick<CommandContext, 'options' | 'argument'>,
): string {
  const words = [
    ...['chat', '--workspace', path],
    ...passed.flatMap((name) => (typeof options[name] === 'string' ? [`--${name}`, options[name]] : [])),
    ...switches.flatMap((name) => (options[name] === true ? [`--${name}`] : [])),
    ...(argument === undefined ? [] : ['--', argument]),
  ];
  return [programWord(program), ...words.map(shellWord)].join(' ');
}

/**
 * Chats with a workspace of another machine: runs the remote program at this terminal, over the connection of the Hub. When the
 * connection is lost, the turn continues.
 */
export async function chatOnHost(context: CommandContext, { host: name, path }: RemoteWorkspace): Promise<number> {
  const { home, env, signal } = context;
  const host = await withHub(context, ({ hub }) => hostNamed(hub, name, context));
  if (host.state !== 'connected') throw notConnected(host);
  const command = remoteChatCommand(host.program, path, context);
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const { control } = hostFiles(home, name);
  const { exitCode } = await runProgram({
    program: 'ssh',
    args: [...overControl(control), isTerminal ? '-t' : '-T', '--', host.ssh, command],
    ...{ env: sshEnvironment(env), signal, stdin: 'inherit', stdout: 1, stderr: 2, group: 'callers' },
  });
  return exitCode ?? 1;
}
