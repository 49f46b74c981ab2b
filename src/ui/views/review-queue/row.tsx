import { href } from '../../app/router.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../parts/grid.tsx';
import { Moment, Pill } from '../review/parts.tsx';
import { counted, isActive, repositoryName, shortSha, titleOf, triggerWords } from '../review/words.ts';
import type { QueueRow } from './standing.ts';

const columns: readonly (readonly [name: string, title: string])[] = [
  ['state', 'State'],
  ['title', 'Pull request'],
  ['repository', 'Repository'],
  ['what', 'Last review'],
  ['findings', 'Open findings'],
  ['updated', 'Changed'],
];

export const QueueHeader = () => (
  <HeaderRow class="queue-row head-row">
    {columns.map(([name, title]) => (
      <ColumnHeader key={name} class={`c-${name}`}>
        {title}
      </ColumnHeader>
    ))}
  </HeaderRow>
);

interface CellsProps {
  readonly row: QueueRow;
  readonly now: number;
  readonly onRetry: (row: QueueRow) => void;
}

export function QueueCells({ row, now, onRetry }: CellsProps) {
  const { item, look } = row;
  return (
    <>
      <Cell class="c-state cut">
        <Pill look={look} />
      </Cell>
      <Cell class="c-title cut">
        <a
          href={href({ view: 'queue', path: [item.itemId] })}
          tabIndex={-1}
          title={item.title}
          onClick={(event) => event.stopPropagation()}
        >
          {titleOf(item)}
        </a>
        <span class="quiet">
          {' '}
          #{item.number} · {item.author}
          {item.isDraft && ' · draft'}
          {item.isFork && ' · fork'}
          {item.state !== 'open' && ` · ${item.state}`}
        </span>
      </Cell>
      <Cell class="c-repository cut mono" title={item.repositoryKey}>
        {repositoryName(item.repositoryKey)}
      </Cell>
      <Cell class="c-detail cut">
        {row.standing === 'failed' && (
          <button
            type="button"
            class="again"
            tabIndex={-1}
            title="Try again (r)"
            onClick={(event) => {
              event.stopPropagation();
              onRetry(row);
            }}
          >
            Try again
          </button>
        )}
        <What row={row} now={now} />
      </Cell>
      <Cell class="c-findings number">{item.openFindings === 0 ? '–' : item.openFindings.toLocaleString()}</Cell>
      <Cell class="c-updated number">
        <Moment at={item.updatedAt} now={now} />
      </Cell>
    </>
  );
}

/** Reason of a failure or of a pause before the next attempt, the draft that waits for a decision, or the last run. */
function What({ row: { run, draft, standing, item }, now }: { readonly row: QueueRow; readonly now: number }) {
  if (run && (standing === 'failed' || (run.state === 'backingOff' && run.error)))
    return (
      <span class={standing === 'failed' ? 'danger' : 'warn'} title={run.error?.code}>
        {run.error?.message ?? 'It failed.'}
        {standing !== 'failed' && ` Attempt ${run.attempt} of ${run.maxAttempts}.`}
      </span>
    );
  if (standing === 'decide' && draft)
    return draft.blockedBy ? (
      <span class="warn">{draft.blockedBy.message}</span>
    ) : (
      <span>
        {counted(draft.findings.length, 'finding')} <span class="quiet">at {shortSha(draft.headSha)}</span>
      </span>
    );
  if (!run) return <span class="quiet">{item.reviewedHeadSha ? `at ${shortSha(item.reviewedHeadSha)}` : '–'}</span>;
  return (
    <span class="quiet">
      {run.scope}, {triggerWords[run.trigger]}
      {run.attempt > 1 && `, attempt ${run.attempt} of ${run.maxAttempts}`} ·{' '}
      <Moment at={isActive(run) ? (run.startedAt ?? run.createdAt) : (run.finishedAt ?? run.createdAt)} now={now} />
      {item.waitingRunId !== undefined && item.activeRunId !== undefined && ' · another waits'}
    </span>
  );
}
