import { agentLimits, agentWords, lastTurnWords, modelWords } from '../../../protocol/browser.ts';
import type { AppServerRecord } from '../../../protocol/index.ts';
import { bothTimes, distance } from '../../parts/time.ts';

/** `not answering` as `Not answering`. */
export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

interface AnsweringProps {
  readonly record: Pick<AppServerRecord, 'agent' | 'model'>;
}

/** Name of an external agent, or the model of our own. */
export function Answering({ record: { agent, model } }: AnsweringProps) {
  if (agent && agent.kind !== 'oratorio') {
    const tone = agent.approvals === 'none' ? 'warn' : 'neutral';
    return (
      <span class={`pill ${tone}`} title={agentLimits(agent).join('\n')}>
        {agentWords(agent)}
      </span>
    );
  }
  return <>{model ? modelWords(model) : '–'}</>;
}

interface LastTurnProps {
  readonly record: Pick<AppServerRecord, 'lastTurn' | 'failuresInARow'>;
  readonly now: number;
}

/** End of the last turn, and how long ago it was. */
export function LastTurn({ record: { lastTurn, failuresInARow }, now }: LastTurnProps) {
  if (lastTurn === null) return <>–</>;
  const at = Date.parse(lastTurn.endedAt);
  return (
    <span class={lastTurn.status === 'failed' ? 'danger' : ''} title={bothTimes(at)}>
      {lastTurnWords(lastTurn, failuresInARow)}, {distance(at, now)}
    </span>
  );
}

/** Time of the last known state of a workspace whose host is not connected. */
export function AsOf({ at, now }: { readonly at: string | null; readonly now: number }) {
  if (at === null) return null;
  const read = Date.parse(at);
  return (
    <span class="quiet" title={bothTimes(read)}>
      {' '}
      as of {distance(read, now)}
    </span>
  );
}
