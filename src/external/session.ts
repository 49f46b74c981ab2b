import * as v from 'valibot';
import type { DelegatedReport, DelegatedRequest, DelegatedUse } from '../agent/index.ts';
import { type FileService, WriteGrants } from './file-service.ts';
import { type PromptResult, RequestUsage, type Usage, UsageUpdate } from './messages.ts';
import { SessionOffers } from './offers.ts';
import type { PromptTurn } from './prompt-turn.ts';
import { noTokens, plus, type Tokens, TurnAccount } from './telemetry/turn-account.ts';
import { CommandGrants, type TerminalService } from './terminal-service.ts';

/** A thread's session in one life of the agent's process, and its usage. */
export class Session {
  readonly sessionId: string;
  readonly incarnation: number;
  /** Absent: no prompt runs, and an update belongs to no turn. */
  turn: PromptTurn | undefined;
  /** Present while a prompt runs. */
  files: FileService | undefined;
  terminals: TerminalService | undefined;
  readonly offers = new SessionOffers();
  /** A model that the agent does not offer, and that a notice has named. */
  unknownModel: string | undefined;
  readonly grants = new WriteGrants();
  readonly commandGrants = new CommandGrants();
  /** Usage so far: agents report sums. */
  #usage: Usage | undefined;
  #costUsd = 0;
  /** Part of the cost that turns have reported. */
  #reportedUsd = 0;
  #hasPrompted = false;
  /** Tokens of the requests of this prompt. */
  #counted: Tokens = noTokens;
  /** Accounts of the last two turns: a late export may belong to the earlier one. */
  #accounts: readonly TurnAccount[] = [];

  constructor(sessionId: string, incarnation: number) {
    this.sessionId = sessionId;
    this.incarnation = incarnation;
  }

  /** Begins a prompt. Costs of the session before its first prompt here belong to no turn of ours. */
  begin(report: DelegatedReport): TurnAccount {
    if (!this.#hasPrompted) this.#reportedUsd = this.#costUsd;
    this.#hasPrompted = true;
    this.#counted = noTokens;
    const account = new TurnAccount(report);
    const [last, ...older] = this.#accounts;
    for (const each of older) each.close();
    this.#accounts = last ? [account, last] : [account];
    return account;
  }

  /** Adds a request that the agent has exported to the turn in which it ended. @returns false: there is no such turn */
  addRequest(request: DelegatedRequest): boolean {
    const account = this.#accounts.find(({ startedAt }) => startedAt <= request.endedAt);
    return account?.add(request) ?? false;
  }

  /** Closes the accounts: the agent exports nothing more. */
  closeAccounts(): void {
    for (const account of this.#accounts) account.close();
  }

  /** Discards the accounts: the thread is gone. */
  discardAccounts(): void {
    for (const account of this.#accounts) account.discard();
  }

  /** Usage of a turn that has ended: the difference to the sum before. A sum that has become smaller counts from zero. */
  useOf({ usage, _meta }: Pick<PromptResult, 'usage' | '_meta'>): DelegatedUse {
    const costUsd = this.#costUsd - this.#reportedUsd;
    this.#reportedUsd = this.#costUsd;
    const priced = costUsd > 0 && { costUsd };
    const quota = _meta?.quota?.token_count;
    if (!usage && quota) return { inputTokens: quota.input_tokens, outputTokens: quota.output_tokens, ...priced };
    if (!usage) return { ...this.#counted, ...priced };
    const { inputTokens: before = 0, outputTokens: said = 0 } = this.#usage ?? {};
    const isSum = usage.inputTokens >= before && usage.outputTokens >= said;
    const last = isSum ? this.#usage : undefined;
    const since = (now: number | undefined, then: number | undefined) => Math.max(0, (now ?? 0) - (then ?? 0));
    this.#usage = usage;
    return {
      inputTokens: since(usage.inputTokens, last?.inputTokens),
      outputTokens: since(usage.outputTokens, last?.outputTokens),
      cachedInputTokens: since(usage.cachedReadTokens, last?.cachedReadTokens),
      reasoningTokens: since(usage.thoughtTokens, last?.thoughtTokens),
      ...priced,
    };
  }

  /** Adds the usage of one request, if a piece of an answer has it. */
  noteUsage(update: unknown): void {
    const parsed = v.safeParse(RequestUsage, update);
    if (!parsed.success) return;
    const { cachedReadTokens, thoughtTokens, ...tokens } = parsed.output._meta.usage;
    const request = { ...tokens, cachedInputTokens: cachedReadTokens, reasoningTokens: thoughtTokens };
    this.#counted = plus(this.#counted, request);
  }

  noteCost(update: unknown): void {
    const parsed = v.safeParse(UsageUpdate, update);
    const cost = parsed.success ? parsed.output.cost : undefined;
    if (cost && (cost.currency ?? 'USD') === 'USD' && Number.isFinite(cost.amount)) this.#costUsd = cost.amount;
  }
}
