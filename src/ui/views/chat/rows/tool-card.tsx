import { useMemo, useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { placeInWords, placeOf } from '../../../../protocol/browser.ts';
import { duration } from '../../../parts/format.ts';
import { Mark } from '../../../parts/icons.tsx';
import { clockTime } from '../../../parts/time.ts';
import type { Shape, Tone } from '../../../parts/tone.ts';
import { type FileChange, wordsOf } from '../data/call-words.ts';
import type { Conversation } from '../data/conversation.ts';
import { rowsOfChange, rowsOfPatch } from '../data/diff-rows.ts';
import type { Decided, ToolRow } from '../data/rows.ts';
import { DiffView } from './diff-view.tsx';
import { LongText } from './long-text.tsx';

interface CardState {
  readonly word: string;
  readonly tone: Tone;
  readonly shape: Shape;
}

/** A tool call: one line with its action and target, and its output below when it is open. */
export function ToolCard({
  conversation,
  row,
  version,
}: {
  readonly conversation: Conversation;
  readonly row: ToolRow;
  /** Version of the row, which is changed in place. */
  readonly version: number;
}) {
  const [chosen, setChosen] = useState<boolean | null>(conversation.opened.get(row.key) ?? null);
  const state = stateOf(row, conversation);
  const isOpen = chosen ?? (row.outcome === 'failed' || (row.outcome === null && row.output !== null));
  const { verb, target, change } = wordsOf(row);
  const toggle = () => {
    conversation.choose(row);
    conversation.opened.set(row.key, !isOpen);
    setChosen(!isOpen);
  };
  return (
    <section
      class={`card ${state.tone}`}
      aria-label={`${verb} ${target}`}
      aria-current={conversation.chosen.value === row.key ? 'true' : undefined}
    >
      <button type="button" class="bare" aria-expanded={isOpen} onClick={toggle}>
        <span class="twist" aria-hidden="true" />
        <Mark tone={state.tone} shape={state.shape} />
        <b>{verb}</b>
        <span class="mono cut">{target}</span>
        <span class="quiet state">{state.word}</span>
        {row.durationMs !== undefined && <span class="quiet">{duration(row.durationMs)}</span>}
      </button>
      {row.decided && <p class="quiet decided">{decidedWords(row.decided, conversation, row)}</p>}
      {isOpen && (
        <div class="inside">
          <Inside row={row} version={version} change={change} />
        </div>
      )}
    </section>
  );
}

interface PartProps {
  readonly row: ToolRow;
  readonly version: number;
}

/** Whole arguments, unless the line above shows them. */
function Arguments({ row }: PartProps) {
  const { target } = wordsOf(row);
  const command = row.tool === 'Exec' && target.length < 120 && !target.includes('\n');
  if (command || row.argumentsText === '' || row.argumentsText === '{}') return null;
  return <LongText text={row.argumentsText} isCode={true} />;
}

/** The requested change, or the arguments; then the output. A diff in the output replaces the requested change. */
function Inside({ row, version, change }: PartProps & { readonly change: FileChange | null }) {
  const isRunning = row.outcome === null;
  const text = row.output ?? row.result ?? '';
  const patch = useMemo(() => (isRunning ? null : rowsOfPatch(text)), [text, isRunning]);
  const asked = useMemo(() => (change ? rowsOfChange(change) : null), [change]);
  return (
    <>
      {asked === null && <Arguments row={row} version={version} />}
      {asked !== null && patch === null && <DiffView rows={asked} />}
      {patch ? <DiffView rows={patch} /> : <Output text={text} isRunning={isRunning} />}
    </>
  );
}

function Output({ text, isRunning }: { readonly text: string; readonly isRunning: boolean }) {
  if (text === '') return isRunning ? null : <p class="quiet">No output.</p>;
  return <LongText text={text} isCode={true} isEnd={isRunning} />;
}

function stateOf(row: ToolRow, conversation: Conversation): CardState {
  switch (row.outcome) {
    case 'completed':
      if (row.exitCode !== undefined && row.exitCode !== 0) {
        return { word: `exit ${row.exitCode}`, tone: 'warn', shape: 'triangle' };
      }
      return { word: 'done', tone: 'ok', shape: 'disc' };
    case 'failed':
      return { word: 'failed', tone: 'danger', shape: 'cross' };
    case 'declined':
      return { word: 'not allowed', tone: 'warn', shape: 'square' };
    case 'unknown':
      return { word: 'unknown', tone: 'warn', shape: 'triangle' };
    case 'cancelled':
      return { word: 'interrupted', tone: 'neutral', shape: 'square' };
    case null: {
      const { requestId } = row.approval ?? {};
      const waits =
        requestId !== undefined && conversation.approvals.value.some((each) => each.requestId === requestId);
      if (waits) return { word: 'waits for you', tone: 'warn', shape: 'diamond' };
      return { word: 'running', tone: 'progress', shape: 'arc' };
    }
  }
}

function decidedWords({ decision, decidedBy, client, at }: Decided, conversation: Conversation, row: ToolRow): string {
  const isAllowed = decision === 'accept' || decision === 'acceptForSession' || decision === 'acceptAlways';
  const time = clockTime(Date.parse(at)).slice(0, 5);
  if (decidedBy === 'timeout') return `Declined without an answer, ${time}`;
  if (decidedBy === 'policy')
    return isAllowed ? `Allowed by a rule, ${time}` : `Not allowed: no person was asked, ${time}`;
  const scope = decision === 'acceptForSession' ? ' for this session' : decision === 'acceptAlways' ? ' always' : '';
  const place = client === undefined ? '' : placeOf(client);
  const isHere = place === 'page' && conversation.isDecidedHere(row.approval?.requestId ?? '');
  const where = place === '' || isHere ? '' : ` ${visible(placeInWords(place), { multiline: false })}`;
  return `${isAllowed ? 'Allowed' : 'Declined'}${scope}${where}, ${visible(time)}`;
}
