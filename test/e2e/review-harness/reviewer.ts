/** Model that reviews by rules: it recognises known faults in the same input that a real model gets. */
import type { Severity } from '../../../src/protocol/index.ts';
import {
  type Answer,
  answered,
  type MockUpstream,
  refusal,
  type Script,
  startMockUpstream,
  type UpstreamRequest,
  wait,
} from '../../fixtures/upstream/mock-upstream.ts';
import { lastWords, toolCall } from '../agent-server.ts';
import type { Teardown } from '../harness.ts';

/** Something that is wrong wherever these lines are. */
export interface KnownFault {
  /** Whole lines. */
  readonly lines: string;
  readonly title: string;
  readonly severity: Severity;
  readonly better?: string;
}

/** One request of one review. */
export interface ReviewTurn {
  readonly number: number;
  readonly headSha: string;
  /** User message of the request. */
  readonly task: string;
  /** Answers that the model has given in this turn. */
  readonly round: number;
  readonly request: UpstreamRequest;
}

/** Request to the model whose answer waits for `release`. */
export interface HeldAnswer {
  readonly reached: Promise<void>;
  release(): void;
}

interface Standstill {
  readonly fits: (turn: ReviewTurn) => boolean;
  readonly onReached: () => void;
  readonly until: Promise<void>;
}

export class Reviewer {
  readonly #faults: readonly KnownFault[];
  readonly #standstills = new Set<Standstill>();
  readonly #refusals: ((turn: ReviewTurn) => boolean)[] = [];
  /** Every request of every review, in order. */
  readonly turns: ReviewTurn[] = [];
  #upstream: MockUpstream | undefined;

  constructor(faults: readonly KnownFault[]) {
    this.#faults = faults;
  }

  async start(t: Teardown): Promise<this> {
    this.#upstream = await startMockUpstream(t, (request) => this.#reply(request));
    return this;
  }

  get url(): string {
    return this.#upstream?.url ?? '';
  }

  /** The tasks that it was given for a pull request: one for each time it was asked to review it. */
  tasks(number: number): readonly string[] {
    return this.turns.filter((turn) => turn.number === number && turn.round === 0).map(({ task }) => task);
  }

  /** Keeps it from answering. */
  hold(fits: (turn: ReviewTurn) => boolean): HeldAnswer {
    const reached = Promise.withResolvers<void>();
    const until = Promise.withResolvers<void>();
    const standstill = { fits, onReached: reached.resolve, until: until.promise };
    this.#standstills.add(standstill);
    const release = () => {
      this.#standstills.delete(standstill);
      until.resolve();
    };
    return { reached: reached.promise, release };
  }

  /** The next such request is refused, as by an upstream that is overloaded. */
  refuseOnce(fits: (turn: ReviewTurn) => boolean): void {
    this.#refusals.push(fits);
  }

  #reply(request: UpstreamRequest): Script {
    const turn = turnOf(request);
    if (!turn) return answered(request, { text: 'This is not about a review.' });
    this.turns.push(turn);
    const refused = this.#refusals.findIndex((fits) => fits(turn));
    if (refused >= 0) {
      this.#refusals.splice(refused, 1);
      return refusal(503, { message: 'Overloaded.', type: 'server_error' });
    }
    const script = answered(request, this.#answer(turn));
    const held = [...this.#standstills].find(({ fits }) => fits(turn));
    if (!held) return script;
    held.onReached();
    return [wait(held.until), ...script];
  }

  /** Reads every changed file, then submits its draft, then ends the turn. */
  #answer({ task, round, request }: ReviewTurn): Answer {
    const paths = [...task.matchAll(/^### (\S+) \((?:added|modified|renamed)/gm)].map(([, path = '']) => path);
    if (round === 0) return { toolCalls: [...new Set(paths)].map((path) => toolCall('ReadFile', { path })) };
    if (round > 1) return { text: 'I have handed it in.' };
    const files = readFiles(request);
    return { toolCalls: [...this.#resolutions(task, files), this.#draft(files)] };
  }

  /** Resolutions of earlier findings whose lines are no longer in the files. */
  #resolutions(task: string, files: ReadonlyMap<string, string>) {
    const open = [...task.matchAll(/^Finding (\S+) \([^)]*\):\n(`{3,})text\n([\s\S]*?)\n\2$/gm)];
    return open.flatMap(([, findingId, , text = '']) => {
      const fault = this.#faults.find(({ title }) => text.includes(title));
      if (!fault || pathOf(files, fault) !== undefined) return [];
      return [toolCall('ResolveReviewFinding', { findingId, resolution: 'fixed', note: 'It is gone.' })];
    });
  }

  /** Draft with all faults in the files, also those of earlier reviews, because models repeat findings. */
  #draft(files: ReadonlyMap<string, string>) {
    const findings = this.#faults.flatMap((fault) => {
      const { lines, title, severity, better } = fault;
      const path = pathOf(files, fault);
      if (path === undefined) return [];
      const body = `${title}: look at it again.`;
      return [{ severity, title, body, path, oldText: lines, ...(better !== undefined && { newText: better }) }];
    });
    return toolCall('SubmitReviewDraft', { summary: `It has ${findings.length} faults.`, findings });
  }
}

function turnOf(request: UpstreamRequest): ReviewTurn | undefined {
  const { words, answers } = lastWords(request);
  const [, number, headSha = ''] = /^# Pull request (\d+) at ([0-9a-f]{40})$/m.exec(words) ?? [];
  if (number === undefined) return;
  return { number: Number(number), headSha, task: words, round: answers, request };
}

interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
}

/** Contents of the files that the model has read, by path. */
function readFiles({ body }: UpstreamRequest): Map<string, string> {
  const messages: readonly Message[] = body.messages;
  const calls = messages
    .flatMap(({ tool_calls = [] }) => tool_calls)
    .filter((call) => call.function.name === 'ReadFile');
  return new Map(
    calls.flatMap((call) => {
      const result = messages.find(({ tool_call_id }) => tool_call_id === call.id);
      const { path } = JSON.parse(call.function.arguments) as { path: string };
      return result ? [[path, String(result.content)] as const] : [];
    }),
  );
}

const pathOf = (files: ReadonlyMap<string, string>, { lines }: KnownFault): string | undefined =>
  [...files].find(([, text]) => `\n${text}\n`.includes(`\n${lines}\n`))?.[0];
