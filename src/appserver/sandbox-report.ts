import { type SandboxMode, type SandboxStatus, sandboxStateOf } from '../agent/index.ts';
import type { SandboxState } from '../protocol/index.ts';

/** Pause after a turn before the trial: the next turn does not wait for its processes. */
const restMs = 1_000;

export interface SandboxReportOptions {
  readonly mode: SandboxMode;
  /** Whether a trial is likely to succeed. Starts no process. */
  readonly isInstalled: () => boolean;
  /** Tries the sandbox with the places of the workspace. */
  readonly trial: () => Promise<SandboxStatus>;
  readonly onBug: (error: unknown) => void;
}

/** The sandbox of a workspace: the result of a trial, then that of the latest command. */
export class SandboxReport {
  readonly #options: SandboxReportOptions;
  readonly #listeners = new Set<() => void>();
  #status: SandboxStatus | undefined;
  /** Latest status with a working sandbox, for its words. */
  #working: SandboxStatus | undefined;
  #nextTrial: NodeJS.Timeout | undefined;

  constructor(options: SandboxReportOptions) {
    this.#options = options;
  }

  /** Undefined: neither a trial nor a command has shown it. */
  get status(): SandboxStatus | undefined {
    return this.#status;
  }

  get state(): SandboxState | null {
    return this.#status ? sandboxStateOf(this.#status) : null;
  }

  /** Whether the next command is expected to run in the sandbox. A turn does not wait for a trial to describe it. */
  get isExpected(): boolean {
    return this.#status?.available ?? this.#options.isInstalled();
  }

  try(): void {
    const { trial, onBug } = this.#options;
    trial().then((status) => this.#set(status), onBug);
  }

  /** Tries the sandbox in the pause after a turn, the first time and again until it works. */
  turnEnded(): void {
    this.close();
    if (!this.#status?.available) this.#nextTrial = setTimeout(() => this.try(), restMs).unref();
  }

  /** A command has shown that the sandbox works, or why it was refused. */
  noted(problem: string | undefined): void {
    const { mode } = this.#options;
    if (problem !== undefined) this.#set({ mode, available: false, reason: problem, isRefused: true });
    else if (this.#working) this.#set(this.#working);
  }

  /** Calls the listener when the state has changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Begins no further trial. */
  close(): void {
    clearTimeout(this.#nextTrial);
  }

  #set(status: SandboxStatus): void {
    if (status.available) this.#working = status;
    const isSame = this.#status?.available === status.available && this.#status.reason === status.reason;
    this.#status = status;
    if (!isSame) for (const listener of this.#listeners) listener();
  }
}
