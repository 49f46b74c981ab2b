import type { FileDiff, RaceAttempt, ThreadSummary, Turn } from '../../../../protocol/index.ts';
import type { Tone } from '../../../parts/tone.ts';
import type { Conversation } from '../data/conversation.ts';

/** A fork that takes part in the race of its original. */
export type Attempt = ThreadSummary & { readonly race: RaceAttempt };

/** Attempts of the race of a thread, by their numbers. */
export function attemptsOf(threads: readonly ThreadSummary[] | null, threadId: string | null): readonly Attempt[] {
  return (threads ?? [])
    .flatMap((thread) => {
      const race = thread.config?.race;
      return race && threadId !== null && thread.forkedFromThreadId === threadId ? [{ ...thread, race }] : [];
    })
    .sort((a, b) => a.race.number - b.race.number);
}

/** Conversations whose forks are attempts. */
export function racesOf(threads: readonly ThreadSummary[] | null): readonly ThreadSummary[] {
  const all = threads ?? [];
  const originals = new Set(
    all.flatMap(({ config, forkedFromThreadId }) => (config?.race ? [forkedFromThreadId] : [])),
  );
  return all.filter(({ id }) => originals.has(id));
}

/** Failures of an attempt before its check. */
const failureWords: Readonly<Record<string, string>> = {
  agentUnavailable: 'Agent not available',
  agentLoginRequired: 'Agent needs a log-in',
  agentExited: 'Agent ended',
  checkFailed: 'Check not started',
};

/** State of an attempt in words. A race with a killed command has no result. */
export function stateOf({ race, runtime }: Pick<Attempt, 'race' | 'runtime'>): readonly [string, Tone] {
  if (race.restoreId !== undefined) return ['Applied', 'ok'];
  if (race.failure) return [failureWords[race.failure.code] ?? 'Turn failed', 'danger'];
  switch (race.state) {
    case 'working':
      if (runtime.waitingOnApproval) return ['Waits for your decision', 'warn'];
      return runtime.running ? ['Working', 'progress'] : ['No result yet', 'neutral'];
    case 'checking':
      return ['Check runs', 'progress'];
    case 'passed':
      return ['Check passed', 'ok'];
    case 'failed':
      return ['Check failed', 'danger'];
    case 'stopped':
      return ['Stopped: another attempt passed', 'neutral'];
  }
}

/** Cost, time and changes of one attempt. */
export interface AttemptFacts {
  readonly costUsd: number | null;
  readonly durationMs: number | null;
  readonly diff: FileDiff;
}

/** Reads cost, time and changes of an attempt up to now. */
export async function readFacts(conversation: Conversation, threadId: string): Promise<AttemptFacts> {
  const [{ thread }, diff] = await Promise.all([
    conversation.call('thread/read', { threadId, includeTurns: true, turnLimit: 1 }),
    conversation.call('turn/diff', { threadId, format: 'summary' }),
  ]);
  const turn = thread.turns?.at(-1);
  return { costUsd: turn?.tokenUsage?.costUsd ?? null, durationMs: turn ? durationOf(turn) : null, diff };
}

function durationOf({ startedAt, completedAt }: Turn): number | null {
  return completedAt === undefined ? null : Math.max(0, Date.parse(completedAt) - Date.parse(startedAt));
}
