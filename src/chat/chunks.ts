import { sseFrame } from '../lib/index.ts';
import type { TokenUsage } from '../protocol/index.ts';
import type { Activity } from './activity.ts';
import type { ChatTurn } from './chat-turn.ts';
import type { CallPiece } from './client-calls.ts';
import { type ErrorObject, errorObjectOf } from './errors.ts';
import type { Frames } from './stream-reply.ts';
import type { Outcome } from './watcher.ts';

/** Names of the wire for why an answer ended. */
export const finishReasons = {
  stop: 'stop',
  length: 'length',
  toolCalls: 'tool_calls',
  contentFilter: 'content_filter',
} as const satisfies Record<Outcome['finish'], string>;

/** All of it or nothing: strict readers fail on a part. */
export function usageOf({ inputTokens, outputTokens, totalTokens }: TokenUsage) {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: totalTokens };
}

const frame = (json: string): string => sseFrame({ data: json });

export const doneFrame = frame('[DONE]');
export const errorFrame = (error: ErrorObject): string => frame(JSON.stringify({ error }));

/**
 * Frames of one streamed answer, as strict readers want them: `id`, `object`, `created`, `model` and `choices` in each. The
 * common part of all of them is written out once; per piece of text only the text is serialised.
 */
export class Chunks implements Frames {
  readonly #head: string;
  readonly #choice: string;
  readonly #text: string;
  readonly #reasoning: string;
  readonly heartbeat: string;
  readonly #includesUsage: boolean;

  constructor({ id, created, model }: Pick<ChatTurn, 'id' | 'created' | 'model'>, includesUsage: boolean) {
    this.#includesUsage = includesUsage;
    const head = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#head = `data: ${head.slice(0, -1)},"choices":[`;
    this.#choice = `${this.#head}{"index":0,"delta":`;
    this.#text = `${this.#choice}{"content":`;
    this.#reasoning = `${this.#choice}{"reasoning_content":`;
    this.heartbeat = this.#delta('{}');
  }

  soFar({ activities, reasoning, textSoFar, calls }: ChatTurn): string {
    return [
      this.#delta('{"role":"assistant","content":""}'),
      ...activities.map((activity) => this.activity(activity, '')),
      reasoning === '' ? '' : this.reasoning(reasoning),
      textSoFar === '' ? '' : this.text(textSoFar),
      ...calls.map((call, index) => this.call({ index, begins: call, arguments: call.arguments })),
    ].join('');
  }

  text(text: string): string {
    return `${this.#text}${JSON.stringify(text)}},"finish_reason":null}]}\n\n`;
  }

  reasoning(text: string): string {
    return `${this.#reasoning}${JSON.stringify(text)}},"finish_reason":null}]}\n\n`;
  }

  /** A piece of a call: `index` is needed in each, and `arguments` is a string; nothing else is said twice. */
  call({ index, begins, arguments: given }: CallPiece): string {
    const call = begins
      ? { index, id: begins.id, type: 'function', function: { name: begins.name, arguments: given } }
      : { index, function: { arguments: given } };
    return this.#delta(JSON.stringify({ tool_calls: [call] }));
  }

  /** An ordinary chunk that says nothing in the words of the interface; readers that know `x_agent` find more. */
  activity(activity: Activity, line: string): string {
    const delta = line === '' ? '{}' : JSON.stringify({ reasoning_content: line });
    return `${this.#choice}${delta},"finish_reason":null}],"x_agent":${JSON.stringify(activity)}}\n\n`;
  }

  ending({ finish, usage, error }: Outcome): string {
    if (error) return errorFrame(errorObjectOf(error));
    const end = `${this.#choice}{},"finish_reason":"${finishReasons[finish]}"}]}\n\n`;
    return `${end}${this.#includesUsage && usage ? this.#usage(usage) : ''}${doneFrame}`;
  }

  /** Only on request: it has no choices, which simple readers do not expect. */
  #usage(usage: TokenUsage): string {
    return `${this.#head}],"usage":${JSON.stringify(usageOf(usage))}}\n\n`;
  }

  #delta(delta: string): string {
    return `${this.#choice}${delta},"finish_reason":null}]}\n\n`;
  }
}
