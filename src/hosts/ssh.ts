import { homedir } from 'node:os';
import { hostAndPort, shellWord } from '../lib/index.ts';
import { childEnvironment, PipedProcess, ProcessRecord, runProgram } from '../supervise/index.ts';
import { type HostFiles, removeSockets } from './directory.ts';
import { HostFailure, lastLine, sshFailure, startFailure } from './failure.ts';

export interface SshOptions {
  /** `ssh://me@box` */
  readonly target: string;
  readonly files: HostFiles;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onProblem: (error: unknown) => void;
}

export interface RemoteEnd {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Port that an address of HTTP leaves out. */
const httpPort = 80;

/** Printed by `ssh` itself after authentication. */
const connectedWord = 'oratorio-connected';
const stderrBytes = 8_192;
const answerBytes = 65_536;
const runMs = 40_000;
const forwardMs = 10_000;
const graceMs = 1_000;

/** Options on top of the user's configuration. They disable its prompts, forwards and commands. */
const masterOptions = [
  ...['BatchMode=yes', 'ServerAliveInterval=4', 'ServerAliveCountMax=3', 'ConnectTimeout=30', 'LogLevel=ERROR'],
  ...['ControlPersist=no', 'ClearAllForwardings=yes', 'ExitOnForwardFailure=no', 'RemoteCommand=none'],
  ...['StreamLocalBindMask=0177', 'StreamLocalBindUnlink=yes'],
  ...['PermitLocalCommand=yes', `LocalCommand=echo ${connectedWord}`],
];

const optionsOf = (options: readonly string[]): string[] => options.flatMap((option) => ['-o', option]);

/** Arguments for a call over the existing connection. The call reads no configuration and never opens a connection. */
export const overControl = (control: string): string[] => [
  ...['-F', 'none', '-S', control],
  ...optionsOf(['BatchMode=yes', 'ControlMaster=no', 'ProxyCommand=false', 'LogLevel=ERROR']),
];

/** Environment of `ssh`: the user's ssh agent, without secrets of Oratorio. */
export const sshEnvironment = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  childEnvironment(env, { pass: ['SSH_AUTH_SOCK', 'SSH_AGENT_PID', 'KRB5CCNAME'] });

/** Word of a remote shell for a program. A path that begins with `~/` is in the home of the remote user. */
export const programWord = (program: string): string =>
  program.startsWith('~/') ? `"$HOME"/${shellWord(program.slice(2))}` : shellWord(program);

/** Shell command that prints the address of the remote Hub. */
export const addressCommand = (program: string): string => `${programWord(program)} hub address --json --start`;

/** One `ssh` to a host, with its own control path. Ends with this process; after a kill, `endOrphanedSsh` ends it. */
export class SshConnection {
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<HostFailure>;
  readonly #process: PipedProcess;
  readonly #options: SshOptions;

  private constructor(process: PipedProcess, options: SshOptions) {
    this.#process = process;
    this.#options = options;
    this.ended = process.closed.then(() => sshFailure(process.stderr(stderrBytes)));
  }

  /** Resolves when `ssh` is authenticated. @throws HostFailure when `ssh` ends before; the reason of `signal` when it aborts */
  static async dial(options: SshOptions, signal: AbortSignal): Promise<SshConnection> {
    const { target, files, env, onProblem } = options;
    removeSockets(files);
    const process = await PipedProcess.start({
      command: 'ssh',
      args: ['-N', '-T', '-a', '-x', '-M', '-S', files.control, ...optionsOf(masterOptions), '--', target],
      cwd: homedir(),
      env: sshEnvironment(env),
      ...{ parentMarker: undefined, stderrBytes, sweepGraceMs: graceMs },
      record: new ProcessRecord(files.records, onProblem),
    }).catch((error: unknown): never => {
      throw startFailure(error);
    });
    const line = new SshConnection(process, options);
    try {
      await Promise.race([connected(process), line.ended.then((failure) => Promise.reject(failure)), aborted(signal)]);
    } catch (error) {
      await line.close();
      throw error;
    }
    return line;
  }

  /** Runs one command on the remote machine. @throws HostFailure when the command exceeds the time limit */
  async run(command: string, signal: AbortSignal): Promise<RemoteEnd> {
    const { target, files } = this.#options;
    return this.#ssh([...overControl(files.control), '-T', '--', target, command], runMs, signal);
  }

  /** Opens the tunnel from the local socket to a loopback address of the remote machine. @throws HostFailure */
  async forward({ hostname, port }: URL, signal: AbortSignal): Promise<void> {
    const { target, files } = this.#options;
    const forward = `${files.socket}:${hostAndPort({ host: hostname, port: Number(port) || httpPort })}`;
    const args = [...overControl(files.control), '-O', 'forward', '-L', forward, '--', target];
    const { exitCode, stderr } = await this.#ssh(args, forwardMs, signal);
    if (exitCode !== 0) throw new HostFailure(null, `ssh could not open the tunnel: ${lastLine(stderr)}`);
  }

  /** Resolves when all its processes have ended. */
  async close(): Promise<void> {
    this.#process.terminate();
    const timer = setTimeout(() => this.#process.kill(), graceMs);
    await this.#process.gone;
    clearTimeout(timer);
    removeSockets(this.#options.files);
  }

  async #ssh(args: readonly string[], timeoutMs: number, signal: AbortSignal): Promise<RemoteEnd> {
    let stdout = '';
    let stderr = '';
    const end = await runProgram({
      ...{ program: 'ssh', args, cwd: homedir(), env: sshEnvironment(this.#options.env), timeoutMs, signal },
      stdout: (chunk) => {
        stdout = (stdout + chunk.toString()).slice(0, answerBytes);
      },
      stderr: (chunk) => {
        stderr = (stderr + chunk.toString()).slice(-stderrBytes);
      },
      lingerMs: graceMs,
    });
    signal.throwIfAborted();
    if (end.cause === 'timedOut')
      throw new HostFailure(null, `The remote machine did not answer within ${timeoutMs / 1_000} s.`);
    return { exitCode: end.exitCode, stdout, stderr };
  }
}

function connected(process: PipedProcess): Promise<void> {
  return new Promise((resolve) => {
    let text = '';
    process.output.on('data', (chunk: Buffer) => {
      if (text.length > answerBytes) return;
      text += chunk.toString();
      if (text.includes(connectedWord)) resolve();
    });
  });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
}
