import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CliError } from '../errors.ts';

const run = promisify(execFile);

/** Program that the user's session starts at log-in. */
export interface ServiceProgram {
  /** Absolute path, then arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Whether the session starts the program, and whether it runs now. */
export interface ServiceStatus {
  readonly manager: string;
  readonly file: string;
  readonly isInstalled: boolean;
  readonly isActive: boolean;
}

/** Service manager of the user's session. */
export interface ServiceManager {
  install(program: ServiceProgram): Promise<ServiceStatus>;
  /** @returns whether there was something to remove */
  remove(): Promise<boolean>;
  status(): Promise<ServiceStatus>;
}

export interface ManagerPlace {
  /** Directory of the user, absolute. */
  readonly userHome: string;
  /** Finds the program of the manager. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Calls the program of a service manager. */
export class ManagerProgram {
  readonly #name: string;
  readonly #place: ManagerPlace;

  constructor(name: string, place: ManagerPlace) {
    this.#name = name;
    this.#place = place;
  }

  /** @throws CliError precondition, when the manager is missing or refuses */
  async must(...args: string[]): Promise<string> {
    const { env, signal } = this.#place;
    try {
      const { stdout } = await run(this.#name, args, { env: { ...env }, signal });
      return stdout.trim();
    } catch (error) {
      signal.throwIfAborted();
      const { code, stderr } = error as NodeJS.ErrnoException & { readonly stderr?: string };
      if (code === 'ENOENT') throw noManager(`${this.#name} is not installed.`);
      const reason = (stderr ?? '').trim().split('\n')[0] || `it ended with ${code}`;
      throw noManager(`${this.#name} ${args.join(' ')} failed: ${reason.replace(/\.$/, '')}.`);
    }
  }

  /** Output of a call that may fail: its answer is in the output. @throws CliError precondition, when it is missing */
  async ask(...args: string[]): Promise<{ readonly isOk: boolean; readonly text: string }> {
    const { env, signal } = this.#place;
    try {
      const { stdout } = await run(this.#name, args, { env: { ...env }, signal });
      return { isOk: true, text: stdout.trim() };
    } catch (error) {
      signal.throwIfAborted();
      const { code, stdout } = error as NodeJS.ErrnoException & { readonly stdout?: string };
      if (code === 'ENOENT') throw noManager(`${this.#name} is not installed.`);
      return { isOk: false, text: (stdout ?? '').trim() };
    }
  }
}

/** Error on a system without a service manager. The Hub does not need one: every command starts it. */
export const noManager = (what: string): CliError =>
  new CliError(
    'precondition',
    `${what} The Hub cannot be started at log-in here.`,
    'Nothing else needs it: oratorio up starts the Hub when it does not run. To run it under your own tool: oratorio hub',
  );
