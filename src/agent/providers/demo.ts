import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ModelEvent, ModelInfo, ModelProvider, ModelRequest } from '../model.ts';

const label = 'Demo model (offline, no AI):';
const countLimit = 1_000;
/** Without a pause, other work of the process must still get its turn. */
const wordsPerBreath = 64;

export interface DemoOptions {
  /** Milliseconds between two words, so that a stream looks like one. Default 12. */
  readonly paceMs?: number;
}

/**
 * The built-in provider (DESIGN §7): no network, no chance, the same answer to the same words. Every answer begins by
 * saying what it is.
 */
export class DemoProvider implements ModelProvider {
  readonly name = 'demo';
  readonly model = 'demo';
  readonly #paceMs: number;

  constructor({ paceMs = 12 }: DemoOptions = {}) {
    this.#paceMs = paceMs;
  }

  async *stream({ messages }: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    const asked = messages.at(-1)?.text ?? '';
    const { thought, answer } = answerTo(asked);
    for await (const text of this.#spoken(thought, signal)) yield { type: 'thinking', text };
    for await (const text of this.#spoken(`${label} ${answer}`, signal)) yield { type: 'text', text };
    const inputTokens = messages.reduce((sum, message) => sum + countWords(message.text), 0);
    yield { type: 'usage', inputTokens, outputTokens: countWords(thought) + countWords(answer) + countWords(label) };
  }

  async listModels(): Promise<readonly ModelInfo[]> {
    return [{ id: this.model, ownedBy: 'oratorio' }];
  }

  async *#spoken(text: string, signal: AbortSignal): AsyncIterable<string> {
    let spoken = 0;
    for (const [word] of text.matchAll(/\s*\S+\s*?/g)) {
      spoken += 1;
      if (this.#paceMs > 0) await sleep(this.#paceMs, undefined, { signal });
      else if (spoken % wordsPerBreath === 0) await nextTurn();
      signal.throwIfAborted();
      yield word;
    }
  }
}

const countWords = (text: string): number => text.match(/\S+/g)?.length ?? 0;

interface Answer {
  readonly thought: string;
  readonly answer: string;
}

const abilities =
  'I can greet you, repeat what you say ("echo …"), count ("count to 20") and tell what I can do ("help"). ' +
  'For real answers set ApiKey, or EndPoint, and Model in .oratorio/config.json.';

/** The first rule that fits answers. */
const rules: readonly { readonly when: RegExp; readonly say: (found: RegExpExecArray) => Answer }[] = [
  {
    when: /^\s*echo\s+([\s\S]+)$/i,
    say: ([, words = '']) => ({ thought: 'I am asked to repeat something.', answer: words.trim() }),
  },
  {
    when: /\bcount\s+(?:up\s+)?to\s+(\d{1,15})\b/i,
    say: ([, goal = '0']) => countTo(Number(goal)),
  },
  {
    when: /^\s*(?:hello|hi|hey|good (?:morning|afternoon|evening)|greetings)\b/i,
    say: () => ({ thought: 'I am greeted, so I greet back.', answer: `Hello! ${abilities}` }),
  },
  {
    when: /\b(?:help|what can you do|who are you|what are you)\b/i,
    say: () => ({ thought: 'I am asked what I am for.', answer: abilities }),
  },
  {
    when: /^\s*$/,
    say: () => ({ thought: 'There are no words in this message.', answer: `You said nothing. ${abilities}` }),
  },
];

function answerTo(asked: string): Answer {
  for (const { when, say } of rules) {
    const found = when.exec(asked);
    if (found) return say(found);
  }
  return {
    thought: 'None of my rules fits, so I repeat what was said.',
    answer: `You said: ${asked.trim()}\n\nI only follow a few rules and cannot think about it. ${abilities}`,
  };
}

function countTo(goal: number): Answer {
  const end = Math.min(goal, countLimit);
  const numbers = Array.from({ length: end }, (_, index) => index + 1).join(' ');
  const rest = goal > countLimit ? ` … and so on; I stop at ${countLimit}.` : '';
  return {
    thought: `I am asked to count to ${goal}.`,
    answer: end === 0 ? 'Done: there is nothing to count.' : numbers + rest,
  };
}
