import * as v from 'valibot';
import { dollars } from '../../lib/index.ts';
import type { Conversation } from '../conversation.ts';
import { inLine } from '../render.ts';

const ThreadState = v.looseObject({
  thread: v.looseObject({
    model: v.optional(v.string()),
    contextUsage: v.optional(v.looseObject({ tokens: v.number(), window: v.number() })),
  }),
});
const Spent = v.looseObject({
  tokenUsage: v.looseObject({ totalTokens: v.number(), costUsd: v.optional(v.number()) }),
});

/** Facts of the last answer in one line: model, tokens, cost of the conversation, share of the context, duration. */
export class StatusLine {
  readonly #usualModel: string;
  #costUsd = 0;

  /** @param usualModel model of a conversation that names none */
  constructor(usualModel: string) {
    this.#usualModel = usualModel;
  }

  async after(
    turn: Readonly<Record<string, unknown>>,
    { server, threadId }: Pick<Conversation, 'server' | 'threadId'>,
    elapsedMs: number,
  ): Promise<string> {
    const { thread } = v.parse(ThreadState, await server.request('thread/read', { threadId }));
    const spent = v.safeParse(Spent, turn);
    if (spent.success) this.#costUsd += spent.output.tokenUsage.costUsd ?? 0;
    const { contextUsage: context } = thread;
    return [
      inLine(thread.model ?? this.#usualModel),
      ...(spent.success ? [`${spent.output.tokenUsage.totalTokens.toLocaleString('en-GB')} tokens`] : []),
      ...(this.#costUsd > 0 ? [`${dollars(this.#costUsd)} so far`] : []),
      ...(context && context.window > 0 ? [`context ${Math.ceil((100 * context.tokens) / context.window)} %`] : []),
      `${(elapsedMs / 1_000).toFixed(1)} s`,
    ].join(' · ');
  }
}
