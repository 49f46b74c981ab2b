import { randomBytes } from 'node:crypto';
import { markerVariable, type ProgramRun, RunningProgram } from '../../supervise/index.ts';
import { type Protocol, reviewEnvironment } from './environment.ts';
import { GitError } from './error.ts';
import type { GitLimits } from './limits.ts';
import { BoundedOutput, cleanText } from './output.ts';

/** One git command. */
export interface GitCall {
  readonly args: readonly string[];
  /** Repository of the command. It is always named, so that git never searches for one. */
  readonly gitDir?: string;
  readonly workTree?: string;
  readonly indexFile?: string;
  /** Paths in `args` are patterns; otherwise they are names. */
  readonly hasPathspecMagic?: boolean;
  readonly stdin?: string | Uint8Array;
  /** Bytes of standard output. */
  readonly maxBytes?: number;
  /** Too much output is an error unless it may be cut; the command ends in both cases. */
  readonly mayCut?: boolean;
  readonly timeoutMs?: number;
  /** Heap of the command. */
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal | undefined;
  /** Exit codes of regular results. */
  readonly answers?: readonly number[];
  readonly network?: NetworkAccess;
}

/** Network access of a command. */
export interface NetworkAccess {
  readonly protocol: Exclude<Protocol, 'none'>;
  readonly config: readonly (readonly [key: string, value: string])[];
  /** Texts removed from every message. */
  readonly secrets: readonly string[];
  /** Largest file that may be written. */
  readonly fileBytes: number;
}

/** Limits that the system enforces on a process. */
interface ProcessLimits {
  readonly memoryBytes: number;
  readonly fileBytes?: number | undefined;
}

export interface GitResult {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly isCut: boolean;
}

/** End of a failed git command: the cause of a `GitError`, which the caller judges. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Cleaned and bounded. */
  readonly stderr: string;

  constructor(exitCode: number | null, signal: string | null, stderr: string) {
    super(`exit ${exitCode ?? signal}: ${stderr}`);
    this.exitCode = exitCode;
    this.signal = signal;
    this.stderr = stderr;
  }
}

/** Standard error of a failed git command; empty for any other error. */
export function failureText(error: unknown): string {
  return error instanceof GitError && error.cause instanceof CommandFailure ? error.cause.stderr : '';
}

export interface GitRunnerOptions {
  readonly path: string;
  readonly emptyDirectory: string;
  readonly limits: GitLimits;
}

/** Signs that the machine lacks a resource that it may have later. */
const lackSigns = /No space left on device|Resource temporarily unavailable|Too many open files/i;
const memorySigns = /(?:fatal|error): .*(?:Out of memory|Cannot allocate memory)/i;
/** Exit code of the shell when there is no program of that name. */
const notFound = 127;
/** Limits the wait for pipes that a descendant holds open after git has ended. */
const lingerMs = 2_000;

/** Runs git, and nothing but git, each time in a separate environment and a separate process group. */
export class GitRunner {
  /** Marker of all our git processes. */
  readonly marker: string;
  readonly #options: GitRunnerOptions;
  readonly #running = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(options: GitRunnerOptions) {
    this.#options = options;
    const parent = process.env[markerVariable];
    this.marker = `${parent ? `${parent}/` : ''}git-${randomBytes(16).toString('hex')}`;
  }

  /**
   * Runs one command to its end.
   * @throws GitError `gitCommandFailed` (its cause is a `CommandFailure`), `gitTimedOut`, `gitMissing`; the reason of an aborted signal
   */
  async run(call: GitCall): Promise<GitResult> {
    call.signal?.throwIfAborted();
    const work = this.#run(call);
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  /** Standard output as text. */
  async text(call: GitCall): Promise<string> {
    return (await this.run(call)).stdout.toString('utf8');
  }

  /** Ends every command and waits for their ends; later ones fail. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
  }

  async #run(call: GitCall): Promise<GitResult> {
    const { limits } = this.#options;
    const timeoutMs = call.timeoutMs ?? limits.commandMs;
    const output = new BoundedOutput(call.maxBytes ?? limits.outputBytes, () => running.stop());
    const running = new RunningProgram({
      ...this.#programOf(call),
      ...{ timeoutMs, lingerMs, stdin: call.stdin },
      stdout: (chunk) => output.add(chunk),
      stderr: (chunk) => output.addError(chunk),
      signal: AbortSignal.any([this.#closing.signal, ...(call.signal ? [call.signal] : [])]),
    });
    const { cause, exitCode, signal } = await running.ended.catch((error: NodeJS.ErrnoException) => {
      throw new GitError('gitMissing', `git cannot be started (${error.code ?? error.message})`, { cause: error });
    });
    call.signal?.throwIfAborted();
    const name = call.args[0] ?? '';
    if (cause === 'timedOut') {
      throw new GitError('gitTimedOut', `git ${name} took longer than ${timeoutMs} ms`, { isRetryable: true });
    }
    if (cause === 'aborted') throw new GitError('gitCommandFailed', 'Git is shut down', { isRetryable: true });
    if (output.isCut) return this.#cut(output.bytes(), call);
    const said = cleanText(output.errors(), call.network?.secrets);
    const isAnswer = exitCode !== null && (exitCode === 0 || call.answers?.includes(exitCode));
    // When objects are missing, git complains, treats them as absent, and still answers.
    if (isAnswer && !/(^| )error: /.test(said)) return { exitCode, stdout: output.bytes(), isCut: false };
    throw failureOf(name, new CommandFailure(exitCode, signal, said));
  }

  #programOf(call: GitCall): Pick<ProgramRun, 'program' | 'args' | 'env' | 'cwd'> {
    const { args, gitDir, workTree, indexFile, memoryBytes, network } = call;
    const { path, emptyDirectory, limits } = this.#options;
    const env = reviewEnvironment({
      path,
      emptyDirectory,
      limits,
      protocol: network?.protocol ?? 'none',
      marker: { name: markerVariable, value: this.marker },
      config: network?.config ?? [],
      extra: {
        ...(gitDir !== undefined && { GIT_DIR: gitDir }),
        ...(workTree !== undefined && { GIT_WORK_TREE: workTree }),
        ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
        ...(call.hasPathspecMagic && { GIT_LITERAL_PATHSPECS: '0' }),
      },
    });
    const script = limitedGit({ memoryBytes: memoryBytes ?? limits.memoryBytes, fileBytes: network?.fileBytes });
    return { program: 'sh', args: ['-c', script, 'git', ...args], env, cwd: emptyDirectory };
  }

  #cut(stdout: Buffer, { args, mayCut = false }: GitCall): GitResult {
    if (mayCut) return { exitCode: 0, stdout, isCut: true };
    throw new GitError('gitCommandFailed', `git ${args[0]} printed more than ${stdout.length} bytes`);
  }
}

/**
 * A shell sets the limits, since Node cannot; `ulimit` counts memory in KiB and files in blocks of 512 bytes. The data segment
 * is limited, not the address space, in which large packs are mapped. Without its signal, git says that a file is too large.
 */
function limitedGit({ memoryBytes, fileBytes }: ProcessLimits): string {
  const memory = `ulimit -d ${Math.ceil(memoryBytes / 1_024)}`;
  const file = fileBytes === undefined ? '' : `trap "" XFSZ; ulimit -f ${Math.ceil(fileBytes / 512)} && `;
  return `${file}${memory} && exec git "$@"`;
}

function failureOf(name: string, failure: CommandFailure): GitError {
  const { exitCode, signal, stderr } = failure;
  if (exitCode === notFound && /not found/.test(stderr)) {
    return new GitError('gitMissing', 'git cannot be started (it was not found)', { cause: failure });
  }
  if (memorySigns.test(stderr)) {
    return new GitError('gitMemoryExceeded', `git ${name} needed more memory than it may have`, { cause: failure });
  }
  return new GitError('gitCommandFailed', `git ${name} failed: ${stderr || failure.message}`, {
    cause: failure,
    // A crash of git itself would come again; a kill from outside may not.
    isRetryable: signal === 'SIGKILL' || signal === 'SIGTERM' || lackSigns.test(stderr),
  });
}
