import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { price, visible } from '../../../../lib/browser.ts';
import type { InputPart } from '../../../../protocol/index.ts';
import { href } from '../../../app/router.ts';
import { duration } from '../../../parts/format.ts';
import { Glyph } from '../../../parts/glyphs.tsx';
import { dayTime } from '../../../parts/time.ts';
import type { Conversation } from '../data/conversation.ts';
import type { EndRow, ErrorRow, PlanRow, Row, TextRow, UserRow } from '../data/rows.ts';
import { lensAt } from '../lens/cursor.ts';
import { Answer } from './answer.tsx';
import { LongText } from './long-text.tsx';
import { Picture } from './picture.tsx';
import { ToolCard } from './tool-card.tsx';
import { Undo } from './undo.tsx';

interface RowProps<R extends Row = Row> {
  readonly conversation: Conversation;
  readonly row: R;
}

/**
 * One row of the transcript; it is redrawn when its version changes. A row is changed in place, so its version is handed
 * on: a component whose properties are the same is not redrawn.
 */
export function RowView({ conversation, row }: RowProps) {
  // Subscribes to the changes of this row.
  const version = row.version.value;
  switch (row.kind) {
    case 'user':
      return <Said row={row} />;
    case 'answer':
      return <Answer row={row} version={version} />;
    case 'thinking':
      return <Thinking row={row} version={version} />;
    case 'tool':
      return <ToolCard conversation={conversation} row={row} version={version} />;
    case 'plan':
      return <Plan row={row} />;
    case 'notice':
      return <p class="quiet">{visible(row.text)}</p>;
    case 'error':
      return <Failure row={row} />;
    case 'end':
      return <End conversation={conversation} row={row} />;
  }
}

function Said({ row }: { readonly row: UserRow }) {
  return (
    <div class="said" dir="auto" title={dayTime(Date.parse(row.at))}>
      {/* Explicit direction: the first letter of the message decides about the rest. */}
      <span class="unseen" dir="ltr">
        You:{' '}
      </span>
      {row.input.map((part, index) => (
        <Part key={index} part={part} />
      ))}
    </div>
  );
}

/** One part of a user's message. */
export function Part({ part }: { readonly part: InputPart }): ComponentChildren {
  switch (part.type) {
    case 'text':
      return <LongText text={part.text} />;
    case 'commandRef':
      return <p class="mono">{visible(part.rawText ?? `/${part.name} ${part.argsText ?? ''}`)}</p>;
    case 'skillRef':
      return <p class="mono">{visible(part.name)}</p>;
    case 'resourceRef':
      return (
        <p class="mono">
          @{visible(part.server)}:{visible(part.uri)}
        </p>
      );
    case 'fileRef':
      return <p class="mono">@{visible(part.displayPath ?? part.path)}</p>;
    case 'image':
      return <Picture url={part.url} />;
    case 'localImage':
      return <p class="quiet">Picture: {visible(part.fileName ?? part.path)}</p>;
  }
}

function Thinking({ row }: { readonly row: TextRow; readonly version: number }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="thought">
      <button type="button" class="bare" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="twist" aria-hidden="true" />
        {row.isStreaming ? 'Thinking…' : row.isWithdrawn ? 'Thought (withdrawn)' : 'Thought'}
      </button>
      {isOpen && <LongText text={row.text} />}
    </div>
  );
}

const planWords = { pending: 'To do', in_progress: 'In progress', completed: 'Done' } as const;
const planMarks = { pending: '☐', in_progress: '◐', completed: '☑' } as const;

function Plan({ row }: { readonly row: PlanRow }) {
  return (
    <section class="plan" aria-label="Plan">
      <h3>Plan</h3>
      <ol>
        {row.steps.map(({ step, status }, index) => (
          <li key={index} class={status}>
            <span aria-hidden="true">{planMarks[status]}</span>
            <span class="unseen">{planWords[status]}: </span>
            {visible(step)}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Failure({ row: { error } }: { readonly row: ErrorRow }) {
  const wait = error.retryAfterMs === undefined ? '' : ` Try again in ${duration(error.retryAfterMs)}.`;
  return (
    <p class="failure danger">
      <Glyph name="warning" /> {visible(error.message)}
      {wait} <span class="mono quiet">{error.code}</span>
    </p>
  );
}

const endWords: Readonly<Record<EndRow['status'], string>> = {
  completed: 'Done',
  failed: 'Failed',
  cancelled: 'Interrupted',
  running: '',
  waitingApproval: '',
  waitingQuota: '',
};

function End({ conversation, row }: RowProps<EndRow>) {
  const [isAsking, setAsking] = useState(false);
  const { usage, durationMs } = row;
  return (
    <div class={`end ${row.status}`}>
      <span title={row.at === undefined ? undefined : dayTime(Date.parse(row.at))}>
        {row.interruptedBy === 'crash' ? 'Ended when the server stopped' : endWords[row.status]}
      </span>
      {durationMs !== undefined && <span>{duration(durationMs)}</span>}
      {usage && <span>{usage.totalTokens.toLocaleString()} tokens</span>}
      {usage?.costUsd !== undefined && <span>{price(usage.costUsd)}</span>}
      {conversation.threadId !== null && (
        <a
          class="quiet"
          href={href({ view: 'chat', path: [conversation.threadId], query: { turn: row.turnId } })}
          title="Address of this turn"
        >
          Permalink
        </a>
      )}
      {conversation.hasFiles.value && conversation.threadId !== null && (
        <a class="quiet" href={href(lensAt(conversation.threadId, 'changes', { turn: row.turnId }))}>
          Changes
        </a>
      )}
      {conversation.canUndo.value && conversation.threadId !== null && (
        <button type="button" class="bare" onClick={() => setAsking(true)}>
          Undo
        </button>
      )}
      {isAsking && <Undo conversation={conversation} turnId={row.turnId} onClose={() => setAsking(false)} />}
    </div>
  );
}
