import { type SandboxStatus, sandboxStateOf } from '../agent/index.ts';
import type { SandboxState } from '../protocol/index.ts';

/** The sandbox of a workspace: the result of a trial, then that of the latest command. */
export class SandboxReport {
  readonly #trial: () => Promise<SandboxStatus>;
  readonly #listeners = new Set<() => void>();
  #status: SandboxStatus | undefined;
  /** Latest status with a working sandbox, for its words. */
  #working: SandboxStatus | undefined;

  /** @param trial tries the sandbox with the places of the workspace */
  constructor(trial: () => Promise<SandboxStatus>) {
    this.#trial = trial;
  }

  /** Undefined: neither a trial nor a command has shown it. */
  get status(): SandboxStatus | undefined {
    return this.#status;
  }

  get state(): SandboxState | null {
    return this.#status ? sandboxStateOf(this.#status) : null;
  }

  /** Tries the sandbox the first time, and again until it works. */
  async try(): Promise<SandboxStatus> {
    if (this.#status?.available) return this.#status;
    const status = await this.#trial();
    this.#set(status);
    return status;
  }

  /** A command has shown that the sandbox works, or why it was refused. */
  noted(problem: string | undefined): void {
    const known = this.#working ?? this.#status;
    if (!known) return;
    if (problem !== undefined) this.#set({ mode: known.mode, available: false, reason: problem, isRefused: true });
    else if (this.#working) this.#set(this.#working);
  }

  /** Calls the listener when the state has changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #set(status: SandboxStatus): void {
    if (status.available) this.#working = status;
    const isSame = this.#status?.available === status.available && this.#status.reason === status.reason;
    this.#status = status;
    if (!isSame) for (const listener of this.#listeners) listener();
  }
}
