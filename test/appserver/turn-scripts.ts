/** Scripts of the model in `turn-victim.ts`. A prompt `script NAME ID` chooses one; ID names its files and its effects. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ModelError, type ModelEvent, type ModelMessage, type ModelRequest } from '../../src/agent/model.ts';
import { forms, refusalOf } from '../agent/runtime/quota-forms.ts';

/** Hub that is killed first. Alone: its agent server lives. */
export interface HubVictim {
  readonly pid: number;
  readonly isAlone: boolean;
}

/** Moment at which an agent server kills itself, in `kill.json` of its home, and its Hub. */
export type Moment = { readonly hub?: HubVictim | undefined } & When;

type When =
  /** A turn enters a state (for the first time, or this often), or the first commit after that is done. */
  | { readonly kind: 'state'; readonly state: string; readonly at: 'entry' | 'commit'; readonly times?: number }
  /** The model has received this many requests of the turn, and answers none of them. */
  | { readonly kind: 'request'; readonly number: number }
  /** Number of a transition, of a begin or end of a commit, or of an event of the model, since the first turn. */
  | { readonly kind: 'step'; readonly step: number };

/** One request to the model, in `requests.jsonl` of the home. */
export interface RequestLine {
  readonly id: string;
  readonly messages: readonly ModelMessage[];
}

export interface Asked {
  readonly id: string;
  readonly request: ModelRequest;
  /** Earlier requests of this script. */
  readonly tries: number;
  /** Answers with calls in the conversation, since the prompt. */
  readonly rounds: number;
}

type Script = (asked: Asked) => readonly ModelEvent[];

export const longText = 'word '.repeat(5_000);
const say = (text: string): ModelEvent => ({ type: 'text', text });
const usage = (costUsd = 0): ModelEvent => ({ type: 'usage', inputTokens: 1, outputTokens: 1, costUsd });
const call = (callId: string, name: string, args: unknown): ModelEvent => ({
  type: 'toolCall',
  call: { callId, name, arguments: JSON.stringify(args) },
});
/** A command that leaves one line in the file of effects. */
const effect = (id: string, number: number): ModelEvent =>
  call(`${id}-e${number}`, 'Exec', { command: `echo ${id}.${number} >> effects` });

const once: Script = ({ id, rounds }) => (rounds === 0 ? [effect(id, 1), usage()] : [say(`done ${id}`), usage()]);

/** Reads, runs commands one after the other, writes and edits a file. */
const work: Script = ({ id, rounds }) => {
  const file = `${id}.txt`;
  const steps: readonly (readonly ModelEvent[])[] = [
    [call(`${id}-r`, 'ReadFile', { path: 'notes.txt' })],
    [say('Two commands.'), effect(id, 1), effect(id, 2)],
    [call(`${id}-w`, 'WriteFile', { path: file, content: 'one\n' }), effect(id, 3)],
    [call(`${id}-d`, 'EditFile', { path: file, oldText: 'one', newText: 'one two' })],
  ];
  return [...(steps[rounds] ?? [say('all '), say('done '), say(id)]), usage()];
};

export const scripts = {
  once,
  work,
  retry(asked) {
    if (asked.tries > 0) return once(asked);
    throw new ModelError('upstreamFailed', 'The upstream is busy.', { isRetryable: true, retryAfterMs: 1 });
  },
  fallBack(asked) {
    if (asked.tries > 0) return once(asked);
    throw new ModelError('upstreamFailed', 'The model is gone.', { isRetryable: false });
  },
  picture: ({ id, rounds }) =>
    rounds === 0 ? [call(`${id}-r`, 'ReadFile', { path: 'pixel.png' }), usage()] : [say(`done ${id}`), usage()],
  /** Needs an approval. */
  ask: once,
  /** Uses up the budget of its turn. */
  spend: ({ id, rounds }) =>
    rounds === 0 ? [call(`${id}-r`, 'ReadFile', { path: 'notes.txt' }), usage(0.75)] : [say(`done ${id}`), usage()],
  /** Is refused until the quota of its turn is free. */
  quota({ id }) {
    if (existsSync(join(process.env['ORATORIO_HOME'] ?? '', `free-${id}`))) return [say(`done ${id}`), usage()];
    throw new ModelError('upstreamRateLimited', 'Used up.', { retryAfterMs: 3_600_000, resetMs: 3_600_000 });
  },
  /** Is refused until the time in the file `reset-ID` of the home, with the form that the file names. */
  refused({ id }) {
    const file = join(process.env['ORATORIO_HOME'] ?? '', `reset-${id}`);
    const { name, reset }: { readonly name: string; readonly reset: number } = JSON.parse(readFileSync(file, 'utf8'));
    const now = Date.now();
    if (now >= reset) return [say(`done ${id}`), usage()];
    throw refusalOf(forms[name] ?? {}, { now, theirs: now, ms: reset - now });
  },
  compact: ({ id }) => [say(`done ${id}`), usage()],
  conclude: ({ id, request, rounds }) =>
    request.toolChoice !== 'none'
      ? [call(`${id}-r${rounds}`, 'ReadFile', { path: `notes${rounds}.txt` }), usage()]
      : [say(`found ${id}`), usage()],
  poison() {
    process.kill(process.pid, 'SIGKILL');
    return [];
  },
  hang: ({ id, rounds }) =>
    rounds === 0
      ? [call(`${id}-h`, 'Exec', { command: 'echo started; sleep 3031' }), usage()]
      : [say(`done ${id}`), usage()],
  inquire: ({ id, rounds }) => {
    const question = { header: 'Colour', question: 'Which one?', options: [{ label: 'red' }, { label: 'blue' }] };
    return rounds === 0
      ? [call(`${id}-q`, 'AskUser', { questions: [question] }), usage()]
      : [say(`done ${id}`), usage()];
  },
  /** Runs a command that waits for the file `go`. */
  long: ({ id, rounds }) =>
    rounds === 0
      ? [
          call(`${id}-l`, 'Exec', {
            command: `echo started; until [ -e go ]; do sleep 0.1; done; echo ${id}.1 >> effects`,
          }),
          usage(),
        ]
      : [say(`done ${id}`), usage()],
} as const satisfies Readonly<Record<string, Script>>;
export type ScriptName = keyof typeof scripts;

const textOf = (message: ModelMessage): string => JSON.stringify(message);
const promptOf = /script (\w+) (\w+)/g;

/** Answer of the script of a request. A request for a summary has an answer of its own. */
export function answerTo(
  request: ModelRequest,
  triesOf: (id: string) => number,
): {
  readonly id: string;
  readonly answer: () => readonly ModelEvent[];
} {
  const { messages } = request;
  const last = messages.findLastIndex((message) => message.role === 'user' && textOf(message).match(promptOf) !== null);
  const [, name = '', id = ''] =
    [...textOf(messages[last] ?? { role: 'system', text: '' }).matchAll(promptOf)].at(-1) ?? [];
  if (textOf(messages.at(-1) ?? { role: 'system', text: '' }).includes('Summarise the conversation')) {
    return { id: 'summary', answer: () => [say('SUMMARY'), usage()] };
  }
  const rounds = messages
    .slice(last)
    .filter((message) => message.role === 'assistant' && message.toolCalls.length > 0).length;
  const script: Script = scripts[name as ScriptName];
  const asked: Asked = { id, request, tries: triesOf(id), rounds };
  return { id, answer: () => script(asked) };
}
