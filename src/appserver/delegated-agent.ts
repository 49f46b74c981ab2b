import type { Delegate, DelegatedOrder } from '../agent/index.ts';
import type { ConfigureOptions, ExternalAgent } from '../external/index.ts';

/** The configured agent of another maker, loaded with its first turn: most workspaces have none. */
export class DelegatedAgent implements Delegate {
  readonly name: string;
  readonly #options: ConfigureOptions;
  #loading: Promise<ExternalAgent> | undefined;
  #loaded: ExternalAgent | undefined;

  constructor(options: ConfigureOptions) {
    const { Name, Command } = options.agent;
    this.name = Name || (Command[0] ?? '');
    this.#options = options;
  }

  async run(order: DelegatedOrder, signal: AbortSignal) {
    return (await this.#load()).run(order, signal);
  }

  forget(threadId: string): void {
    this.#loaded?.forget(threadId);
  }

  /** For health and records. */
  describe() {
    const { name } = this;
    return this.#loaded?.describe() ?? { kind: 'acp' as const, name, version: null, state: 'absent', lastError: null };
  }

  async close(): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.close();
  }

  #load(): Promise<ExternalAgent> {
    this.#loading ??= import('../external/index.ts').then(({ configuredAgent }) => {
      this.#loaded = configuredAgent(this.#options);
      return this.#loaded;
    });
    return this.#loading;
  }
}
