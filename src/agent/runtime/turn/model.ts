import { defaults } from '../../../protocol/index.ts';
import { reserveOf } from '../../context/index.ts';
import type { ModelFacts } from '../../model.ts';
import type { TurnContext } from './context.ts';

/** Window to assume after a refusal, as a part of the refused size, and the least window: no useful model has less. */
const shrink = 0.8;
const leastWindow = 4_096;

/** Model of a turn, and the room that its window has. */
export class TurnModel {
  readonly #turn: TurnContext;
  #name: string | undefined;
  #facts: ModelFacts | undefined;

  constructor(turn: TurnContext) {
    this.#turn = turn;
    this.#name = turn.options.model ?? turn.thread.config.model;
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
    this.#facts = (await this.#turn.services.provider()).facts?.(name);
  }

  /** Window in tokens. */
  get window(): number {
    const { settings, learnedWindows } = this.#turn.services;
    const known = settings.compaction.contextWindow || (this.#facts?.contextWindow ?? defaults.upstream.contextWindow);
    return Math.min(known, learnedWindows.get(this.#name ?? '') ?? known);
  }

  get maxOutputTokens(): number | undefined {
    return this.#turn.options.maxOutputTokens ?? this.#turn.thread.config.maxOutputTokens;
  }

  /** Tokens that a request may have. */
  get room(): number {
    const { reserveTokens } = this.#turn.services.settings.compaction;
    return this.window - reserveOf(this.window, { reserveTokens, maxOutputTokens: this.maxOutputTokens });
  }

  /** The provider refused a request of about so many tokens as too long. */
  noteTooLong(tokens: number): void {
    const refused = Math.min(this.window, tokens) * shrink;
    this.#turn.services.learnedWindows.set(this.#name ?? '', Math.max(leastWindow, Math.floor(refused)));
  }
}
