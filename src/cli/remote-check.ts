/** Connects to a machine by the user's `ssh`, with prompts at a terminal, before its host is in the settings. */
import type { Readable } from 'node:stream';
import {
  addressCommand,
  HostFailure,
  nextStep,
  type RemoteEnd,
  remoteAddressIn,
  requireVersion,
  sshEnvironment,
  startFailure,
} from '../hosts/index.ts';
import { runProgram } from '../supervise/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

/** Time limit of a call without a terminal. At a terminal, ssh may wait for its user. */
const connectMs = 60_000;
const outputBytes = 65_536;

/** Host that the user wants to add. */
export interface RequestedHost {
  readonly name: string;
  readonly ssh: string;
  readonly program: string;
}

export interface SshCall {
  /** `ssh://me@box` */
  readonly ssh: string;
  /** Command for the remote shell, without remote text. */
  readonly command: string;
  readonly stdin?: Readable;
  /** Called with the whole standard output so far. */
  readonly onOutput?: (stdout: string) => void;
  readonly timeoutMs?: number;
}

/** Runs one command on another machine. @throws HostFailure when `ssh` cannot be run; the reason of `signal` when it aborts */
export async function callSsh({ env, signal, output }: CommandContext, call: SshCall): Promise<RemoteEnd> {
  const canPrompt = process.stdin.isTTY === true && output.isTTY;
  let stdout = '';
  let stderr = '';
  const timeoutMs = call.timeoutMs ?? (canPrompt ? undefined : connectMs);
  const end = await runProgram({
    program: 'ssh',
    args: [
      ...['-T', '-a', '-x', '-o', 'RemoteCommand=none', '-o', 'ClearAllForwardings=yes', '-o', 'ConnectTimeout=30'],
      ...['-o', 'ServerAliveInterval=4', '-o', 'ServerAliveCountMax=3', '-o', 'LogLevel=ERROR'],
      ...[...(canPrompt ? [] : ['-o', 'BatchMode=yes']), '--', call.ssh, call.command],
    ],
    ...{ env: sshEnvironment(env), signal, group: 'callers' },
    timeoutMs,
    ...(call.stdin ? { stdin: call.stdin } : canPrompt && { stdin: 'inherit' }),
    stdout: (chunk) => {
      stdout = (stdout + chunk.toString()).slice(0, outputBytes);
      call.onOutput?.(stdout);
    },
    stderr: (chunk) => {
      stderr = (stderr + chunk.toString()).slice(-outputBytes);
    },
  }).catch((error: unknown): never => {
    signal.throwIfAborted();
    throw startFailure(error);
  });
  signal.throwIfAborted();
  if (end.cause === 'timedOut')
    throw new HostFailure(null, `${call.ssh} did not answer within ${Number(timeoutMs) / 1_000} s.`);
  return { exitCode: end.exitCode, stdout, stderr };
}

/** Requests the address of the remote Hub once. @returns the failure, or the remote version */
export async function checkHost(
  context: CommandContext,
  { ssh, program }: Pick<RequestedHost, 'ssh' | 'program'>,
): Promise<HostFailure | string> {
  try {
    const { version } = remoteAddressIn(await callSsh(context, { ssh, command: addressCommand(program) }));
    requireVersion(version);
    return version;
  } catch (error) {
    if (error instanceof HostFailure) return error;
    throw error;
  }
}

/** Error for a host that was not added. */
export function hostRefused(failure: HostFailure, host: RequestedHost): CliError {
  // The host is not in the settings yet, so it cannot be enabled.
  const { refusal, message } = failure;
  const { name, ssh, program } = host;
  const again = ['oratorio hosts add', ssh, '--name', name, ...(program === 'oratorio' ? [] : ['--program', program])];
  const hint = nextStep(failure, { name, ssh, command: again.join(' ') }) ?? `Test: ssh ${ssh} true`;
  const words = message.replace(/\.?$/, '.');
  return new CliError('precondition', `${name}: ${words}`, hint, refusal ?? 'hostUnreachable', { host: name });
}
