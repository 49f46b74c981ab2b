import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../hub/harness.ts';
import { unusedPort } from '../../ports.ts';
import { command, type Place } from '../harness.ts';

/** `oratorio backend`, always at the same port, however often it is killed. */
export class BackendProcess {
  readonly url: string;
  readonly state: string;
  readonly #place: Place;
  readonly #argv: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  /** Output of all incarnations. */
  log = '';

  private constructor(place: Place, name: string, port: number, options: BackendOptions) {
    this.#place = place;
    this.url = `http://127.0.0.1:${port}`;
    this.state = join(place.root, name);
    mkdirSync(this.state, { mode: 0o700, recursive: true });
    const { configFile, env } = options;
    this.#argv = ['backend', '--config', configFile, '--state', this.state, '--port', String(port), '--json'];
    this.#env = { ...place.env, ...env };
  }

  static async start(place: Place, name: string, options: BackendOptions): Promise<BackendProcess> {
    const made = new BackendProcess(place, name, await unusedPort(), options);
    await made.start();
    return made;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }
  get token(): string {
    return readFileSync(join(this.state, 'service.token'), 'utf8').trim();
  }

  /** Resolves when it serves. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [command, ...this.#argv], {
      cwd: this.#place.root,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
    await eventually(
      () => {
        if (child.exitCode !== null) throw new Error(`the backend ended with ${child.exitCode}: ${said}${this.log}`);
        return said.includes('\n') && existsSync(join(this.state, 'service.token'));
      },
      () => `the backend serves: ${said}${this.log}`,
    );
  }

  /** Resolves when it has ended. @returns its exit code; null: by the signal */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }
}

export interface BackendOptions {
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
}
