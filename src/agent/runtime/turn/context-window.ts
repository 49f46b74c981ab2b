import {
  compactionLimits,
  cutOf,
  pruned,
  requestsOf,
  sizeOfItems,
  summarise,
  type TokenCount,
} from '../../context/index.ts';
import type { ModelMessage } from '../../model.ts';
import type { ModelUse } from '../../model-call.ts';
import type { TurnContext } from './context.ts';
import type { TurnModel } from './model.ts';
import type { TurnPast } from './past.ts';

export interface ContextWindowOptions {
  readonly turn: TurnContext;
  readonly past: TurnPast;
  readonly model: TurnModel;
  readonly count: TokenCount;
  /** Called with the usage of a summary. */
  readonly onSummaryUsed: (use: ModelUse) => void;
  /** Estimated tokens of the conversation. */
  readonly tokens: () => number;
  readonly messages: () => readonly ModelMessage[];
  readonly replace: (messages: ModelMessage[]) => void;
  /** Collects the conversation again from the store. */
  readonly collect: (signal: AbortSignal) => Promise<void>;
}

/** Part of the window that stays unchanged in a compaction. */
const keptShare = 0.25;
/** Unchanged part once the provider has found the conversation too long: of the window, or of the conversation if that is less. */
const leastKeptShare = 0.1;
const leastKeptPart = 0.25;
const { olderRequestTokens, transcriptShare } = compactionLimits;
/** Part of the window that older requests of the user may take at most. */
const olderRequestShare = 0.15;
/** Least part of the window that pruning must win. */
const pruneShare = 0.1;
/** A compaction that wins less is not tried again until the conversation has grown by `regrowShare`. */
const leastWin = 0.05;
const regrowShare = 0.1;

/** Makes a conversation fit the window of its model: leaves out old results, then replaces the older part by a summary. */
export class ContextWindow {
  readonly #options: ContextWindowOptions;
  /** The provider's refusal of the conversation since the last answer. */
  #refusal: Error | undefined;
  /** Tokens below which no compaction is tried. */
  #noCompactionBelow = 0;

  constructor(options: ContextWindowOptions) {
    this.#options = options;
  }

  /** The model has answered: the conversation is not too long. */
  noteAnswer(): void {
    this.#refusal = undefined;
  }

  /** Makes room by leaving out old results. True: the conversation still exceeds the window, and can be summarised. */
  check(): boolean {
    const { isAutomatic } = this.#options.turn.services.settings.compaction;
    if (!isAutomatic || this.#options.tokens() <= this.#options.model.room) return false;
    this.#prune(keptShare, pruneShare);
    return (
      this.#options.tokens() > this.#options.model.room &&
      this.#options.tokens() >= this.#noCompactionBelow &&
      this.#cut() > 0
    );
  }

  /** Leaves out old results. @param kept share of the window whose results stay @param least share that must be won */
  #prune(kept: number, least: number): boolean {
    const bytesIn = (share: number) => (this.#options.model.window * share) / this.#options.count.ratio;
    const shorter = pruned(this.#options.messages(), {
      keepBytes: bytesIn(kept),
      maxResultBytes: bytesIn(kept),
      minBytes: Math.max(1, bytesIn(least)),
    });
    if (!shorter) return false;
    this.#options.replace(shorter);
    this.#options.count.forget();
    return true;
  }

  /** The provider refused the conversation as too long. */
  noteTooLong(refusal: Error): void {
    this.#refusal = refusal;
    this.#options.model.noteTooLong(this.#options.tokens());
  }

  /** Replaces the older part by a summary. The requests of the running turn stay verbatim. */
  async compact(signal: AbortSignal): Promise<void> {
    const { turn, onSummaryUsed, past, model, count } = this.#options;
    const { services, place, record } = turn;
    const report = (kind: string, message: string) =>
      record.publish({ method: 'system/event', params: { ...place, kind, message } });
    const all = past.items();
    const cut = this.#cut();
    const last = all[cut - 1];
    if (!last) {
      // Nothing to summarise: the same request would be refused again.
      if (this.#refusal && !this.#prune(leastKeptShare, 0)) throw this.#refusal;
      return;
    }
    report('compacting', 'The conversation has become long; its older part is being summarised.');
    const before = this.#options.tokens();
    const began = performance.now();
    const earlier = past.compaction;
    const summary = await summarise({
      provider: await services.provider(),
      model: model.name,
      items: all.slice(0, cut),
      earlier: earlier?.summary,
      transcriptBytes: Math.floor((model.window * transcriptShare) / count.ratio),
      signal,
      onUsed: onSummaryUsed,
    });
    signal.throwIfAborted();
    const requests = requestsOf(
      all.slice(0, cut),
      earlier?.requests ?? [],
      (item) => item.turnId === place.turnId,
      Math.min(olderRequestTokens, model.window * olderRequestShare) / count.ratio,
    );
    const at = new Date().toISOString();
    past.summarise({ throughTurnId: last.turnId, throughItemId: last.id, summary, requests, at });
    count.forget();
    await this.#options.collect(signal);
    const after = this.#options.tokens();
    this.#noCompactionBelow = before - after < model.window * leastWin ? after + model.window * regrowShare : 0;
    const text = `The older part of the conversation was summarised: about ${before} tokens became ${after}.`;
    record.items.add({ type: 'systemNotice', kind: 'contextCompacted', text });
    services.tracer?.contextCompacted(place, performance.now() - began, before, after);
    report('compacted', text);
  }

  /** Index of the first item that a compaction leaves unchanged. A conversation that the caller sends cannot be summarised. */
  #cut(): number {
    if (this.#options.turn.options.history !== undefined) return 0;
    const items = this.#options.past.items();
    const bytesIn = (share: number) => (this.#options.model.window * share) / this.#options.count.ratio;
    // A refused conversation may be far shorter than the window that was assumed.
    const keepBytes = this.#refusal
      ? Math.min(bytesIn(leastKeptShare), sizeOfItems(items) * leastKeptPart)
      : bytesIn(keptShare);
    return cutOf(items, keepBytes);
  }
}
