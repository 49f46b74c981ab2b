import { useSignal } from '@preact/signals';
import type { Repository, ReviewDraft, ReviewItem, ReviewRun, SourceWrite } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { useResource } from '../../../app/resource.ts';
import { href } from '../../../app/router.ts';
import { CommandLine } from '../../../parts/copy.tsx';
import { Fact, FactList } from '../../../parts/fact-list.tsx';
import { duration } from '../../../parts/format.ts';
import { reviewApi } from '../../review/api.ts';
import { Moment, Outward, Pill } from '../../review/parts.tsx';
import { isActive, lookOfRun, repositoryName, shortSha, triggerWords, writeLooks } from '../../review/words.ts';
import type { DraftActs } from './acts.ts';

interface FactsProps {
  readonly item: ReviewItem;
  readonly repository: Repository | undefined;
  readonly now: number;
}

/** Facts about a pull request. */
export function Facts({ item, repository, now }: FactsProps) {
  const { labels, reviewedHeadSha, headSha } = item;
  return (
    <section aria-label="Facts">
      <h3>Pull request</h3>
      <FactList>
        <Fact name="Repository">{repositoryName(item.repositoryKey)}</Fact>
        <Fact name="Number">
          <Outward url={item.url}>#{item.number}</Outward> {item.state}
          {item.isDraft && ', draft'}
          {item.isFork && ', from a fork'}
        </Fact>
        <Fact name="Author">
          {item.author} <span class="quiet">{item.authorAssociation.toLowerCase()}</span>
        </Fact>
        <Fact name="Branches">
          <span class="mono">
            {item.baseRef} ← {item.headRef}
          </span>
        </Fact>
        <Fact name="Head">
          <span class="mono">{shortSha(headSha)}</span> <span class="quiet">{headWords(headSha, reviewedHeadSha)}</span>
        </Fact>
        {labels.length > 0 && <Fact name="Labels">{labels.join(', ')}</Fact>}
        <Fact name="Changed">
          <Moment at={item.updatedAt} now={now} />
        </Fact>
        <Fact name="Automatic reviews">{item.isPaused ? 'paused' : repository?.autoReview ? 'on' : 'off'}</Fact>
      </FactList>
    </section>
  );
}

function headWords(headSha: string, reviewedHeadSha: string | undefined): string {
  if (reviewedHeadSha === undefined) return 'not reviewed';
  return reviewedHeadSha === headSha ? 'reviewed' : `reviewed at ${shortSha(reviewedHeadSha)}`;
}

interface RunsProps {
  readonly app: App;
  readonly runs: readonly ReviewRun[];
  readonly drafts: readonly ReviewDraft[];
  readonly shownDraftId: string | undefined;
  readonly repository: Repository | undefined;
}

/** All stored reviews, newest first. */
export function Runs({ app, runs, drafts, shownDraftId, repository }: RunsProps) {
  return (
    <section aria-label="Reviews">
      <h3>Reviews</h3>
      {runs.length === 0 && <p class="quiet">It has not been reviewed yet.</p>}
      <ol class="pull-runs">
        {runs.map((run) => (
          <Run
            key={run.runId}
            app={app}
            run={run}
            draft={drafts.find(({ runId }) => runId === run.runId)}
            isShown={run.draftId !== undefined && run.draftId === shownDraftId}
            repository={repository}
          />
        ))}
      </ol>
    </section>
  );
}

interface RunProps {
  readonly app: App;
  readonly run: ReviewRun;
  readonly draft: ReviewDraft | undefined;
  readonly isShown: boolean;
  readonly repository: Repository | undefined;
}

function Run({ app, run, draft, isShown, repository }: RunProps) {
  const now = app.now.value;
  const { startedAt, finishedAt, createdAt, error, focus } = run;
  const took =
    startedAt === undefined ? undefined : Date.parse(finishedAt ?? new Date(now).toISOString()) - Date.parse(startedAt);
  const notes = [
    run.scope,
    triggerWords[run.trigger],
    run.attempt > 1 ? `attempt ${run.attempt} of ${run.maxAttempts}` : undefined,
    took === undefined ? undefined : duration(took),
  ].filter((note) => note !== undefined);
  return (
    <li class={isShown ? 'chosen' : undefined}>
      <p class="run-head">
        <Pill look={lookOfRun(run.state)} />
        <Moment at={finishedAt ?? startedAt ?? createdAt} now={now} />
        {draft && !isShown && (
          <a href={href({ view: 'queue', path: [run.itemId], query: { draft: draft.draftId } })}>Show its draft</a>
        )}
      </p>
      <p class="quiet">
        {notes.join(' · ')} at <span class="mono">{shortSha(run.headSha)}</span>
      </p>
      {focus !== undefined && <p class="quiet">Asked to look at: {focus}</p>}
      {run.deliveryId !== undefined && (
        <p class="quiet">
          Delivery <span class="mono">{run.deliveryId}</span>
        </p>
      )}
      {error && <p class="danger">{error.message}</p>}
      {run.nextAttemptAt !== undefined && isActive(run) && (
        <p class="quiet">
          Next attempt: <Moment at={run.nextAttemptAt} now={now} />
        </p>
      )}
      {isActive(run) && (
        <p>
          <a href={href({ view: 'actors', path: [`review-run:${run.runId}`] })}>Its statechart</a>
        </p>
      )}
      {run.threadId !== undefined && (
        <Trace app={app} runId={run.runId} threadId={run.threadId} repository={repository} />
      )}
    </li>
  );
}

interface TraceProps {
  readonly app: App;
  readonly runId: string;
  readonly threadId: string;
  readonly repository: Repository | undefined;
}

/** Trace of the agent: a session in its workspace's Dashboard. The address holds a token, so it is fetched only when opened. */
function Trace({ app, runId, threadId, repository }: TraceProps) {
  const isOpen = useSignal(false);
  return (
    <details
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>Trace of the agent</summary>
      <p class="quiet">
        Session <span class="mono">{threadId}</span> in the Dashboard of its workspace.
      </p>
      {isOpen.value && <TraceLink app={app} runId={runId} path={repository?.workspacePath} />}
    </details>
  );
}

interface TraceLinkProps {
  readonly app: App;
  readonly runId: string;
  /** Path of the workspace; undefined: unknown. */
  readonly path: string | undefined;
}

/** Link to the Dashboard; without one, the reason and the command that serves it. */
function TraceLink({ app, runId, path }: TraceLinkProps) {
  const { data, error } = useResource((signal) => reviewApi(app.api).traceUrl(runId, signal), [runId]);
  if (data.value !== null) {
    return (
      <p>
        <Outward url={data.value}>Open it in the Dashboard</Outward>
      </p>
    );
  }
  if (error.value === null) return <p class="quiet">Looking for it…</p>;
  return (
    <>
      <p class="quiet">{error.value}</p>
      {path !== undefined && <CommandLine text={`oratorio up '${path.replaceAll("'", "'\\''")}'`} />}
    </>
  );
}

interface WritesProps {
  readonly writes: readonly SourceWrite[];
  readonly acts: DraftActs;
  readonly now: number;
}

/** Failed writes to the source, each with its error and a button to retry. */
export function FailedWrites({ writes, acts, now }: WritesProps) {
  const failed = writes.filter(({ status }) => status === 'failed');
  if (failed.length === 0) return null;
  return (
    <section aria-label="Writes that failed">
      <h3>Not written</h3>
      <ol class="pull-runs">
        {failed.map((write) => (
          <li key={write.writeId}>
            <p class="run-head">
              <Pill look={writeLooks[write.status]} />
              <span>{write.kind}</span>
              <Moment at={write.createdAt} now={now} />
              <button type="button" onClick={() => void acts.retryWrite(write.writeId)}>
                Send again
              </button>
            </p>
            {write.lastError && <p class="danger">{write.lastError.message}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
