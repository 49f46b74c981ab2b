import { hash, randomUUID } from 'node:crypto';
import { AgentError, type ResponseStore, type Runtime, type StoredResponse } from '../../agent/index.ts';
import { json, type Reply, type RequestContext } from '../../http/index.ts';
import { type AnswerParts, eventReply, readJson } from '../answers.ts';
import type { ChatTurn } from '../chat-turn.ts';
import { chatError, errorObjectOf, explained, invalidParameter, outcomeUnknown } from '../errors.ts';
import type { Plan } from '../plan.ts';
import { type Repetition, repetitionOf } from '../replays.ts';
import { checkTools } from '../request.ts';
import type { Frames } from '../stream-reply.ts';
import type { ChosenModels } from '../turns.ts';
import { customInput, placeOfItem, ResponseFrames, responseBody } from './events.ts';
import { ResponseLog, type ResponseState } from './log.ts';
import { type Item, parseRequest, type ResponsesRequest } from './request.ts';
import { offeredTools, responsePlan, systemTexts } from './translate.ts';

/** Frames of a response for a reader of its turn. Each piece of the turn yields its events. */
class LiveFrames extends ResponseFrames implements Frames {
  /** A comment, which readers skip. */
  readonly heartbeat = ':\n\n';
  readonly soFar = () => this.take();
  readonly text = (text: string) => this.take(text);
  readonly reasoning = (text: string) => this.take(text);
  readonly call = () => this.take();
  readonly activity = () => this.take();
  readonly ending = () => this.take();
}

export interface ResponsesOptions extends AnswerParts {
  readonly runtime: Runtime;
  readonly responses: ResponseStore;
}

/** Responses API on the turns of chat completions. */
export class Responses {
  readonly #options: ResponsesOptions;

  constructor(options: ResponsesOptions) {
    this.#options = options;
    this.#endLost();
  }

  /** `POST /v1/responses` */
  readonly create = async (context: RequestContext): Promise<Reply> => {
    const { replays } = this.#options;
    const request = parseRequest(await readJson(context));
    const own = request.tools?.map((tool) => (tool.type === 'other' ? undefined : tool)) ?? [];
    await checkTools(own, (index) => `tools[${index}]`);
    const repetition = repetitionOf((name) => context.header(name), await context.bytes(), undefined);
    const turn = replays.find(repetition) ?? (await this.begin(request, repetition));
    const log = logOf(turn);
    if (request.stream === true) return this.#options.answers.streamed(context, turn, new LiveFrames(log.state), []);
    if (request.background === true) return json(200, responseBody(log.state));
    return this.#options.answers.whole(context, turn, () => responseBody(log.state), []);
  };

  /** `GET /v1/responses/{id}`: the response so far, or its events after `starting_after`. */
  readonly read = async (context: RequestContext): Promise<Reply> => {
    const id = context.params['id'] ?? '';
    const after = afterOf(context.query);
    const turn = this.runningTurn(id);
    const state = this.stateOf(id);
    if (context.query.get('stream') !== 'true') return json(200, responseBody(state));
    if (turn) return this.#options.answers.streamed(context, turn, new LiveFrames(state, after), []);
    return eventReply((stream) => {
      stream.write(new ResponseFrames(state, after).take());
      stream.end();
    });
  };

  /** `POST /v1/responses/{id}/cancel` */
  readonly cancel = async (context: RequestContext): Promise<Reply> => {
    const id = context.params['id'] ?? '';
    return json(200, responseBody(await this.stop(id)));
  };

  /** `DELETE /v1/responses/{id}`: deletes the thread with its last response. */
  readonly delete = async (context: RequestContext): Promise<Reply> => {
    const { responses, runtime } = this.#options;
    const id = context.params['id'] ?? '';
    const { threadId, isEnded } = this.#stored(id);
    if (!isEnded) throw chatError('responseInProgress', `The response is in progress: cancel it first.`);
    responses.delete(id);
    if (!responses.latest(threadId)) {
      const announce = await runtime.threads.delete(threadId).catch((error: unknown) => {
        // The turn never began, so there is no thread.
        if (error instanceof AgentError && error.reason === 'threadNotFound') return undefined;
        throw explained(error);
      });
      announce?.();
    }
    return json(200, { id, object: 'response', deleted: true });
  };

  /** Returns the state of a stored response. @throws HttpError 404 */
  stateOf(id: string): ResponseState {
    const turn = this.runningTurn(id);
    return turn ? logOf(turn).state : stateOf(this.#stored(id));
  }

  /** Cancels the turn of a stored response, if it is running. @throws HttpError 404 */
  async stop(id: string): Promise<ResponseState> {
    const turn = this.runningTurn(id);
    if (!turn) return this.stateOf(id);
    turn.stop();
    await turn.ended;
    return logOf(turn).state;
  }

  /** Starts the turn of a request. @throws HttpError */
  async begin(request: ResponsesRequest, repetition: Repetition): Promise<ChatTurn> {
    const { models, replays, turns } = this.#options;
    const chosen = await models.choose(request.model ?? undefined).catch((error: unknown) => {
      throw explained(error);
    });
    let previous = await this.#previousOf(request);
    // Another request may have continued the thread in the meantime.
    while (previous?.isThread && !this.#isNewest(request, previous)) previous = await this.#previousOf(request);
    let turn: ChatTurn | undefined;
    try {
      // Another request may have started the same turn in the meantime.
      const known = replays.find(repetition);
      if (known) return known;
      const plan = this.#planOf(request, chosen, previous);
      const { id, isStored } = plan.response.log.state.head;
      turn = turns.begin(plan, chosen, {
        isNamed: repetition.hasKey || plan.sessionId !== undefined,
        // The client can read a stored response by its id, so its turn is stored even if the client cannot repeat the request.
        onMade: (made) => replays.add(isStored && repetition.name === undefined ? namedBy(id) : repetition, made),
      });
      return turn;
    } finally {
      if (!turn) await this.#dropFork(previous);
    }
  }

  #planOf(request: ResponsesRequest, { used }: ChosenModels, previous: Previous | undefined) {
    const system = [...(previous?.system ?? []), ...systemTexts(request)];
    const plan = responsePlan(request, {
      item: (id, param) => this.#itemOf(id, param),
      system: previous?.system ?? [],
    });
    const isStored = request.store !== false;
    const log = new ResponseLog({
      id: `resp_${randomUUID().replaceAll('-', '')}`,
      created: Math.floor(Date.now() / 1000),
      model: used,
      fields: repeatedFields(request),
      customTools: (offeredTools(request) ?? []).filter(({ type }) => type === 'custom').map(({ name }) => name),
      system,
      isStored,
      isBackground: request.background === true,
      first: 0,
    });
    const threadId =
      previous?.threadId ?? (isStored ? `thread_response_${randomUUID().replaceAll('-', '')}` : undefined);
    return {
      ...plan,
      ...(isStored && { sessionId: threadId }),
      response: { log, threadId, tracedAs: isStored ? undefined : tracedAs(request) },
    } satisfies Plan;
  }

  /** Deletes a fork without turns. */
  async #dropFork(previous: Previous | undefined): Promise<void> {
    if (previous?.isThread !== false) return;
    (await this.#options.runtime.threads.delete(previous.threadId))();
  }

  /**
   * Conversation that the request continues: the thread itself after its newest response, or else a fork of it.
   *
   * @throws HttpError 400 for an unknown response
   */
  async #previousOf({ previous_response_id: id, store }: ResponsesRequest): Promise<Previous | undefined> {
    if (id === undefined || id === null) return undefined;
    const { runtime, responses } = this.#options;
    const unknown = () =>
      chatError(
        'previousResponseNotFound',
        `There is no response ${id.slice(0, 100)} here: send its conversation in input.`,
        {
          param: 'previous_response_id',
        },
      );
    const found = responses.get(id);
    if (!found) throw unknown();
    const { system } = stateOf(found).head;
    const { threadId } = found;
    const thread = { threadId, system, isThread: true };
    if (store !== false && this.#isNewest({ previous_response_id: id }, thread)) return thread;
    await this.runningTurn(id)?.ended;
    const { turnId } = responses.get(id) ?? found;
    if (turnId === undefined) throw unknown();
    const fork = await runtime.files
      .fork(threadId, { atTurnId: turnId, worktree: false, displayName: undefined, agent: undefined })
      .catch((error: unknown) => {
        throw explained(error);
      });
    fork.announce();
    return { threadId: fork.thread.id, system, isThread: false };
  }

  #isNewest(
    { previous_response_id: id }: Pick<ResponsesRequest, 'previous_response_id'>,
    { threadId }: Previous,
  ): boolean {
    return this.#options.responses.latest(threadId)?.id === id;
  }

  /** An item of a stored response, as an item of an input. */
  #itemOf(id: string, param: string): Item {
    const { responses } = this.#options;
    const named = placeOfItem(id);
    const stored = named && responses.get(named.responseId);
    const item = stored && stateOf(stored).items[named.place];
    if (!item) throw invalidParameter(param, `There is no item ${id.slice(0, 100)} here: send the item itself.`);
    if (item.kind === 'reasoning') return { type: 'reasoning' };
    if (!item.call) return { type: 'message', role: 'assistant', content: item.text };
    const call = { call_id: item.call.id, name: item.call.name };
    return item.kind === 'custom'
      ? { type: 'custom_tool_call', ...call, input: customInput(item.text) }
      : { type: 'function_call', ...call, arguments: item.text };
  }

  /** Running turn of a stored response. */
  runningTurn(id: string): ChatTurn | undefined {
    const turn = this.#options.turns.find(id);
    return turn?.response?.state.head.isStored ? turn : undefined;
  }

  /** @throws HttpError 404 */
  #stored(id: string): StoredResponse {
    const stored = this.#options.responses.get(id);
    if (!stored)
      throw chatError(
        'responseNotFound',
        `There is no response ${id.slice(0, 100)} here: it was deleted, or never stored.`,
      );
    return stored;
  }

  /** Ends responses whose turn does not continue after the death of an agent server. */
  #endLost(): void {
    const { responses, turns } = this.#options;
    for (const stored of responses.unfinished()) {
      if (turns.find(stored.id)) continue;
      const error =
        stored.turnId === undefined
          ? chatError('shuttingDown', 'The agent server ended before the turn began: send the request again.')
          : outcomeUnknown();
      const state = { ...stateOf(stored), status: 'failed', error: errorObjectOf(error) };
      responses.put(stored.id, JSON.stringify(state), true);
    }
  }
}

/**
 * Thread id for a client that sends the whole conversation with each request. Equal for an equal `prompt_cache_key`, or for equal
 * messages up to the first message of the user.
 */
function tracedAs({ prompt_cache_key: key, instructions, input, user }: ResponsesRequest): string {
  const isUser = (item: Item) => item.type === 'message' && item.role === 'user';
  const beginning = typeof input === 'string' ? input : input.slice(0, input.findIndex(isUser) + 1);
  const named = key === undefined || key === null || key === '' ? [instructions ?? '', beginning] : key;
  return `thread_stateless_${hash('sha256', JSON.stringify([user ?? '', named])).slice(0, 24)}`;
}

interface Previous {
  readonly threadId: string;
  /** False: the thread is a new fork. */
  readonly isThread: boolean;
  /** System messages in the inputs so far. */
  readonly system: readonly string[];
}

const stateOf = ({ json: text }: StoredResponse): ResponseState => JSON.parse(text) as ResponseState;

/** @throws HttpError 422 when the key of the request was used for a chat completion */
function logOf({ response }: ChatTurn): ResponseLog {
  if (response) return response;
  throw chatError('idempotencyKeyReused', 'This Idempotency-Key was used for another request: send a new key.', {
    param: 'Idempotency-Key',
  });
}

/** Name under which the turn of a stored response is found after a restart. */
const namedBy = (id: string): Repetition => ({
  name: id,
  hasKey: false,
  hasCount: false,
  isRetry: false,
  fingerprint: '',
});

function afterOf(query: URLSearchParams): number | undefined {
  const given = query.get('starting_after');
  if (given === null) return undefined;
  if (/^\d{1,15}$/.test(given)) return Number(given);
  throw invalidParameter('starting_after', 'starting_after must be a sequence number.');
}

/** Fields of the request that the response repeats, with defaults for omitted fields. */
function repeatedFields(request: ResponsesRequest): ResponseState['head']['fields'] {
  const { text, reasoning } = request;
  return {
    previous_response_id: request.previous_response_id ?? null,
    instructions: request.instructions ?? null,
    tools: offeredTools(request) ?? [],
    tool_choice: request.tool_choice ?? 'auto',
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    temperature: request.temperature ?? null,
    top_p: request.top_p ?? null,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    top_logprobs: 0,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    text: { format: text?.format ?? { type: 'text' }, ...(text?.verbosity && { verbosity: text.verbosity }) },
    truncation: request.truncation ?? 'disabled',
    metadata: request.metadata ?? {},
    store: request.store ?? true,
    background: request.background ?? false,
    service_tier: request.service_tier ?? 'default',
    user: request.user ?? null,
    safety_identifier: request.safety_identifier ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
  };
}
