import * as v from 'valibot';
import type { DelegatedUse } from '../agent/index.ts';
import { type FileService, WriteGrants } from './file-service.ts';
import { type Usage, UsageUpdate } from './messages.ts';
import { SessionOffers } from './offers.ts';
import type { PromptTurn } from './prompt-turn.ts';
import { CommandGrants, type TerminalService } from './terminal-service.ts';

/** A thread's session in one life of the agent's process, and what it has used. */
export class Session {
  readonly sessionId: string;
  readonly incarnation: number;
  /** Absent: no prompt runs, and what comes belongs to no turn. */
  turn: PromptTurn | undefined;
  /** There while a prompt runs. */
  files: FileService | undefined;
  terminals: TerminalService | undefined;
  readonly offers = new SessionOffers();
  /** A model that it does not offer, and that a notice has named. */
  unknownModel: string | undefined;
  readonly grants = new WriteGrants();
  readonly commandGrants = new CommandGrants();
  /** Usage so far: agents report sums. */
  #usage: Usage | undefined;
  #costUsd = 0;
  /** Part of the cost that turns have reported. */
  #reportedUsd = 0;
  #hasPrompted = false;

  constructor(sessionId: string, incarnation: number) {
    this.sessionId = sessionId;
    this.incarnation = incarnation;
  }

  /** A prompt begins. What the session has cost before its first prompt here belongs to no turn of ours. */
  begin(): void {
    if (!this.#hasPrompted) this.#reportedUsd = this.#costUsd;
    this.#hasPrompted = true;
  }

  /** Usage of a turn that has ended: the difference to the sum before. A sum that has become smaller counts from zero. */
  useOf(usage: Usage | undefined): DelegatedUse {
    const costUsd = this.#costUsd - this.#reportedUsd;
    this.#reportedUsd = this.#costUsd;
    const { inputTokens: before = 0, outputTokens: said = 0 } = this.#usage ?? {};
    const isSum = usage !== undefined && usage.inputTokens >= before && usage.outputTokens >= said;
    const last = isSum ? this.#usage : undefined;
    const since = (now: number | undefined, then: number | undefined) => Math.max(0, (now ?? 0) - (then ?? 0));
    this.#usage = usage ?? this.#usage;
    return {
      inputTokens: since(usage?.inputTokens, last?.inputTokens),
      outputTokens: since(usage?.outputTokens, last?.outputTokens),
      cachedInputTokens: since(usage?.cachedReadTokens, last?.cachedReadTokens),
      reasoningTokens: since(usage?.thoughtTokens, last?.thoughtTokens),
      ...(costUsd > 0 && { costUsd }),
    };
  }

  noteCost(update: unknown): void {
    const parsed = v.safeParse(UsageUpdate, update);
    const cost = parsed.success ? parsed.output.cost : undefined;
    if (cost && (cost.currency ?? 'USD') === 'USD' && Number.isFinite(cost.amount)) this.#costUsd = cost.amount;
  }
}
