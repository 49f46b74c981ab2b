import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { root } from '../toolchain.mjs';

/** Source files of the product that ran, by path from the root, each with the names of its functions that ran. */
export type Walked = ReadonlyMap<string, readonly string[]>;

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** A program of the sources with V8's precise coverage, which it reports through its inspector. */
export class TracedProcess {
  readonly #child: ChildProcess;
  readonly #inspector: WebSocket;
  readonly #answers = new Map<number, (result: unknown) => void>();
  #lastId = 0;

  private constructor(child: ChildProcess, inspector: WebSocket) {
    this.#child = child;
    this.#inspector = inspector;
    inspector.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data));
      this.#answers.get(id)?.(result);
      this.#answers.delete(id);
    });
  }

  /**
   * Starts a program. The first modules may have run before its coverage is counted.
   *
   * @param args its file from the root, and its arguments
   * @param onLine called with each line of its output
   * @throws Error when it ends before
   */
  static async start(
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    onLine: (line: string) => void,
  ): Promise<TracedProcess> {
    const flags = ['--inspect=127.0.0.1:0', '--conditions=development', '--disable-warning=ExperimentalWarning'];
    const child = spawn(process.execPath, [...flags, ...args], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const address = new Promise<string>((resolve, reject) => {
      for (const input of [child.stdout, child.stderr]) {
        createInterface({ input }).on('line', (line) => {
          const [, found] = /^Debugger listening on (\S+)$/.exec(line) ?? [];
          if (found === undefined) onLine(line);
          else resolve(found);
        });
      }
      child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    });
    const inspector = new WebSocket(await address);
    await once(inspector, 'open');
    const traced = new TracedProcess(child, inspector);
    await traced.#send('Profiler.enable');
    await traced.#send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return traced;
  }

  /** Functions that ran since the last call, or since the start. A module as a whole is not a function. */
  async walked(): Promise<Walked> {
    const { result } = (await this.#send('Profiler.takePreciseCoverage')) as { result: readonly ScriptCoverage[] };
    const files = result
      .filter(({ url }) => url.startsWith('file:'))
      .map(({ url, functions }) => ({ path: fileURLToPath(url).slice(root.length + 1), functions }))
      .filter(({ path }) => /^(?:src|machines)\//.test(path))
      .map(({ path, functions }) => [path, namesOf(functions)] as const)
      .filter(([, names]) => names.length > 0);
    return new Map(files);
  }

  /** Ends the program and waits for its end. */
  async stop(): Promise<void> {
    this.#inspector.close();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  #send(method: string, params = {}): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#inspector.send(JSON.stringify({ id, method, params }));
    });
  }
}

function namesOf(functions: ScriptCoverage['functions']): string[] {
  const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
  return ran
    .filter(({ ranges }) => ranges[0]?.startOffset !== 0)
    .map(({ functionName }) => functionName || '(anonymous)');
}
