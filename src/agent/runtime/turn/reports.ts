import type { TurnEmitted } from '../../../../machines/index.ts';
import type { RpcNotificationParams } from '../../../protocol/index.ts';
import { parserAdvice } from '../../printed-call.ts';
import type { TurnRecord } from './record.ts';

type Of<T extends TurnEmitted['type']> = Extract<TurnEmitted, { type: T }>;
type Details = Partial<Pick<RpcNotificationParams<'system/event'>, 'attempt' | 'waitMs' | 'reason' | 'model'>>;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;

export interface TurnReportsOptions {
  readonly threadId: string;
  readonly turnId: string;
  readonly record: TurnRecord;
}

/** Notices and events of a turn that waits or changes its model. */
export class TurnReports {
  readonly #options: TurnReportsOptions;

  constructor(options: TurnReportsOptions) {
    this.#options = options;
  }

  retry({ attempt, waitMs, reason }: Of<'turn.retrying'>): void {
    const message = `${reason} Trying again in ${seconds(waitMs)} (attempt ${attempt}).`;
    this.#discard('requestRepeated', message);
    this.#publish('retrying', message, { attempt, waitMs, reason });
  }

  leaveOut({ reason, leftOut }: Of<'turn.leavingOut'>): void {
    const message = `${reason} Asking again without ${leftOut}.`;
    this.#discard('requestRepeated', message);
    this.#publish('retrying', message, { waitMs: 0, reason });
  }

  fallback(reason: string, model: string): void {
    const message = `${reason} Continuing with ${model}.`;
    this.#discard('modelReplaced', message);
    this.#publish('fallback', message, { model, reason });
  }

  budgetReached(budget: string): void {
    this.#publish('budgetReached', budget);
    this.#options.record.saveStatus();
  }

  callLimitReached(rounds: number): void {
    this.#limitReached(`The turn has used its ${rounds} requests to the model (MaxToolCallRounds).`);
  }

  stuck(rounds: number, tool: string): void {
    this.#limitReached(
      `The turn is ended after ${rounds} requests to the model: ${tool} was called again and again with the same result.`,
    );
  }

  cutOff(answers: number, limit: number | undefined): void {
    const at = limit === undefined ? 'the output limit of the model' : `the output limit of ${limit} tokens`;
    this.#limitReached(
      `The turn is ended: calls of ${answers} answers in a row were cut off at ${at} (MaxOutputTokens).`,
    );
  }

  callPrinted(): void {
    const text = `The model printed a tool call as text; nothing was run. ${parserAdvice}`;
    this.#options.record.items.add({ type: 'systemNotice', kind: 'callPrinted', text });
    this.#publish('callPrinted', text);
  }

  endedSilently(): void {
    const text = 'The turn ended without a closing text: its tool calls are its result.';
    this.#options.record.items.add({ type: 'systemNotice', kind: 'endedSilently', text });
  }

  notConcluded(reason: string): void {
    const text = `The turn has no closing answer: ${reason}`;
    this.#options.record.items.add({ type: 'systemNotice', kind: 'notConcluded', text });
  }

  /** Withdraws the broken answer and adds a notice with the reason. */
  #discard(kind: string, text: string): void {
    const { items } = this.#options.record;
    items.discardAnswer();
    items.add({ type: 'systemNotice', kind, text });
  }

  #limitReached(text: string): void {
    this.#options.record.items.add({ type: 'systemNotice', kind: 'callLimitReached', text });
  }

  #publish(kind: string, message: string, details: Details = {}): void {
    const { threadId, turnId, record } = this.#options;
    record.add(undefined, { method: 'system/event', params: { threadId, turnId, kind, message, ...details } });
  }
}
