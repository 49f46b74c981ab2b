import { defaults } from '../../../protocol/index.ts';
import { reserveOf } from '../../context/index.ts';
import type { ModelFacts } from '../../model.ts';
import type { TurnOptions } from '../types.ts';
import type { TurnHost } from './host.ts';

/** Window to assume after a refusal, as a part of the refused size, and the least window: no useful model has less. */
const shrink = 0.8;
const leastWindow = 4_096;

/** Model of a turn, and the room that its window has. */
export class TurnModel {
  readonly #host: TurnHost;
  readonly #options: TurnOptions;
  #name: string | undefined;
  #facts: ModelFacts | undefined;

  constructor(host: TurnHost, options: TurnOptions) {
    this.#host = host;
    this.#options = options;
    this.#name = options.model ?? host.config.model;
  }

  /** Name in requests; undefined: the default one. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Owner of the state of its answers; undefined: unknown. */
  get owner(): string | undefined {
    return this.#facts?.owner;
  }

  /** Learns the facts of the model. @param name another one for the later requests */
  async know(name = this.#name): Promise<void> {
    this.#name = name;
    this.#facts = (await this.#host.provider()).facts?.(name);
  }

  /** Window in tokens. */
  get window(): number {
    const { settings, learnedWindows } = this.#host;
    const known = settings.compaction.contextWindow || (this.#facts?.contextWindow ?? defaults.upstream.contextWindow);
    return Math.min(known, learnedWindows.get(this.#name ?? '') ?? known);
  }

  get maxOutputTokens(): number | undefined {
    return this.#options.maxOutputTokens ?? this.#host.config.maxOutputTokens;
  }

  /** Tokens that a request may have. */
  get room(): number {
    const { reserveTokens } = this.#host.settings.compaction;
    return this.window - reserveOf(this.window, { reserveTokens, maxOutputTokens: this.maxOutputTokens });
  }

  /** The provider refused a request of about so many tokens as too long. */
  noteTooLong(tokens: number): void {
    const refused = Math.min(this.window, tokens) * shrink;
    this.#host.learnedWindows.set(this.#name ?? '', Math.max(leastWindow, Math.floor(refused)));
  }
}
