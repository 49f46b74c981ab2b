import { type ChildProcess, type StdioPipe, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { closeBeforeStart } from './inherited.ts';
import type { ProcessLogs } from './managed.ts';

/** The document a redactor reads from standard input. */
export interface RedactorDocument {
  readonly secrets: readonly string[];
  /** Files for the output on descriptors 3 and 4; appended to. */
  readonly files: readonly [string, string];
}

/** A process between another one's output and its log files. */
export interface LogRedactor {
  /** Standard output and standard error for the process whose output is redacted. */
  readonly inputs: readonly [Socket, Socket];
  /** Resolves when everything that was written is in the files. */
  readonly drained: Promise<void>;
  /** Closes our copies of the inputs: the redactor ends when the last writer has closed its own. */
  release(): void;
}

/** The program of this build: a source beside sources, a bundle beside bundles. */
function program(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  return fileURLToPath(new URL(`../supervise/redact-main.${extension}`, import.meta.url));
}

const input: StdioPipe = 'pipe';

/**
 * Starts a process that copies output into log files without `secrets`. It is a process of its own because it must outlive
 * us together with the process whose output it copies; it ends at the end of that output.
 *
 * @throws the system's error when it does not start
 */
export async function startLogRedactor(logs: ProcessLogs, secrets: readonly string[]): Promise<LogRedactor> {
  closeBeforeStart();
  const child: ChildProcess = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program()], {
    cwd: '/',
    env: {},
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'ignore', 'ignore', input, input],
  });
  if (child.pid === undefined) throw await new Promise((resolve) => child.once('error', resolve));
  const drained = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  child.on('error', () => {});
  child.unref();
  const document: RedactorDocument = { secrets, files: [logs.stdout, logs.stderr] };
  child.stdin?.on('error', () => {}).end(JSON.stringify(document));
  const inputs = [child.stdio[3] as Socket, child.stdio[4] as Socket] as const;
  return {
    inputs,
    drained,
    release() {
      for (const socket of inputs) socket.destroy();
    },
  };
}
