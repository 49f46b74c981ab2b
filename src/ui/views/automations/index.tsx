/** Automations: scheduled jobs, their next runs, and the results of the last runs. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { streamEvents } from '../../../protocol/browser.ts';
import type { Automation, AutomationsState } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { zone } from '../../parts/time.ts';
import { automationActions, readState } from './actions.ts';
import './automations.css';
import { History } from './history.tsx';
import { NewJob } from './new-job.tsx';
import { AutomationTable } from './table.tsx';

export default function AutomationsView({ app }: { readonly app: App }) {
  const { data, error, at, reload } = useResource((signal) => readState(app, signal), [], {
    live: app.live,
    isConcerned: ({ event }) => event === streamEvents.automations || event === streamEvents.gap,
  });
  const isNew = useSignal(false);
  const doomed = useSignal<Automation | null>(null);
  const { path, query } = app.router.route.value;
  const text = query['q'] ?? '';
  const state = data.value;
  const actions = automationActions(app, reload);
  const readOnly = app.page.value?.readOnly ?? (state && !state.isRunning ? notRunning : undefined);
  const all = state ? [...state.cron, ...state.tasks] : [];
  const chosen = all.find(({ id }) => id === path[0]);
  const close = () => app.router.go({ view: 'automations', query });
  useAutomationKeys(app, { refresh: () => void actions.refresh(), close });

  return (
    <ListView
      app={app}
      class="automations"
      title="Automations"
      lead={state && <Counts state={state} />}
      filter={{
        label: 'Filter automations',
        placeholder: 'Filter by name, prompt or state',
        text,
        onText: (q) => app.router.set({ q }),
      }}
      tools={
        <>
          <span class="quiet">{zone()}</span>
          {state && readOnly === undefined && (
            <button
              type="button"
              class="main"
              onClick={() => {
                isNew.value = true;
              }}
            >
              New
            </button>
          )}
          <button type="button" onClick={() => void actions.refresh()} title="Reload all schedules (r)">
            <Glyph name="refresh" />
            Refresh
          </button>
        </>
      }
      state={{ error, at, reload, isLoaded: state !== null }}
      notices={
        state &&
        readOnly !== undefined && (
          <Banner tone="neutral">
            <p>{readOnly}</p>
          </Banner>
        )
      }
      dialog={
        <>
          {isNew.value && (
            <NewJob
              actions={actions}
              onClose={() => {
                isNew.value = false;
                reload();
              }}
            />
          )}
          {doomed.value && (
            <Confirm
              title={`Delete “${doomed.value.name}”?`}
              action="Delete it"
              onClose={() => {
                doomed.value = null;
              }}
              onConfirm={() => {
                const automation = doomed.value;
                doomed.value = null;
                if (automation) void actions.remove(automation);
              }}
            >
              <p>Its schedule and the history of its runs are deleted for good. The conversations of its runs stay.</p>
            </Confirm>
          )}
        </>
      }
    >
      {state && all.length === 0 && <None />}
      {state && all.length > 0 && (
        <div class={chosen ? 'both' : 'alone'}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
          <section class={`scroll ${error.value === null ? '' : 'stale'}`} aria-label="All automations" tabIndex={0}>
            <AutomationTable
              groups={[
                { title: 'Cron jobs', automations: state.cron.filter(matching(text)) },
                { title: 'Local tasks', automations: state.tasks.filter(matching(text)) },
              ]}
              context={{
                app,
                actions,
                readOnly,
                chosen: chosen?.id,
                askToDelete: (automation) => {
                  doomed.value = automation;
                },
              }}
            />
          </section>
          {chosen && <History app={app} automation={chosen} onClose={close} />}
        </div>
      )}
    </ListView>
  );
}

const notRunning = 'These do not run here: automations are switched off (Automations.Enabled), or this is a viewer.';

const matching =
  (text: string) =>
  ({ name, prompt, state, scheduleText }: Automation): boolean =>
    `${name}\n${prompt}\n${state}\n${scheduleText}`.toLowerCase().includes(text.trim().toLowerCase());

function Counts({ state }: { readonly state: AutomationsState }) {
  const { running = 0, backingOff = 0 } = state.countsByState;
  const all = state.cron.length + state.tasks.length;
  return (
    <span class="quiet">
      {all.toLocaleString()} in all, {running} running{backingOff > 0 && `, ${backingOff} retrying`}
    </span>
  );
}

function None() {
  return (
    <Empty
      title="Nothing runs by itself yet"
      command={'oratorio cron add --daily 07:30 "What changed since yesterday?"'}
    >
      <p>A job gives the agent a prompt again and again. Press New, or in a terminal:</p>
    </Empty>
  );
}

interface Actions {
  readonly refresh: () => void;
  readonly close: () => void;
}

function useAutomationKeys(app: App, actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const group = 'Automations';
    return app.commands.register([
      {
        id: 'automations.refresh',
        title: 'Reload all schedules',
        group,
        keys: ['r'],
        run: () => latest.current.refresh(),
      },
      {
        id: 'automations.close',
        title: 'Close the history',
        group,
        keys: ['Escape'],
        isEnabled: () => app.router.route.peek().path.length > 0,
        run: () => latest.current.close(),
      },
    ]);
  }, [app]);
}
