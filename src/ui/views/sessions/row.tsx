import type { ComponentChildren } from 'preact';
import type { DashboardSession } from '../../../protocol/index.ts';
import { href } from '../../app/router.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../parts/grid.tsx';
import { Mark } from '../../parts/icons.tsx';
import { distance } from '../../parts/time.ts';
import type { SessionTable } from './table-store.ts';
import { amount, costOf, counted, moment, notReported, roughly, span, stateOf, titleOf } from './words.ts';

/** Columns of the table of sessions; the style sheet defines their widths, and which of them a narrow screen hides. */
const columns: readonly (readonly [name: string, title: string])[] = [
  ['name', 'Conversation'],
  ['state', 'State'],
  ['model', 'Model'],
  ['turns', 'Turns'],
  ['tools', 'Tools'],
  ['approvals', 'Approvals'],
  ['tokens', 'Tokens'],
  ['cost', 'Cost'],
  ['worked', 'Active time'],
  ['active', 'Last activity'],
];

export const SessionHeader = () => (
  <HeaderRow class="session-row head-row">
    {columns.map(([name, title]) => (
      <ColumnHeader key={name} class={`c-${name}`}>
        {title}
      </ColumnHeader>
    ))}
  </HeaderRow>
);

interface CellsProps {
  readonly table: SessionTable;
  readonly session: DashboardSession;
  readonly now: number;
}

export function SessionCells({ table, session, now }: CellsProps) {
  const { word, tone, shape } = stateOf(session);
  const { toolFailureCount, approvalCount, approvalWaitMs, errorCount } = session;
  return (
    <>
      <Cell class="c-name cut">
        <a
          href={href({ view: 'sessions', path: [session.sessionKey] })}
          tabIndex={-1}
          title={session.sessionKey}
          onClick={(event) => event.stopPropagation()}
        >
          {titleOf(session)}
        </a>
        {session.parentSessionKey !== undefined && <span class="quiet"> sub-agent</span>}
      </Cell>
      <Cell class="c-state cut">
        <span class={`pill ${tone}`}>
          <Mark tone={tone} shape={shape} />
          {session.isRunning ? <Filter label={word} run={() => table.filter('running')} /> : word}
        </span>
      </Cell>
      <Cell class="c-model cut mono" title={session.model}>
        {session.model ?? '–'}
      </Cell>
      <Cell class="c-turns number">
        {amount(session.turnCount)}
        {session.failedTurnCount > 0 && <b class="danger"> {amount(session.failedTurnCount)} failed</b>}
      </Cell>
      <Cell class="c-tools number">
        {amount(session.toolCallCount)}
        {(toolFailureCount > 0 || errorCount > 0) && (
          <span class="danger">
            {' '}
            <Filter
              label={toolFailureCount > 0 ? `${amount(toolFailureCount)} failed` : counted(errorCount, 'error')}
              run={() => table.filter('failed')}
            />
          </span>
        )}
      </Cell>
      <Cell class="c-approvals number">
        {approvalCount === 0 ? '–' : amount(approvalCount)}
        {approvalWaitMs > 0 && <span class="quiet"> {span(approvalWaitMs)}</span>}
      </Cell>
      <Tokens session={session} />
      <Cell class="c-cost number">{costOf(session)}</Cell>
      <Cell class="c-worked number" title={`${span(session.durationMs)} from its first event to its last`}>
        {session.turnCount === 0 ? '–' : span(session.turnDurationMs)}
      </Cell>
      <Cell class="c-active number" title={moment(Date.parse(session.lastActivityAt))}>
        {distance(Date.parse(session.lastActivityAt), now)}
      </Cell>
    </>
  );
}

/** Tokens of a session; zero means that none were reported. */
function Tokens({ session }: { readonly session: DashboardSession }) {
  const { totalTokens, inputTokens, outputTokens } = session;
  if (totalTokens === 0) {
    return (
      <Cell class="c-tokens number quiet" title={`Tokens: ${notReported}`} aria-label={`Tokens: ${notReported}`}>
        –
      </Cell>
    );
  }
  return (
    <Cell
      class="c-tokens number"
      title={`${amount(inputTokens)} in, ${amount(outputTokens)} out; cost: ${costOf(session)}`}
    >
      {roughly(totalTokens)}
    </Cell>
  );
}

interface FilterProps {
  readonly label: ComponentChildren;
  readonly run: () => void;
}

/** Value that filters the table when clicked. Keyboard users filter in the bar above. */
const Filter = ({ label, run }: FilterProps) => (
  <button
    type="button"
    class="value"
    tabIndex={-1}
    title="Show only such traces"
    onClick={(event) => {
      event.stopPropagation();
      run();
    }}
  >
    {label}
  </button>
);
