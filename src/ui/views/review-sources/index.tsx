/** Sources: the repositories with their last sync, and the effective settings, without secrets. */
import { useLayoutEffect, useMemo } from 'preact/hooks';
import type { Repository, SyncJob } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { Empty } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { type DeadJob, reviewApi } from '../review/api.ts';
import { attempt, isAbout } from '../review/live.ts';
import { Moment, Pill } from '../review/parts.tsx';
import { counted, repositoryName, syncLooks } from '../review/words.ts';
import { Diagnostics } from './diagnostics.tsx';
import './sources.css';

const isConcerned = isAbout(['source.changed', 'sync.changed']);
const shownJobs = 12;

export default function SourcesView({ app }: { readonly app: App }) {
  const api = useMemo(() => reviewApi(app.api), [app]);
  const load = async (signal: AbortSignal) => {
    const [repositories, jobs, dead, status, settings] = await Promise.all([
      api.sources(signal),
      api.syncJobs(shownJobs, signal),
      api.deadJobs(shownJobs, signal),
      api.status(signal),
      api.settings(signal),
    ]);
    return { repositories, jobs, dead, status, settings };
  };
  const { data, error, at, reload } = useResource(load, [], { live: app.live, isConcerned });
  const sync = (repository?: Repository) =>
    void attempt(
      app,
      api.sync(repository?.repositoryKey),
      `Syncing ${repository ? repositoryName(repository.repositoryKey) : 'all repositories'}.`,
    ).then(reload);
  useLayoutEffect(
    () =>
      app.commands.register([
        {
          ...{ id: 'sources.sync', title: 'Sync all repositories now', group: 'Sources', keys: ['s'] },
          run: () => sync(),
        },
      ]),
    [app],
  );
  const known = data.value;
  return (
    <ListView
      app={app}
      class="sources"
      title="Sources"
      lead={known && <span class="quiet">{known.repositories.length.toLocaleString()} watched</span>}
      tools={
        <button type="button" class="push" onClick={() => sync()} title="Sync all repositories now (s)">
          <Glyph name="refresh" />
          Sync now
        </button>
      }
      state={{ error, at, reload, isLoaded: known !== null }}
    >
      {known && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
        <section class={`scroll ${error.value === null ? '' : 'stale'}`} aria-label="Sources and settings" tabIndex={0}>
          {known.repositories.length === 0 ? (
            <NoRepository />
          ) : (
            <Repositories repositories={known.repositories} now={app.now.value} onSync={sync} />
          )}
          <SyncJobs jobs={known.jobs} now={app.now.value} />
          <DeadJobs jobs={known.dead} now={app.now.value} />
          <Diagnostics status={known.status} settings={known.settings} />
        </section>
      )}
    </ListView>
  );
}

const NoRepository = () => (
  <Empty title="No repository is set up yet" command='{"Oratorio": {"GitHub": {"Repositories": ["owner/name"]}}}'>
    <p>
      Repositories are named in <code>oratorio.config.json</code>:
    </p>
  </Empty>
);

interface RepositoriesProps {
  readonly repositories: readonly Repository[];
  readonly now: number;
  readonly onSync: (repository: Repository) => void;
}

const columns = ['Repository', 'Workspace', 'Automatic', 'Writes', 'Open', 'Last sync', 'Actions'] as const;

function Repositories({ repositories, now, onSync }: RepositoriesProps) {
  return (
    <table class="table">
      <caption class="unseen">Repositories</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column} scope="col" class={column === 'Open' ? 'number' : undefined}>
              {column === 'Actions' ? <span class="unseen">{column}</span> : column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {repositories.map((repository) => {
          const { repositoryKey, workspacePath, autoReview, writesEnabled, openItems, lastSyncError } = repository;
          const name = repositoryName(repositoryKey);
          return (
            <tr key={repositoryKey}>
              <th scope="row" title={repositoryKey}>
                {name}
              </th>
              <td class="path">
                {workspacePath === undefined ? (
                  <span class="warn">no route: it cannot be reviewed</span>
                ) : (
                  <span class="mono">{workspacePath}</span>
                )}
              </td>
              <td>{autoReview ? 'on' : <span class="quiet">off</span>}</td>
              <td>{writesEnabled ? 'on' : <span class="quiet">off</span>}</td>
              <td class="number">{openItems.toLocaleString()}</td>
              <td>
                <Moment at={repository.lastSyncAt} now={now} />
                {lastSyncError && (
                  <p class="danger" title={lastSyncError.code}>
                    {lastSyncError.message}
                  </p>
                )}
              </td>
              <td class="buttons">
                <button
                  type="button"
                  class="bare"
                  title="Sync now"
                  aria-label={`Sync ${name} now`}
                  onClick={() => onSync(repository)}
                >
                  <Glyph name="refresh" />
                </button>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function SyncJobs({ jobs, now }: { readonly jobs: readonly SyncJob[]; readonly now: number }) {
  if (jobs.length === 0) return null;
  return (
    <section class="block" aria-label="Last syncs">
      <h2>Last syncs</h2>
      <ol>
        {jobs.map((job) => (
          <li key={job.jobId}>
            <p class="job">
              <Pill look={syncLooks[job.status]} />
              <Moment at={job.finishedAt ?? job.createdAt} now={now} />
              <span>{job.repositoryKey === undefined ? 'all' : repositoryName(job.repositoryKey)}</span>
              <span class="quiet">
                {job.trigger} · {counted(job.changedItems, 'change')} · {counted(job.apiCalls, 'API call')} ·{' '}
                {job.notModified.toLocaleString()} unchanged
              </span>
            </p>
            {job.error && <p class="danger">{job.error.message}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Work that was tried as often as it may be. */
function DeadJobs({ jobs, now }: { readonly jobs: readonly DeadJob[]; readonly now: number }) {
  if (jobs.length === 0) return null;
  return (
    <section class="block" aria-label="Given up">
      <h2>Given up</h2>
      <ol>
        {jobs.map(({ jobId, kind, key, attempt, error, diedAt }) => (
          <li key={jobId}>
            <p class="job">
              <span>{kind}</span>
              <Moment at={diedAt} now={now} />
              <span class="quiet">
                {key} · {counted(attempt, 'attempt')}
              </span>
            </p>
            <p class="danger">{error}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}
