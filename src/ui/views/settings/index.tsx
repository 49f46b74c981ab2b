/** Settings: a form made from the schema that the configuration is checked with. It writes the workspace's own file. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { messageOf } from '../../../lib/browser.ts';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { ConfigView } from '../../../protocol/index.ts';
import { ApiError } from '../../app/api.ts';
import type { App } from '../../app/app.ts';
import { type Resource, useResource } from '../../app/resource.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner, FaultBanner } from '../../parts/state-banner.tsx';
import { Cards } from './cards.tsx';
import { Field } from './field.tsx';
import {
  type Edits,
  faultOf,
  issuesOf,
  reasonOf,
  reasonsOf,
  type Schema,
  type Section,
  type Setting,
  search,
  sectionsOf,
} from './model.ts';
import './settings.css';

interface Loaded {
  readonly sections: readonly Section[];
  readonly config: ConfigView;
}

export default function SettingsView({ app }: { readonly app: App }) {
  const resource = useResource<Loaded>(async (signal) => {
    const [schema, config] = await Promise.all([
      app.api.get<Schema>(dashboardPaths.configSchema, signal),
      app.api.get<ConfigView>(dashboardPaths.config, signal),
    ]);
    return { sections: sectionsOf(schema), config };
  });
  const { data, error, at, reload } = resource;
  if (!data.value) {
    return (
      <div class="view">
        <FaultBanner error={error.value} at={at.value} retry={reload} />
        {error.value === null && <Skeleton />}
      </div>
    );
  }
  return <Form app={app} resource={resource} loaded={data.value} />;
}

const noIssues = { byPath: new Map<string, string>(), rest: [] as readonly string[] };

function Form({
  app,
  resource,
  loaded: { sections, config },
}: {
  readonly app: App;
  readonly resource: Resource<Loaded>;
  readonly loaded: Loaded;
}) {
  const editing = useEditing(app, resource, sections);
  const { edits, issues, isBusy, edit, discard, save } = editing;
  const text = app.router.route.value.query['q'] ?? '';
  const shown = useMemo(() => search(sections, text), [sections, text]);
  const reasons = useMemo(() => reasonsOf(shown), [shown]);
  const lockOf = ({ schema }: Setting) => reasons.indexOf(reasonOf(schema) ?? '') + 1 || undefined;
  const readOnly = app.page.value?.readOnly ?? config.readOnly;
  const isWrong = sections.some(({ settings }) =>
    settings.some((setting) => edits.value.has(setting.keyPath) && faultOf(setting, edits.value.get(setting.keyPath))),
  );
  useSettingKeys(app, { save, hasEdits: () => edits.peek().size > 0 });
  return (
    <ListView
      app={app}
      class="settings"
      title="Settings"
      filter={{
        label: 'Search settings',
        placeholder: 'Search settings',
        text,
        onText: (q) => app.router.set({ q }),
      }}
      tools={
        <>
          <code class="quiet cut" title="The file that is written">
            {config.path}
          </code>
          {edits.value.size > 0 && (
            <span class="push saving">
              <button type="button" onClick={discard} disabled={isBusy.value}>
                Discard
              </button>
              <button type="button" class="main" onClick={save} disabled={isBusy.value || isWrong}>
                Save {edits.value.size} {edits.value.size === 1 ? 'change' : 'changes'}
              </button>
            </span>
          )}
        </>
      }
      notices={<Notices resource={resource} config={config} readOnly={readOnly} editing={editing} />}
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <section class="scroll" aria-label="All settings" tabIndex={0}>
        {text === '' && <Cards app={app} config={config} reload={resource.reload} />}
        {reasons.length > 0 && <Locks reasons={reasons} />}
        {shown.map(({ title, settings }) => (
          <section key={title} aria-label={`Settings of ${title}`}>
            <h2>{title}</h2>
            {settings.map((setting) => (
              <Field
                key={setting.keyPath}
                setting={setting}
                config={config}
                edits={edits.value}
                isFixed={readOnly !== undefined}
                lock={lockOf(setting)}
                issue={issues.value.byPath.get(setting.keyPath)}
                onEdit={edit}
              />
            ))}
          </section>
        ))}
        {shown.length === 0 && (
          <Empty title="No setting fits">
            <p>The search covers names and descriptions.</p>
          </Empty>
        )}
      </section>
    </ListView>
  );
}

interface NoticesProps {
  readonly resource: Resource<Loaded>;
  readonly config: ConfigView;
  /** Reason why no setting can be changed; undefined: settings can be changed. */
  readonly readOnly: string | undefined;
  readonly editing: ReturnType<typeof useEditing>;
}

/** Banners above the settings: locks, faults, warnings and a needed restart. */
function Notices({ resource, config, readOnly, editing: { fault, issues, restartFor, readAgain } }: NoticesProps) {
  return (
    <>
      {readOnly !== undefined && (
        <Banner tone="neutral">
          <p>These settings cannot be changed here: {readOnly}</p>
        </Banner>
      )}
      <FaultBanner error={resource.error.value} at={resource.at.value} retry={resource.reload} />
      {fault.value !== null && (
        <Banner tone="danger">
          <p>{[fault.value, ...issues.value.rest].join(' ')}</p>
          <button type="button" onClick={readAgain}>
            Read the file again
          </button>
        </Banner>
      )}
      {config.warnings.map((warning) => (
        <Banner key={warning} tone="warn">
          <p>{warning}</p>
        </Banner>
      ))}
      {restartFor.value.length > 0 && (
        <Banner tone="warn">
          <p>
            Saved. Restart to apply: <code>{restartFor.value.join(', ')}</code>
          </p>
        </Banner>
      )}
    </>
  );
}

/** Reasons why some settings cannot be changed in this form; a locked setting shows the number of its reason. */
function Locks({ reasons }: { readonly reasons: readonly string[] }) {
  return (
    <ol class="locks quiet" aria-label="Locked settings">
      {reasons.map((reason, index) => (
        <li key={reason} id={`lock-${index + 1}`}>
          <b>Locked ({index + 1})</b> Not changed in this form: {reason}.
        </li>
      ))}
    </ol>
  );
}

/** The pending change, and the server's verdict on it. */
function useEditing(app: App, resource: Resource<Loaded>, sections: readonly Section[]) {
  const edits = useSignal<Edits>(new Map());
  const issues = useSignal(noIssues);
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const restartFor = useSignal<readonly string[]>([]);
  useWarning(edits.value.size > 0);

  const forgive = () => {
    fault.value = null;
    issues.value = noIssues;
  };
  const edit = (keyPath: string, value: unknown) => {
    const next = new Map(edits.peek());
    if (value === undefined) next.delete(keyPath);
    else next.set(keyPath, value);
    edits.value = next;
    forgive();
  };
  const discard = () => {
    edits.value = new Map();
    forgive();
  };
  const readAgain = () => {
    forgive();
    resource.reload();
  };
  const send = async (config: ConfigView) => {
    isBusy.value = true;
    try {
      const { restartNeededFor } = await app.api.send<{ readonly restartNeededFor: readonly string[] }>(
        'PUT',
        dashboardPaths.config,
        { set: Object.fromEntries(edits.peek()) },
        { 'if-match': `"${config.revision}"` },
      );
      discard();
      restartFor.value = [...new Set([...restartFor.peek(), ...restartNeededFor])];
      app.toast({ text: 'Settings saved.', ms: 3_000 });
      resource.reload();
    } catch (error) {
      fault.value = messageOf(error);
      const paths = sections.flatMap(({ settings }) => settings.map(({ keyPath }) => keyPath));
      if (error instanceof ApiError) issues.value = issuesOf(error.details, paths);
    } finally {
      isBusy.value = false;
    }
  };
  const save = () => {
    const { config } = resource.data.peek() ?? {};
    if (config && edits.peek().size > 0 && !isBusy.peek()) void send(config);
  };
  return { edits, issues, fault, isBusy, restartFor, edit, discard, save, readAgain };
}

/** Makes the browser ask before it closes a tab with unsaved changes. */
function useWarning(hasEdits: boolean): void {
  useEffect(() => {
    if (!hasEdits) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [hasEdits]);
}

interface Actions {
  readonly save: () => void;
  readonly hasEdits: () => boolean;
}

function useSettingKeys(app: App, actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const group = 'Settings';
    return app.commands.register([
      {
        id: 'settings.save',
        title: 'Save the changes',
        group,
        keys: ['Mod+s'],
        isEnabled: () => latest.current.hasEdits(),
        run: () => latest.current.save(),
      },
    ]);
  }, [app]);
}
