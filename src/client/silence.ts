import { defaults } from '../protocol/index.ts';

/** Detects an agent server that does not answer, e.g. because its process is stopped. */
export interface SilenceOptions {
  /** Silence, in milliseconds, after which `onSilence` is called and the server must send a sign of life. */
  readonly noticeMs?: number | undefined;
  /** Silence after which the connection ends with AppServerConnectionError. Milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** Called when the server has become silent, and when it is heard again. */
  readonly onSilence?: ((isSilent: boolean) => void) | undefined;
}

export interface SilenceActions {
  /** Sends a request that every server answers, known or not. */
  readonly askForSign: () => void;
  readonly giveUp: (deadlineMs: number) => void;
}

const ticksPerNotice = 4;

/**
 * Watches a connection for silence, from before it opens until `stop`. Time during which this process itself did not run
 * (suspended, or stopped) does not count.
 */
export class SilenceWatch {
  readonly #options: SilenceOptions;
  readonly #actions: SilenceActions;
  readonly #noticeMs: number;
  readonly #timer: ReturnType<typeof setInterval>;
  #silentMs = 0;
  #last = performance.now();
  #isSilent = false;
  #hasAsked = false;

  constructor(options: SilenceOptions, actions: SilenceActions) {
    this.#options = options;
    this.#actions = actions;
    this.#noticeMs = options.noticeMs ?? defaults.client.silenceNoticeMs;
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Must be called for everything that arrives. */
  heard(): void {
    this.#silentMs = 0;
    this.#hasAsked = false;
    if (this.#isSilent) {
      this.#isSilent = false;
      this.#options.onSilence?.(false);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get #tickMs(): number {
    return Math.max(10, this.#noticeMs / ticksPerNotice);
  }

  #tick(): void {
    const now = performance.now();
    this.#silentMs += Math.min(now - this.#last, 2 * this.#tickMs);
    this.#last = now;
    const { deadlineMs = defaults.client.silenceDeadlineMs } = this.#options;
    if (this.#silentMs >= deadlineMs) {
      this.#actions.giveUp(deadlineMs);
      return;
    }
    // Half of the notice for a quiet server to answer, so that silence alone is not mistaken for its end.
    if (!this.#hasAsked && this.#silentMs >= this.#noticeMs / 2) {
      this.#hasAsked = true;
      this.#actions.askForSign();
    }
    if (!this.#isSilent && this.#silentMs >= this.#noticeMs) {
      this.#isSilent = true;
      this.#options.onSilence?.(true);
    }
  }
}
