import { useSignal } from '@preact/signals';
import type { Automation } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import type { AutomationActions } from './actions.ts';
import { RunStrip } from './run-strip.tsx';
import { lastFault, stateLooks, wallClock, zoneOf } from './words.ts';

export interface RowContext {
  readonly app: App;
  readonly actions: AutomationActions;
  /** Reason why automations cannot be changed here; undefined: they can. */
  readonly readOnly: string | undefined;
  readonly chosen: string | undefined;
  readonly askToDelete: (automation: Automation) => void;
}

/** Rows that are shown before the user asks for more: a table of thousands is unreadable. */
const first = 200;

const columns = ['State', 'Name', 'Schedule', 'Next run', 'Last runs', 'Actions'] as const;

export function AutomationTable({
  groups,
  context,
}: {
  readonly groups: readonly { readonly title: string; readonly automations: readonly Automation[] }[];
  readonly context: RowContext;
}) {
  return (
    <table class="table">
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column} scope="col">
              {column === 'Actions' ? <span class="unseen">{column}</span> : column}
            </th>
          ))}
        </tr>
      </thead>
      {groups
        .filter(({ automations }) => automations.length > 0)
        .map(({ title, automations }) => (
          <Group key={title} title={title} automations={automations} context={context} />
        ))}
    </table>
  );
}

function Group({
  title,
  automations,
  context,
}: {
  readonly title: string;
  readonly automations: readonly Automation[];
  readonly context: RowContext;
}) {
  const most = useSignal(first);
  return (
    <tbody>
      <tr class="heading">
        <th colSpan={columns.length} scope="rowgroup">
          {title} <span class="quiet">{automations.length.toLocaleString()}</span>
        </th>
      </tr>
      {automations.slice(0, most.value).map((automation) => (
        <Row key={automation.id} automation={automation} context={context} />
      ))}
      {automations.length > most.value && (
        <tr>
          <td colSpan={columns.length}>
            <button
              type="button"
              onClick={() => {
                most.value += first * 5;
              }}
            >
              {(automations.length - most.value).toLocaleString()} more
            </button>
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Row({ automation, context }: { readonly automation: Automation; readonly context: RowContext }) {
  const { id, name, scheduleText, enabled, state, recentRuns } = automation;
  const { word, tone, shape } = stateLooks[state];
  const fault = lastFault(automation);
  return (
    <tr class={context.chosen === id ? 'chosen' : undefined}>
      <td>
        <span class={`pill ${tone}`}>
          <Mark tone={tone} shape={shape} />
          {word}
        </span>
      </td>
      <th scope="row">
        <a href={href({ view: 'automations', path: [id] })} title={automation.prompt} class="cut">
          {name}
        </a>
        {fault !== undefined && (
          <span class="danger cut" title={fault}>
            {fault}
          </span>
        )}
      </th>
      <td class="schedule" title={[scheduleText, zoneOf(automation)].filter(Boolean).join(' · ')}>
        {scheduleText}
      </td>
      <td>
        <NextRun automation={automation} app={context.app} />
      </td>
      <td>
        <RunStrip runs={recentRuns} />
      </td>
      <td class="buttons">
        <Buttons automation={automation} context={context} label={`“${name}”`} enabled={enabled} />
      </td>
    </tr>
  );
}

/** Reads the clock itself, so that the second hand redraws this cell alone. */
function NextRun({ automation, app }: { readonly automation: Automation; readonly app: App }) {
  if (automation.nextRunAt === undefined) return <span class="quiet">–</span>;
  const at = Date.parse(automation.nextRunAt);
  return (
    <time dateTime={automation.nextRunAt} title={bothTimes(at)}>
      {distance(at, app.now.value)} <span class="quiet">{wallClock(at, zoneOf(automation))}</span>
    </time>
  );
}

function Buttons({
  automation,
  context: { actions, readOnly, askToDelete },
  label,
  enabled,
}: {
  readonly automation: Automation;
  readonly context: RowContext;
  readonly label: string;
  readonly enabled: boolean;
}) {
  const isFixed = readOnly !== undefined;
  return (
    <>
      <button
        type="button"
        class="bare"
        title={readOnly ?? 'Run now'}
        aria-label={`Run ${label} now`}
        disabled={isFixed || automation.state === 'running'}
        onClick={() => void actions.run(automation)}
      >
        <Glyph name="play" />
      </button>
      <button
        type="button"
        role="switch"
        class="switch"
        aria-checked={enabled}
        title={readOnly ?? (enabled ? 'Switch off' : 'Switch on')}
        aria-label={`Run ${label} on schedule`}
        disabled={isFixed}
        onClick={() => void actions.enable(automation, !enabled)}
      >
        <i aria-hidden="true" />
      </button>
      <button
        type="button"
        class="bare"
        title={readOnly ?? 'Delete'}
        aria-label={`Delete ${label}`}
        disabled={isFixed}
        onClick={() => askToDelete(automation)}
      >
        <Glyph name="bin" />
      </button>
    </>
  );
}
