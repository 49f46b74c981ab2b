import type { Header, Reply, RequestContext } from '../http/index.ts';
import { type AnswerParts, readJson } from './answers.ts';
import type { ChatTurn } from './chat-turn.ts';
import { Chunks } from './chunks.ts';
import { explained } from './errors.ts';
import { type Plan, planOf, sessionIdOf } from './plan.ts';
import { repetitionOf } from './replays.ts';
import { checkTools, parseRequest } from './request.ts';
import { completionOf } from './whole-reply.ts';

/** `POST /v1/chat/completions` (specification §4.1). */
export class Completions {
  readonly #parts: AnswerParts;
  readonly #sessionFromUser: boolean;

  constructor(parts: AnswerParts, sessionFromUser: boolean) {
    this.#parts = parts;
    this.#sessionFromUser = sessionFromUser;
  }

  readonly handle = async (context: RequestContext): Promise<Reply> => {
    const { replays, answers } = this.#parts;
    const request = parseRequest(await readJson(context));
    await checkTools(request.tools?.map((tool) => tool.function) ?? [], (index) => `tools[${index}].function`);
    const source = { header: context.header('x-session-id'), fromUser: this.#sessionFromUser };
    const sessionId = sessionIdOf(request, source);
    const repetition = repetitionOf((name) => context.header(name), await context.bytes(), sessionId);
    const known = replays.find(repetition);
    const plan = planOf(request, source);
    const turn = known ?? (await this.#begin(plan, repetition));
    const headers = sessionHeader(turn);
    return plan.isStream
      ? answers.streamed(context, turn, new Chunks(turn, plan.includesUsage), headers)
      : answers.whole(context, turn, completionOf, headers);
  };

  async #begin(plan: Plan, repetition: ReturnType<typeof repetitionOf>): Promise<ChatTurn> {
    const { models, replays, turns } = this.#parts;
    const chosen = await models.choose(plan.model).catch((error: unknown) => {
      throw explained(error);
    });
    // Another request may have begun the same turn while the provider listed its models.
    const known = replays.find(repetition);
    if (known) return known;
    return turns.begin(plan, chosen, {
      isNamed: repetition.hasKey,
      onMade: (turn) => replays.add(repetition, turn),
    });
  }
}

const sessionHeader = ({ sessionId }: ChatTurn): Header[] =>
  sessionId === undefined ? [] : [['x-session-id', sessionId]];
